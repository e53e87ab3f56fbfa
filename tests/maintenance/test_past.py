"""What past runs say about estimates."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.past import pace, scaled
from spark_mv.maintenance.record import RunRecord, read_record

pytestmark = pytest.mark.unit


def record(strategy: str, cost: float | None, known: dict[str, float] | None = None) -> RunRecord:
    return RunRecord(
        "q",
        "c",
        "2026-01-01",
        "UTC",
        {},
        strategy=strategy,
        cost=cost,
        started_at="2026-01-01 00:00:00.000000",
        pace=known or {},
    )


def test_the_pace_of_a_run_is_its_time_until_the_commit() -> None:
    found = pace(record("ROW_BASED", 2e6), "2026-01-01 00:00:15.000000", 0)
    assert found == {"ROW_BASED": 5.0}
    assert pace(record("ROW_BASED", 2e6, {"ROW_BASED": 1.0}), "2026-01-01 00:00:15.000000", 0) == {"ROW_BASED": 3.0}


def test_a_recompute_without_an_estimate_has_today_s() -> None:
    assert pace(record("COMPLETE_RECOMPUTE", None), "2026-01-01 00:00:25.000000", 4e6) == {"COMPLETE_RECOMPUTE": 5.0}


def test_small_runs_say_nothing_of_rows() -> None:
    assert pace(record("ROW_BASED", 500.0), "2026-01-01 00:00:10.000000", 0) == {}
    assert pace(None, "", 1e9) == {}


def test_the_time_of_a_run_s_statements_is_not_its_rows() -> None:
    """A first append of a fresh session, 3 seconds, estimated at a tenth of a million rows: it was taken for one that
    is slow by the row, and the next new rows went the longer way."""
    known = pace(record("APPEND_ONLY", 104_000.0, {"COMPLETE_RECOMPUTE": 5.0}), "2026-01-01 00:00:03.000000", 0)
    assert known == {"COMPLETE_RECOMPUTE": 5.0, "APPEND_ONLY": 0.0}
    assert scaled("APPEND_ONLY", 104_000.0, known) == 26_000.0
    assert pace(record("APPEND_ONLY", 104_000.0), "2026-01-01 00:00:00.000000", 0) == {}


def test_estimates_follow_the_pace_within_limits() -> None:
    assert scaled("ROW_BASED", 100.0, {"ROW_BASED": 3.0}) == 100.0
    assert scaled("ROW_BASED", 100.0, {"ROW_BASED": 3.0, "COMPLETE_RECOMPUTE": 1.5}) == 200.0
    assert scaled("ROW_BASED", 100.0, {"ROW_BASED": 300.0, "COMPLETE_RECOMPUTE": 1.5}) == 400.0


def test_the_record_carries_it_from_run_to_run() -> None:
    before = record("ROW_BASED", 2e6, {"ROW_BASED": 1.0})
    assert read_record(before.to_json()) == before
