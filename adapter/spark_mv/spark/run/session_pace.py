"""What a unit of fixed cost takes in this session, learned from the runs of all models in it."""

from __future__ import annotations

from threading import Lock
from typing import Any

from spark_mv.maintenance.pace import Pace
from spark_mv.maintenance.plan import Candidate
from spark_mv.maintenance.steps.fixed_cost import LOOKS

_LOCK = Lock()


def session_fixed(session: Any) -> float | None:
    """Seconds of a unit; None before the first run ended."""
    found: float | None = getattr(session, "_mv_fixed_seconds", None)
    return found


def ended(session: Any, ran: Candidate | None, pace: Pace, took: float) -> None:
    """A run of the session ended: `ran` is the strategy that it took, `took` its seconds from its first look on."""
    if ran is None or ran.units is None or ran.cost is None:
        return
    with _LOCK:
        known = Pace(session_fixed(session) or pace.fixed, pace.rows)
        session._mv_fixed_seconds = known.after(ran.strategy, LOOKS + ran.units, ran.cost, took).fixed
