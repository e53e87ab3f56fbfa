"""Which literals of the last run move with the clock, and what a run makes of it."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.read_query import clock_moves
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.strategies.no_op import no_op
from spark_mv.maintenance.strategies.propose import FOLLOWABLE

pytestmark = pytest.mark.unit


def facts(name: str) -> RunFacts:
    record = RunRecord("q", "c", "2026-01-01 00:00:00.000000", "UTC", {}, pins={name: "then"})
    target = TargetFacts(exists=True, ours=True, intact=True, record=record)
    return RunFacts("m", "2026-01-02 00:00:00.000000", "UTC", "i", (), target, pins={name: "now"})


@pytest.mark.parametrize(
    "name",
    ["getdate", "curdate", "now", "unix_timestamp", "current_time", "localtimestamp", "date 'today'",
     "timestamp_ntz 'yesterday'"],
)  # fmt: skip
def test_the_clock_moves_a_run_and_does_not_start_it_over(name: str) -> None:
    known = facts(name)
    codes = {reason.code for reason in no_op(known, "q", "c", True).reasons}
    assert codes == {"CLOCK_MOVED"} and codes <= FOLLOWABLE
    assert clock_moves(known)


@pytest.mark.parametrize("name", ["current_user", "version", "current_database"])
def test_the_session_starts_over(name: str) -> None:
    known = facts(name)
    assert {reason.code for reason in no_op(known, "q", "c", True).reasons} == {"SESSION_CHANGED"}
    assert not clock_moves(known)
