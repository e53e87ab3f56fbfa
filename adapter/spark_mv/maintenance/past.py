"""What past runs cost in time, so that estimates of one strategy are comparable with those of another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from spark_mv.maintenance.record import RunRecord

TELLING = 100_000.0
"""Estimated rows from which on a run's time says something of its rows; below, it is the time of its statements."""
STATEMENTS = 5.0
"""Seconds that the statements of a run may take whatever they read, in a session that just started."""
TRUSTED = 4.0
"""A factor that past runs may change an estimate by: they were made on warm and cold, idle and busy machines."""


def pace(record: RunRecord | None, committed_at: str, whole: float) -> dict[str, float]:
    """Seconds per million estimated rows, by strategy: what the record knew, and what its own run took until its commit
    (`committed_at`, UTC) beyond the time of its statements. `whole`: the estimate of a complete recompute now, for a record
    of one that had none."""
    if record is None:
        return {}
    known = dict(record.pace)
    cost = whole if record.cost is None and record.strategy == "COMPLETE_RECOMPUTE" else record.cost
    if cost is not None and cost >= TELLING and record.started_at and committed_at:
        try:
            took = datetime.fromisoformat(committed_at) - datetime.fromisoformat(record.started_at)
        except ValueError:
            return known
        if took.total_seconds() > 0:
            seconds = max(took.total_seconds() - STATEMENTS, 0.0) / cost * 1e6
            before = known.get(record.strategy, seconds)
            known[record.strategy] = round((before + seconds) / 2, 3)
    return known


def scaled(strategy: str, cost: float, known: Mapping[str, float]) -> float:
    """The estimate in rows of a complete recompute, as far as past runs of both are known."""
    own, whole = known.get(strategy), known.get("COMPLETE_RECOMPUTE")
    if own is None or not whole:
        return cost
    return cost * min(max(own / whole, 1 / TRUSTED), TRUSTED)
