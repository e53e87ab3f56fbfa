"""Keys above all that the table has."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_mv.maintenance.key_bound import bound_text, has_bound, higher, is_above, lower, share
from spark_mv.query.syntax.literals import NOT_UTF8, between, in_list

pytestmark = pytest.mark.unit
TEXTS = st.text(st.characters(exclude_characters=NOT_UTF8))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("bigint", True),
        ("decimal(10,2)", True),
        ("date", True),
        ("string", True),
        ("double", False),
        ("timestamp", False),
        ("string collate UNICODE_CI", False),
        ("array<int>", False),
    ],
)
def test_types(kind: str, wanted: bool) -> None:
    assert has_bound(kind) is wanted


@given(st.lists(st.integers(), min_size=2) | st.lists(st.dates(), min_size=2) | st.lists(TEXTS, min_size=2))
def test_the_bound_is_the_highest_key_in_spark_s_order(keys: list[object]) -> None:
    bound: str | None = None
    for key in keys[:-1]:
        bound = higher(key, bound)
    order = (lambda k: k.encode("utf-8", "surrogatepass")) if isinstance(keys[0], str) else (lambda k: k)
    assert bound == bound_text(max(keys[:-1], key=order))  # type: ignore[arg-type]
    assert bound is not None
    assert is_above(keys[-1], bound) == all(order(keys[-1]) > order(k) for k in keys[:-1])  # type: ignore[arg-type]


def test_what_cannot_be_compared_is_not_above() -> None:
    assert not is_above(5, "2026-01-01")
    assert not is_above(date(2026, 1, 1), "5")
    assert not is_above(datetime(2026, 1, 1), "2025-01-01")
    assert not is_above(1.5, "1")
    assert is_above(Decimal("1.10"), "1.09")
    assert higher(None, "4") == "4" and higher(7, None) == "7"


def test_bytes_that_are_no_text_are_no_bound_and_no_literal() -> None:
    """A row says U+FFFD of any of them, so that what the key is, and where it stands among others, is not known."""
    key = f"a{NOT_UTF8}"
    assert bound_text(key) is None and higher(key, "z") is None and lower(key, "0") is None
    assert not is_above(key, "0")
    assert in_list("id", ["a", key]) is None and between("id", "a", key) is None


@given(st.lists(st.integers(), min_size=2) | st.lists(st.dates(), min_size=2) | st.lists(TEXTS, min_size=2))
def test_the_floor_is_the_lowest_key(keys: list[object]) -> None:
    order = (lambda k: k.encode("utf-8", "surrogatepass")) if isinstance(keys[0], str) else (lambda k: k)
    floor = bound_text(keys[0])
    for key in keys[1:]:
        floor = lower(key, floor)
    assert floor == bound_text(min(keys, key=order))  # type: ignore[arg-type]
    assert lower(None, "4") == "4"
    assert lower(3, None) is None  # nothing is known of the other keys


@pytest.mark.parametrize(
    ("low", "high", "floor", "bound", "wanted"),
    [
        (10, 60, "0", "100", 0.5),
        (Decimal("1.5"), Decimal("2.5"), "0.5", "4.5", 0.25),
        (date(2026, 1, 1), date(2026, 1, 11), "2025-12-12", "2026-01-21", 0.25),
        ("ORD-10", "ORD-90", "ORD-00", "ORD-99", 0.9),
        ("01f3-a", "fe77-b", "00ab-c", "ffe1-d", 1.0),
        ("ORD-5001", "ORD-5002", "ORD-0000", "ORD-9999", 0.0),
        (5, 5, "5", "5", None),
        (None, 5, "1", "9", None),
        (1, 5, None, "9", None),
        (1, 5, "2026-01-01", "9", None),
        (date(2026, 1, 1), date(2026, 1, 2), "1", "9", None),
    ],
)
def test_how_much_of_the_table_lies_between(low: object, high: object, floor: str, bound: str, wanted: float) -> None:
    found = share(low, high, floor, bound)
    assert found is None if wanted is None else found == pytest.approx(wanted, abs=0.05)
