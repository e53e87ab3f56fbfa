"""Asking the models of a cascade in turn: when the next one is asked, and what each of them took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.cascade import Taken
from spark_mv.ai.prices import Rates, cost_of
from spark_mv.ai.protocol import Request
from spark_mv.query.ai_calls.cascade import Step, Steps

_DECLINED = frozenset({"invalid_answer", "refused"})
"""Errors of a model that leave the question to the next one: no answer of the type, and none at all (too long for it, its policy,
no log-probabilities at this endpoint). After the others (429, 5xx, a wrong key) a later run begins again."""
_BETWEEN = frozenset({"budget", "deadline"})


def ask_in_turn(asker: Asker, request: Request, steps: Steps, prices: Mapping[str, Rates]) -> Outcome:
    """The outcome of one input: the first answer that its model's condition accepts. Never raises.

    It is begun where the budget of calls has room for all models, so that no answer of the first is paid in vain; where a budget
    of tokens or money, or the time, ends in between all the same, nothing more is begun.
    """
    taken: list[Taken] = []
    cached = 0
    for step in steps:
        (outcome,) = asker.ask(
            [replace(request, model=step.model, declinable=step.least is not None)], begun=bool(taken)
        )
        why, cached = _why_not(step, outcome), cached + outcome.cached_tokens
        if outcome.attempts:
            taken.append(_taken(step, outcome, why, prices.get(step.model, (0.0, 0.0))))
        elif taken and outcome.error_class in _BETWEEN:
            asker.stop(outcome.error_class or "", outcome.error or "")
        if why is None:
            break
    return replace(
        outcome,
        attempts=sum(t.attempts for t in taken),
        input_tokens=sum(t.input_tokens for t in taken),
        output_tokens=sum(t.output_tokens for t in taken),
        cached_tokens=cached,
        steps=tuple(taken),
    )


def _why_not(step: Step, outcome: Outcome) -> str | None:
    """Why the next model is to be asked, None where this is the end."""
    if step.least is None:
        return None
    if outcome.error_class is not None:
        return f"{outcome.error_class}: {(outcome.error or '')[:200]}" if outcome.error_class in _DECLINED else None
    if step.accepts(outcome.confidence):
        return None
    return "confidence unknown" if outcome.confidence is None else f"not {step.condition}"


def _taken(step: Step, outcome: Outcome, why: str | None, price: Rates) -> Taken:
    cost = cost_of(price, outcome.input_tokens, outcome.output_tokens, outcome.cached_tokens)
    return Taken(
        step.model,
        step.version,
        outcome.attempts,
        outcome.input_tokens,
        outcome.output_tokens,
        cost,
        outcome.confidence,
        why,
    )
