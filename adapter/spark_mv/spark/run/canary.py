"""The canary of a run: a sample of what a new model is to answer is asked first, and the run stops where it answers too much otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.canary import Canary, Compared
from spark_mv.ai.canary_sample import CLOSED, comparable, compared_sql, due_sql, sample_sql
from spark_mv.ai.outcome import AiOutcome
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.errors import RunFailed
from spark_mv.query.ai_calls.ai_plan import AiCall


@dataclass(frozen=True)
class Asked:
    """What the samples took: of calls that `go_on`, and of those that wait for the rest of their sample."""

    passed: AiOutcome
    waits: AiOutcome
    go_on: tuple[AiCall, ...]

    def and_then(self, outcome: AiOutcome) -> AiOutcome:
        """The outcome of the round, whose other inputs were asked after: inputs of a sample count once."""
        first = self.passed
        again = replace(
            outcome,
            reused=max(0, outcome.reused - first.ok),
            blocked=max(0, outcome.blocked - first.errors),
            refused=max(0, outcome.refused - first.gave_up),
        )
        here = replace(first, requested=0, reused=0, blocked=0, refused=0, left_for_later=0, under_way=0, message="")
        return here + self.waits + again


@dataclass(frozen=True)
class CanaryRun:
    """`rows` runs a statement, `directly` asks for the answers that a call lacks, `say` tells the user a line."""

    model: str
    canary: Canary
    context: AiContext
    rows: Callable[[str], Sequence[Sequence[Any]]]
    directly: Callable[[AiCall], AiOutcome]
    say: Callable[[str], None]

    def ask(self, calls: Sequence[AiCall]) -> Asked:
        """Raises RunFailed where too many answers are others."""
        passed, waits = AiOutcome(), AiOutcome()
        go_on = []
        for call in calls:
            due = int(self.rows(due_sql(call, self.context.results_table))[0][0])
            if due and comparable(call):
                found, enough = self._sample(call)
                if not enough:
                    others = max(0, due - found.requested + found.reused)
                    waits += found + AiOutcome(requested=others, left_for_later=others)
                    continue
                passed += found
            elif due:
                self.say(
                    f"model {self.model}: canary: {_named(call)} gives free text or a vector, which is not compared"
                )
            go_on.append(call)
        return Asked(passed, waits, tuple(go_on))

    def _sample(self, call: AiCall) -> tuple[AiOutcome, bool]:
        table, inputs = self.context.results_table, self.canary.inputs
        found = self.directly(replace(call, request_sql=sample_sql(call, table, inputs)))
        compared = Compared.of(self.rows(compared_sql(call, table, inputs)))
        enough = compared.enough(self.canary.agreement)
        if enough is False:
            raise RunFailed("AI_CANARY", f"model {self.model}: {self._otherwise(call, compared)}")
        if enough is None and not self.context.identity.keep_old:
            raise RunFailed(
                "AI_CANARY",
                f"model {self.model}: {_named(call)}: {compared}, and {compared.waits:,} have no answer yet"
                f"{f' ({found.error_example})' if found.error_example else ''}, so that the canary (agreement {self.canary.agreement:g}) "
                "is undecided and nothing was changed. Answers that came are kept: run again once the cause is gone",
            )
        end = "" if enough else f"; {compared.waits:,} wait, and nothing else is asked before"
        self.say(f"model {self.model}: canary: {_named(call)}: {compared}{end}")
        return found, bool(enough)

    def _otherwise(self, call: AiCall, compared: Compared) -> str:
        often = ""
        if call.function in CLOSED and compared.pairs:
            shown = [f"{before!r} before and {now!r} now ({number:,})" for before, now, number in compared.pairs[:3]]
            often = f" Most often: {', '.join(shown)}."
        return (
            f"{_named(call)}: {compared}, fewer than canary.agreement ({self.canary.agreement:g}), so nothing was changed and nothing else "
            f"asked.{often} What {' → '.join(call.models)} answered is kept and not paid again. To see which is right, ask ai_eval with labels; to "
            "take the new answers, lower canary.agreement or say `canary: {}`; to stay with the old ones, put the old model back or say "
            "on_model_change: keep"
        )


def _named(call: AiCall) -> str:
    return f"{call.function} (line {call.line}, {call.place})"
