"""The table of step kinds against what carries it out, and the choice of the publishing statement."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_mv.maintenance.key_range import KeyRange
from spark_mv.maintenance.staged import Staged, When
from spark_mv.maintenance.steps.kinds import KINDS, Work
from spark_mv.maintenance.steps.rewrite_rows import FEW_KEYS, LARGE, Rewrite, RowCounts, listable, rewrite_of
from spark_mv.spark.run.checks import HANDLERS

pytestmark = pytest.mark.unit

MACROS = Path(__file__).parents[2] / "macros" / "statements"


def test_every_kind_has_what_carries_it_out() -> None:
    assert set(HANDLERS) == {name for name, kind in KINDS.items() if kind.work is Work.ASK}
    texts = "\n".join(file.read_text(encoding="utf-8") for file in MACROS.glob("*.sql"))
    dispatched = set(re.findall(r"macro default__(\w+)\(args\)", texts))
    assert dispatched == {kind.macro for kind in KINDS.values() if kind.statement}


def test_every_condition_is_one_of_the_staged_rows() -> None:
    nothing = Staged()
    assert [when for when in When if nothing.holds(when)] == []
    assert nothing.holds(None)
    looked = Staged(checked=True, state_checked=True)
    assert {when for when in When if looked.holds(when)} == {When.UNCHANGED, When.STATE_UNCHANGED}


@pytest.mark.parametrize(
    ("staged", "due"),
    [
        (Staged(inserted=3), {When.CHANGED, When.INSERTED, When.ONLY_NEW, When.UNPROVEN}),
        (Staged().with_leaving(2), {When.CHANGED, When.DELETED, When.ONLY_LEAVE, When.REWRITTEN}),
        (
            Staged(inserted=1).with_leaving(2),
            {When.CHANGED, When.INSERTED, When.DELETED, When.COME_AND_LEAVE, When.UNPROVEN, When.REWRITTEN},
        ),
        (
            Staged(inserted=1, keys=KeyRange("10", "1", 12, 12, 12)),
            {When.CHANGED, When.INSERTED, When.ONLY_NEW},
        ),
        (
            Staged(inserted=1, keys=KeyRange(None, None, 12, 12, 12)),
            {When.CHANGED, When.INSERTED, When.ONLY_NEW, When.NO_BOUND, When.UNPROVEN},
        ),
        (Staged(updated=1, rewrite=Rewrite.JOIN_AND_GONE), {When.CHANGED, When.REWRITTEN, When.FEW_GONE, When.BY_JOIN}),
        (Staged(updated=1, rewrite=Rewrite.LIST), {When.CHANGED, When.REWRITTEN, When.BY_LIST}),
        (Staged(state_rows=2, state_updates=1, state_checked=True), {When.STATE_CHANGED, When.STATE_UPDATED}),
        (
            Staged(state_rows=2, state_deletes=1, state_checked=True),
            {When.STATE_CHANGED, When.STATE_NEW, When.STATE_GONE},
        ),
    ],
)
def test_conditions(staged: Staged, due: set[When]) -> None:
    assert {when for when in When if staged.holds(when)} == due


NARROW = KeyRange("10000000", "0", 110_000, 100_000)
SPREAD = KeyRange("10000000", "0", 9_000_000, 5)
FLOATS = KeyRange("10000000", "0", 2.5, 1.5)  # no exact literals
ONE, TWO = ("id",), ("id", "region")


@pytest.mark.parametrize(
    ("rows", "keys", "names", "can_join", "rewrite"),
    [
        # nothing of the table is written anew
        (RowCounts(0, 0, 0), NARROW, ONE, True, Rewrite.NOTHING),
        (RowCounts(5, 0, 0), NARROW, ONE, True, Rewrite.NOTHING),
        # a session that cannot join lists keys, or merges when it has seen them
        (RowCounts(0, 5, 0), NARROW, ONE, False, Rewrite.LIST),
        (RowCounts(0, 0, 5), NARROW, ONE, False, Rewrite.LIST),
        # a small table, or many rows: the join
        (RowCounts(1, 5, 0, LARGE - 1), NARROW, ONE, True, Rewrite.JOIN),
        (RowCounts(1, 5, 0, LARGE - 1), NARROW, TWO, True, Rewrite.JOIN),
        (RowCounts(0, FEW_KEYS + 1, 0, LARGE), NARROW, ONE, True, Rewrite.JOIN),
        # a large one, of which the keys' range spares most: the list
        (RowCounts(0, FEW_KEYS, 0, LARGE), NARROW, ONE, True, Rewrite.LIST),
        (RowCounts(0, 5, 0, LARGE), NARROW, TWO, True, Rewrite.LIST),
        # keys all over it, or without literals: the join
        (RowCounts(0, 5, 0, LARGE), SPREAD, ONE, True, Rewrite.JOIN),
        (RowCounts(0, 5, 0, LARGE), FLOATS, ONE, True, Rewrite.JOIN),
        # rows that only go are told to the join by their keys: few of them, beside a row that is written
        (RowCounts(0, 5, FEW_KEYS), NARROW, ONE, True, Rewrite.JOIN_AND_GONE),
        (RowCounts(0, 5, FEW_KEYS + 1), NARROW, ONE, True, Rewrite.LIST),
        (RowCounts(0, 5, FEW_KEYS), NARROW, TWO, True, Rewrite.JOIN_AND_GONE),
        (RowCounts(0, 5, FEW_KEYS + 1), NARROW, TWO, True, Rewrite.LIST),
        (RowCounts(0, 0, 1), NARROW, ONE, True, Rewrite.LIST),
        (RowCounts(1, 0, 1), NARROW, ONE, True, Rewrite.JOIN_AND_GONE),
    ],
)
def test_rewrite(rows: RowCounts, keys: KeyRange, names: tuple[str, ...], can_join: bool, rewrite: Rewrite) -> None:
    assert rewrite_of(rows, keys, names, can_join) is rewrite


def test_keys_are_listed_while_they_are_few_and_one_column() -> None:
    assert listable(ONE, FEW_KEYS) and not listable(ONE, FEW_KEYS + 1) and not listable(TWO, 1)
