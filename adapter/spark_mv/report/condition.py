"""How a model fares, from what is recorded of it: one word, one sentence, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from spark_mv.report.facts import ModelFacts, RunRow


class Condition(str, Enum):
    """Ordered from what needs somebody to what needs nobody."""

    FAILED = "failed"
    AI_ERRORS = "AI errors"
    NEVER_RUN = "never run"
    FOREIGN = "written by others"
    DUE = "due"
    PENDING = "AI pending"
    FRESH = "up to date"

    @property
    def rank(self) -> int:
        return list(Condition).index(self)


@dataclass(frozen=True)
class Health:
    """`last` is the newest run of all, `succeeded_at` when the newest one that succeeded started (seconds; from its commit where no
    history is kept). `next_change` (seconds) is when a row enters or leaves by the clock alone; `follows_clock`: at
    every move of it. `rows`: of the table, as the last run knew."""

    condition: Condition
    sentence: str
    last: RunRow | None
    succeeded_at: float | None
    next_change: float | None
    follows_clock: bool
    rows: int | None
    ai_pending: int
    ai_errors: int

    @property
    def waiting(self) -> str:
        """What waits for AI functions, in words; empty where nothing does."""
        counts = ((self.ai_pending, "pending"), (self.ai_errors, "errors"))
        return ", ".join(f"{number:,} {what}" for number, what in counts if number)


def instant(text: str | None) -> float | None:
    """Seconds since 1970 of a recorded instant (UTC text), None where there is none that can be read."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text.strip().removesuffix(" UTC").removesuffix("Z"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def health(model: ModelFacts, now: float) -> Health:
    """What is known at `now` (seconds since 1970)."""
    last = model.runs[0] if model.runs else None
    record = model.record if model.exists else None
    worked = next((run.started_at for run in model.runs if not run.failed), None)
    recorded = instant(model.recorded_at) if record else None
    succeeded = max((at for at in (worked, recorded) if at is not None), default=None) if model.exists else None
    next_change = instant(record.next_change_at) if record and record.clock_solved else None
    pending = record.ai_pending if record else 0
    errors = (last.ai_errors or 0) if last and not last.failed else 0
    follows = bool(record and not record.clock_solved)
    condition, sentence = _judged(model, last, next_change, pending, errors, now)
    rows = record.target_rows if record else None
    return Health(condition, sentence, last, succeeded, next_change, follows, rows, pending, errors)


def _judged(
    model: ModelFacts, last: RunRow | None, next_change: float | None, pending: int, errors: int, now: float
) -> tuple[Condition, str]:
    if last is not None and last.failed:
        how = "failed" if last.strategy else "was stopped before it had a plan"
        return Condition.FAILED, f"The last run {how}; the table is as the run before left it." if model.exists else (
            f"The last run {how}; there is no table."
        )
    if not model.exists:
        return Condition.NEVER_RUN, "There is no table yet." if last is None else "The table is gone."
    if model.record is None:
        return Condition.NEVER_RUN, "The table carries no record of a run of this model."
    if errors:
        return Condition.AI_ERRORS, f"{errors:,} AI calls had no answer in the last run; later runs ask again."
    if model.foreign_operation:
        return (
            Condition.FOREIGN,
            f"Somebody else's {model.foreign_operation} changed rows; the next run puts them right.",
        )
    if next_change is not None and next_change <= now:
        return Condition.DUE, "Rows enter or leave by the clock since then; the next run moves them."
    if pending:
        return Condition.PENDING, f"{pending:,} AI answers are left for later runs."
    return Condition.FRESH, "Nothing waits."
