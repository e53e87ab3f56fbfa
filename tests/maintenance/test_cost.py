"""Which strategy an estimate favours."""

from __future__ import annotations

import pytest

from spark_mv.maintenance import cost
from spark_mv.maintenance.changes import Changes, SourceChange

pytestmark = pytest.mark.unit


def changes(tables: int) -> Changes:
    moved = tuple(SourceChange(f"s{k}", 1, 2, rows=10, table_rows=100_000) for k in range(tables))
    return Changes(moved, source_rows={"s": 500_000}, target_rows=1_000)


def test_few_changes_of_one_table_are_followed() -> None:
    found = changes(1)
    assert cost.append_only(found) < cost.linear(found) < cost.restricted(found, {"s": 1}) < cost.complete(found)


def test_a_join_of_which_every_table_changed_is_recomputed() -> None:
    found = changes(5)
    assert cost.restricted(found, {"s": 5}) > cost.complete(found)
