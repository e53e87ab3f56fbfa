"""Conditions on what a move of the clock lets in or out."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from spark_mv.query.rewrite.clock_move import Between, bound_between, is_comparison
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.condition import read_condition

pytestmark = pytest.mark.unit
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAY = Between.of(Pins(NOW), NOW - timedelta(days=1))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ts >= current_timestamp() - interval 3 days", True),
        ("(o.ts > now() and ts <= now() + interval 1 day)", True),
        ("ts between current_date() - 3 and current_date()", True),
        ("ts > now() or late", False),
        ("not ts > now()", False),
        ("ts <=> now()", False),
        ("coalesce(ts, now()) > now()", False),
        ("ts > (select max(ts) from b)", False),
        ("mine(ts) > now()", False),
    ],
)
def test_comparisons(text: str, wanted: bool) -> None:
    tree = read_condition(text)
    assert tree is not None and is_comparison(tree) is wanted


def test_truth_at_two_instants_is_a_range_of_the_column() -> None:
    assert bound_between("ts > now()", True, None, "ts", DAY) == (
        "(((ts > TIMESTAMP'2025-12-31 00:00:00.000000+00:00') AND NOT (ts > TIMESTAMP'2026-01-01 00:00:00.000000+00:00')) OR "
        "((ts > TIMESTAMP'2026-01-01 00:00:00.000000+00:00') AND NOT (ts > TIMESTAMP'2025-12-31 00:00:00.000000+00:00')))"
    )


def test_bounds_tell_where_the_text_cannot() -> None:
    first, second = "TIMESTAMP'2025-12-31 00:00:00.000000+00:00'", "TIMESTAMP'2026-01-01 00:00:00.000000+00:00'"
    assert bound_between("ts > now() or late", False, None, "ts", DAY) == f"(((ts) > {first} AND (ts) <= {second}))"
    assert "NOT" not in bound_between("ts > now() or late", False, None, "ts", DAY)
    # a row may come and go between the two: only its bounds tell
    assert "NOT" not in bound_between("ts between now() and now() + interval 1 hour", True, "a", "b", DAY)
    assert "NOT" in bound_between("ts > now()", True, None, "ts", DAY)
