"""Whether a state table and the model's own table belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_mv.maintenance.facts import TargetFacts
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.state import (
    NO_TABLE,
    PUBLISHED,
    StateFacts,
    StateRecord,
    as_published,
    earlier,
    read_state_record,
    stamp,
    standing,
)

pytestmark = pytest.mark.unit

RECORD = RunRecord(
    "q",
    "c",
    "2026-01-01",
    "UTC",
    {},
    columns={"id": "1"},
    state="s1",
    state_version=5,
    started_at="t1",
    invocation_id="i",
)
TARGET = TargetFacts(exists=True, ours=True, record=RECORD, intact=True)
STATE = StateFacts(exists=True, version=6, record=StateRecord("s1", made_for=PUBLISHED), record_version=6)
NO_STATE = replace(TARGET, record=replace(RECORD, state="", state_version=None))


@pytest.mark.parametrize(
    ("state", "target", "trusted", "problem"),
    [
        (STATE, TARGET, True, ""),
        (StateFacts(), TARGET, False, "gone"),
        (StateFacts(), NO_STATE, False, ""),
        (StateFacts(), TargetFacts(), False, ""),
        # of another generation, or of a time in which the model had no state: ids differ, and no run died in between
        (replace(STATE, record=StateRecord("s0", made_for=PUBLISHED)), TARGET, False, "another table"),
        (STATE, NO_STATE, False, ""),
        (STATE, TargetFacts(), False, ""),
        # a run died between the two commits: the first one, one that made the state anew, one that used it
        (replace(STATE, record=StateRecord("s1", made_for=NO_TABLE)), TargetFacts(), True, ""),
        (replace(STATE, record=StateRecord("s2", made_for=stamp(TARGET))), TARGET, True, ""),
        (replace(STATE, record=StateRecord("s1", made_for=stamp(TARGET))), TARGET, True, ""),
        (replace(STATE, record=StateRecord("s2", made_for=stamp(TARGET))), NO_STATE, True, ""),
        # the table's bookkeeping is lost: nothing names the state
        (STATE, replace(TARGET, record=None), True, ""),
        (replace(STATE, record=StateRecord("s1", made_for=NO_TABLE)), replace(TARGET, record=None), False, ""),
        # restored from a copy, written to by somebody else
        (replace(STATE, version=4, record_version=4), TARGET, False, "older copy"),
        (replace(STATE, version=8, foreign="DELETE"), TARGET, True, "DELETE"),
        (replace(STATE, version=8, foreign="DELETE", readable=False), TARGET, False, "DELETE"),
        (StateFacts(exists=True, version=0, foreign="CREATE TABLE AS SELECT"), TARGET, False, "no commit"),
        # made by an earlier version, which wrote no records into it
        (StateFacts(exists=True, version=0), replace(TARGET, record=replace(RECORD, columns={}, state="")), True, ""),
    ],
)
def test_standing(state: StateFacts, target: TargetFacts, trusted: bool, problem: str) -> None:
    found = standing(state, target)
    assert found.trusted is trusted
    assert problem in found.problem and bool(problem) == bool(found.problem)
    assert (found.at_version is not None) == (trusted and state.foreign is not None)


def test_what_is_no_record_of_a_state() -> None:
    for text in (None, "", "no json", '{"spark_mv": 1}', '{"spark_mv_state": "x", "id": "1"}', "[]"):
        assert read_state_record(text) is None


OURS = StateRecord("s1", made_for=PUBLISHED, kept={"r": "rand"}, columns={"x": "x"}, keys=("id",))
DEAD = replace(OURS, made_for=stamp(TARGET))


@pytest.mark.parametrize(
    ("newest", "older", "wanted"),
    [
        # a run of the same query has died; of others: what they draw, what else they have, their key
        (DEAD, [OURS], None),
        (replace(DEAD, kept={"r": "uuid"}), [OURS], 5),
        (replace(DEAD, columns={"x": "x + 1"}), [OURS], 5),
        (replace(DEAD, keys=("id", "k")), [OURS], 5),
        # two have died, whatever the first of them was; and somebody else wrote before
        (replace(DEAD, kept={"r": "uuid"}), [replace(DEAD, kept={"r": "uuid"}), OURS], 4),
        (replace(DEAD, kept={"r": "uuid"}), [DEAD, None, OURS], 3),
        # the state is as a run left it that published, or what was before is gone
        (replace(OURS, kept={"r": "uuid"}), [OURS], None),
        (replace(DEAD, kept={"r": "uuid"}), [], None),
    ],
)
def test_the_state_that_the_table_stands_on(
    newest: StateRecord, older: list[StateRecord | None], wanted: int | None
) -> None:
    before = earlier(newest, ((5 - k, record) for k, record in enumerate(older)))
    state = StateFacts(exists=True, version=6, record=newest, record_version=6, earlier=before)
    assert as_published(state, TARGET) == (None if wanted is None else (wanted, OURS))
    assert state.complete is (bool(older) or newest.made_for == PUBLISHED)
