"""What a run is expected to take, and what expectations learn from runs."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.pace import FIXED, USUAL_FIXED, Pace, learned
from spark_mv.maintenance.record import RunRecord, read_record

pytestmark = pytest.mark.unit


def record(**more: object) -> RunRecord:
    given = {"strategy": "ROW_BASED", "started_at": "2026-01-01 00:00:00.000000", **more}
    return RunRecord("q", "c", "2026-01-01", "UTC", {}, **given)  # type: ignore[arg-type]


def test_an_estimate_is_statements_and_rows() -> None:
    pace = Pace(0.5, {"COMPLETE_RECOMPUTE": 2.0})
    assert pace.seconds("COMPLETE_RECOMPUTE", 4, 3_000_000) == 8.0
    # a strategy that has not run yet is as quick by the row as a complete recompute
    assert pace.seconds("ROW_BASED", 6, 1_000_000) == 5.0


def test_a_small_run_tells_of_statements_and_a_large_one_of_rows() -> None:
    small = learned(record(cost=100.0, units=2.0), "2026-01-01 00:00:02.800000")
    assert small.fixed == pytest.approx(USUAL_FIXED * 1.5, rel=0.01)
    assert small.of_rows("ROW_BASED") == pytest.approx(1.0, rel=0.01)
    large = learned(record(cost=50e6, units=4.0), "2026-01-01 00:01:40.000000")
    assert large.fixed == pytest.approx(USUAL_FIXED, rel=0.05)
    assert large.of_rows("ROW_BASED") == pytest.approx(1.5, rel=0.05)


def test_expectations_come_near_what_runs_take() -> None:
    pace = Pace()
    for _ in range(12):
        pace = pace.after("ROW_BASED", 5, 4e6, 12.0).after("COMPLETE_RECOMPUTE", 3, 100, 0.9)
    assert pace.seconds("ROW_BASED", 5, 4e6) == pytest.approx(12.0, rel=0.1)
    assert pace.seconds("COMPLETE_RECOMPUTE", 3, 100) == pytest.approx(0.9, rel=0.1)


def test_one_odd_run_does_not_decide() -> None:
    """A first run in a cold session took a minute for what takes a second."""
    odd = Pace(0.3).after("ROW_BASED", 3, 0, 60.0)
    assert odd.fixed == pytest.approx(0.3 * 2.5)
    assert Pace(0.3, {"COMPLETE_RECOMPUTE": 1.0, "ROW_BASED": 90.0}).of_rows("ROW_BASED") == 4.0


def test_what_is_not_known_teaches_nothing() -> None:
    assert learned(None, "") == Pace()
    for lacks in (
        {"cost": None, "units": 1.0},
        {"cost": 1.0, "units": None},
        {"cost": 1.0, "units": 1.0, "started_at": ""},
    ):
        assert learned(record(**lacks), "2026-01-01 00:00:09.000000") == Pace()
    assert learned(record(cost=1.0, units=1.0), "2025-12-31 00:00:00.000000") == Pace()  # a clock that was put back


def test_a_first_run_tells_of_the_rows_that_it_must_have_read() -> None:
    """Nothing but a complete recompute was possible, so that nobody asked how many rows there were."""
    first = record(strategy="COMPLETE_RECOMPUTE", cost=None, units=1.0)
    assert learned(first, "2026-01-01 00:01:40.000000", 50e6).of_rows("COMPLETE_RECOMPUTE") == pytest.approx(
        1.5, rel=0.05
    )
    assert learned(first, "2026-01-01 00:01:40.000000") == Pace()
    assert learned(record(cost=None, units=1.0), "2026-01-01 00:01:40.000000", 50e6) == Pace()


def test_this_session_is_nearer_than_the_last_run() -> None:
    known = {FIXED: 0.9, "ROW_BASED": 2.0}
    assert Pace.of(known).fixed == 0.9
    assert Pace.of(known, 0.1) == Pace(0.1, {"ROW_BASED": 2.0})
    # of a record of an earlier release
    assert Pace.of({"ROW_BASED": 2.0}).fixed == USUAL_FIXED


def test_the_record_carries_it_from_run_to_run() -> None:
    before = record(cost=2e6, units=4.25, pace=Pace(0.2, {"ROW_BASED": 1.5}).known)
    assert read_record(before.to_json()) == before
