"""What a cascade is in the config, how sure a model is of its reply, and what the result table says of each model asked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spark_mv.query.ai_calls.cascade import Step
from spark_mv.query.syntax.nearest import did_you_mean

_WORDS = ("model", "accept_if")
STEPS = (
    "from_json(steps, 'ARRAY<STRUCT<model STRING, version STRING, attempts INT, input_tokens BIGINT, output_tokens BIGINT, "
    "cost DOUBLE, confidence DOUBLE, declined STRING>>')"
)
"""SQL of the models that a row's input was asked of, NULL where there was no cascade; in the order of asking."""
REQUESTS = "coalesce(json_array_length(steps), 1)"
"""SQL of how many models a row's input was asked of."""
CUT_SHORT = f"coalesce(error_class IS NOT NULL AND element_at({STEPS}, -1).declined IS NOT NULL, false)"
"""SQL: the budget or the time ended between two models, so that the input is left for a later run."""


@dataclass(frozen=True)
class Taken:
    """What one model of a cascade took for an input; `declined` says why the next one was to be asked."""

    model: str
    version: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cost: float
    confidence: float | None = None
    declined: str | None = None


def confidence_of(reply: Any, typed: bool) -> float | None:
    """How sure a model is of its reply, from 0 to 1, by the log-probabilities of the reply's tokens; None where they are missing.

    Of a typed answer (a label, a number, fields) it is the probability of the whole reply: the product over its tokens, of which
    those of the JSON around the answer are all but certain. Of free text, where a product only measures length, it is the
    geometric mean over the tokens.
    """
    choice = (getattr(reply, "choices", None) or [None])[0]
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    if not isinstance(tokens, (list, tuple)) or not tokens:
        return None
    found = [getattr(token, "logprob", None) for token in tokens]
    numbers = [float(value) for value in found if isinstance(value, (int, float)) and not math.isnan(value)]
    if len(numbers) < len(found):
        return None
    total = math.fsum(numbers)
    return math.exp(min(0.0, total if typed else total / len(numbers)))


def steps_text(taken: Sequence[Taken]) -> str | None:
    """The models as they stand in the result table, None where there was no cascade."""
    return json.dumps([{k: v for k, v in asdict(t).items() if v is not None} for t in taken]) if taken else None


def problem_of_cascade(value: Any) -> str | None:
    """What is wrong with a cascade in the config, None if nothing. An empty one is none.

    >>> problem_of_cascade([{"model": "small"}, {"model": "large"}])
    "cascade[1] needs accept_if, as all but the last: e.g. accept_if: 'confidence >= 0.9'"
    >>> problem_of_cascade([{"model": "small", "acept_if": "confidence >= 0.9"}, {"model": "large"}])
    "cascade[1] has an unknown word 'acept_if' (did you mean 'accept_if'?)"
    """
    form = "[{model: small, accept_if: 'confidence >= 0.9'}, {model: large}]"
    if not isinstance(value, (list, tuple)):
        return f"cascade must be a list of models like {form}, not {value!r}"
    if len(value) == 1:
        return f"cascade has one model; it needs two or more, like {form}, or set model instead"
    for number, block in enumerate(value, 1):
        place = f"cascade[{number}]"
        if not isinstance(block, Mapping):
            return f"{place} must have model and accept_if, like {form}, not {block!r}"
        for word in block:
            if word not in _WORDS:
                known = did_you_mean(word, _WORDS, f"; it has {', '.join(_WORDS)}")
                return f"{place} has an unknown word {word!r}{known}"
        if not str(block.get("model") or "").strip():
            return f"{place} needs model, the name that the endpoint knows"
        condition, last = block.get("accept_if"), number == len(value)
        if last and condition is not None:
            return f"{place} is the last, whose answer always counts: take accept_if away, or add a model behind it"
        if not last and condition is None:
            return f"{place} needs accept_if, as all but the last: e.g. accept_if: 'confidence >= 0.9'"
        try:
            Step.of("", "", None if condition is None else str(condition))
        except ValueError as error:
            return f"{place}.accept_if: {error}; e.g. accept_if: 'confidence >= 0.9'"
    names = [str(block["model"]) for block in value]
    twice = next((name for name in names if names.count(name) > 1), None)
    return None if twice is None else f"cascade has the model {twice!r} twice: each is asked once"


def cascade_of(value: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str | None], ...]:
    """Models and conditions from the config, see problem_of_cascade."""
    return tuple((str(b["model"]), None if b.get("accept_if") is None else str(b["accept_if"])) for b in value)
