"""Which strategy an estimate favours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_mv.maintenance.changes import Changes, SourceChange
from spark_mv.maintenance.cost import ROWS, SECONDS, Cost, Weights, cost_of

pytestmark = pytest.mark.unit


def changes(tables: int, target_rows: int = 1_000) -> Changes:
    moved = tuple(SourceChange(f"s{k}", 1, 2, rows=10, table_rows=100_000) for k in range(tables))
    return Changes(moved, source_rows={"s": 500_000}, target_rows=target_rows)


@pytest.mark.parametrize("weights", [ROWS, SECONDS])
def test_few_changes_of_one_table_are_followed(weights: Weights) -> None:
    found = Cost(changes(1), weights)
    assert found.append_only(enters=False) < found.linear < found.restricted({}) < found.complete


def test_what_is_looked_for_in_the_source_is_read() -> None:
    """Rows that the clock lets in and out, and those that a DELETE marked in their files: as seconds, for the price of reading them."""
    (change,) = changes(1).sources
    marked = replace(changes(1), sources=(replace(change, searched=100_000),))
    found, by_clock, searched = (
        cost_of(*asked) for asked in ((changes(1), "seconds"), (changes(1), "seconds", "S"), (marked, "seconds"))
    )
    assert by_clock.append_only(enters=False) == found.append_only(enters=False)
    assert by_clock.append_only(enters=True) == found.append_only(enters=True) + SECONDS.scanned * 500_000
    assert by_clock.linear == found.linear + 2 * SECONDS.scanned * 500_000
    assert searched.linear == found.linear + SECONDS.scanned * 100_000
    assert cost_of(marked, "rows", "S").linear == cost_of(changes(1), "rows").linear


def test_rows_that_the_clock_gives_other_values_are_written() -> None:
    """As changed rows are: if they are all of the table, it is as well made anew."""
    none, few, all_ = (cost_of(changes(1), "seconds", clock_rows=rows) for rows in (0, 10, 1_000_000))
    assert few.linear == none.linear + SECONDS.write * 10 == cost_of(changes(1), "seconds").linear + SECONDS.write * 10
    assert none.linear < none.complete < all_.linear
    assert all_.complete == none.complete


def test_a_source_that_is_read_twice_pays_where_the_table_is_large() -> None:
    """Once to find what a change touches, and once for that: a small table of groups is as quickly computed from it."""
    small, large = (Cost(changes(1, target_rows=rows), SECONDS) for rows in (1_000, 500_000))
    assert small.restricted({"s": 1}) > small.complete
    assert large.restricted({"s": 1}) < large.complete


@pytest.mark.parametrize("weights", [ROWS, SECONDS])
def test_a_join_of_which_every_table_changed_is_recomputed(weights: Weights) -> None:
    found = Cost(changes(5), weights)
    assert found.restricted({"s": 5}) > found.complete


def test_the_setting_says_what_is_compared() -> None:
    assert cost_of(changes(1), "rows") == Cost(changes(1), ROWS)
    assert cost_of(changes(1), "seconds") == Cost(changes(1), SECONDS)
