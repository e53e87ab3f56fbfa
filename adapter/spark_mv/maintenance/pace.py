"""What a run takes, in seconds: its fixed cost (statements to plan, commits to make) and its rows. Estimated from what runs took.

    seconds = FIXED × units of fixed cost + seconds per million rows of the strategy × estimated rows

Both factors are learned together: what a run took against what was expected of it is laid on each of them by its share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.steps.fixed_cost import LOOKS

FIXED = "FIXED"
"""The entry of a record's `pace` that is no strategy: seconds of one unit of fixed cost."""
USUAL_FIXED = 0.35
"""Seconds of a unit before anything is learned: a small staging table written on two cores."""
USUAL_ROWS = 1.0
"""Seconds of a million estimated rows before anything is learned."""
TRUSTED = 4.0
"""A factor that one run may be away from what was expected of it, and a strategy's rows from those of a complete recompute:
runs were made on warm and cold, idle and busy machines."""
WEIGHT = 0.5
"""How much the newest run counts."""


@dataclass(frozen=True)
class Pace:
    """`fixed`: seconds of a unit; `rows`: seconds per million estimated rows, by strategy."""

    fixed: float = USUAL_FIXED
    rows: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Mapping[str, float], session: float | None = None) -> Pace:
        """What a record knows; `session`: seconds of a unit in runs of this session, which are nearer."""
        rows = {name: value for name, value in known.items() if name != FIXED}
        return cls(session or known.get(FIXED) or USUAL_FIXED, rows)

    @property
    def known(self) -> dict[str, float]:
        """For a record."""
        return {FIXED: round(self.fixed, 4), **{name: round(value, 4) for name, value in self.rows.items()}}

    def of_rows(self, strategy: str) -> float:
        """Seconds per million estimated rows."""
        whole = self.rows.get("COMPLETE_RECOMPUTE") or USUAL_ROWS
        return min(max(self.rows.get(strategy) or whole, whole / TRUSTED), whole * TRUSTED)

    def seconds(self, strategy: str, units: float, rows: float) -> float:
        """The estimate."""
        return self.fixed * units + self.of_rows(strategy) * rows / 1e6

    def after(self, strategy: str, units: float, rows: float, took: float) -> Pace:
        """With what a run took, in seconds."""
        fixed, expected = self.fixed * units, self.seconds(strategy, units, rows)
        if took <= 0 or expected <= 0:
            return self
        away = min(max(took / expected, 1 / TRUSTED), TRUSTED) - 1
        share = fixed / expected
        per_row = self.of_rows(strategy) * (1 + WEIGHT * (1 - share) * away)
        return Pace(self.fixed * (1 + WEIGHT * share * away), {**self.rows, strategy: per_row})


def took(record: RunRecord | None, committed_at: str) -> float | None:
    """Seconds from the start of the run that left the record until its commit (`committed_at`, UTC); None where not known."""
    if record is None or not record.started_at or not committed_at:
        return None
    try:
        spent = datetime.fromisoformat(committed_at) - datetime.fromisoformat(record.started_at)
    except ValueError:
        return None
    return spent.total_seconds() if spent.total_seconds() > 0 else None


def learned(record: RunRecord | None, committed_at: str, whole: float | None = None) -> Pace:
    """What the record knew, and what its own run took. `whole`: estimated rows of a complete recompute now, for a run that had no estimate because
    nothing but that was possible, as a first one."""
    if record is None:
        return Pace()
    pace, spent = Pace.of(record.pace), took(record, committed_at)
    rows = whole if record.cost is None and record.strategy == "COMPLETE_RECOMPUTE" else record.cost
    if spent is None or record.units is None or rows is None:
        return pace
    return pace.after(record.strategy, LOOKS + record.units, rows, spent)
