"""What `explain_mv` prints."""

from __future__ import annotations

import pytest

from spark_mv.explain.run import explain_text
from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.plan import Candidate, Plan, Reason
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.rewrite.clock_split import split_clock

pytestmark = pytest.mark.unit
FACTS = RunFacts("m", "2026-01-01 00:00:00.000000", "UTC", "i", (), TargetFacts())
PLAN = Plan(
    "m",
    "ROW_BASED",
    (Candidate("NO_OP", False, (Reason("CLOCK_MOVED", "it moved"),)), Candidate("ROW_BASED", True, (), 1234.5)),
)


def explained(sql: str, clock_solved: bool = True) -> str:
    analysis = analyze(sql, unique_key=("id",), schemas={"t": {"id": "int", "ts": "timestamp"}})
    predicates = split_clock(sql, {"t": {"id": "int", "ts": "timestamp"}}, "UTC").predicates
    rewritten = Rewritten(sql, (), "now", clock=True, predicates=predicates, clock_solved=clock_solved)
    run = {
        "started_at": "2026-01-01 00:00:00",
        "seconds": 2.25,
        "estimated_cost": None,
        "strategy": "NO_OP",
        "reasons": "NOTHING_CHANGED",
        "status": "error",
        "message": "first line\nsecond line",
    }
    return explain_text(FACTS, analysis, rewritten, PLAN, None, [run])


def test_why_every_move_of_the_clock_recomputes() -> None:
    unsolved = "select id from t where hour(ts) = hour(now())"
    assert "could not be solved" in explained(unsolved, clock_solved=False)
    beside = "select id, current_date() as today from t where ts > now() - interval 1 day"
    text = explained(beside, clock_solved=False)
    assert "could not be solved" not in text and "the clock stands outside the windows too" in text


def test_costs_and_past_runs() -> None:
    text = explained("select id from t where ts > now()")
    assert "[cost 1,234]" in text or "[cost 1,235]" in text
    line = next(line for line in text.splitlines() if "2026-01-01 00:00:00 " in line and "NO_OP" in line)
    assert line.split() == ["2026-01-01", "00:00:00", "2.2", "-", "NO_OP", "NOTHING_CHANGED", "error:", "first", "line"]
