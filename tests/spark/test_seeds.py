"""Types of seed columns, and values as text and as SQL, without a Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_mv.spark.adapter.handle import literal
from spark_mv.spark.adapter.seeds import SeedColumn, number_type, text, values_batches

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "numbers,data_type",
    [
        (["1", "2"], "bigint"),
        ([None], "bigint"),
        (["9223372036854775807", "-9223372036854775808"], "bigint"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["1" + "0" * 38], "string"),
        (["0.1", "2.50", None], "double"),
        (["1e3"], "bigint"),
        (["1e-3"], "double"),
        (["12345678901234567.89"], "decimal(19,2)"),
        (["12345678901234567.89", "0.0001"], "decimal(21,4)"),
        (["1" * 30 + "." + "1" * 9], "string"),
    ],
)
def test_number_types(numbers: list[str | None], data_type: str) -> None:
    assert number_type([None if n is None else Decimal(n) for n in numbers]) == data_type


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20)))
def test_a_number_type_holds_every_number_exactly(numbers: list[Decimal]) -> None:
    data_type = number_type(numbers)
    if data_type == "double":
        assert all(Decimal(repr(float(n))) == n for n in numbers)
    elif data_type == "bigint":
        assert all(n == int(n) for n in numbers)


@pytest.mark.parametrize(
    "value,expected",
    [
        (None, None),
        (True, "true"),
        (Decimal("1E+3"), "1000"),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4), "2024-02-29 01:02:03.000004"),
        ("O'Brien \\", "O'Brien \\"),
    ],
)
def test_text(value: Any, expected: str | None) -> None:
    assert text(value) == expected


def test_literals_escape_what_ends_a_string() -> None:
    assert literal("a'b\\c\nd") == "'a\\'b\\\\c\\nd'"
    assert literal(9007199254740993) == "9007199254740993"


def test_batches() -> None:
    columns = [SeedColumn("id", "`id`", "bigint"), SeedColumn("name", "`name`", "string")]
    rows = [(1, "a"), (2, None), (3, "it's")]
    first, second = values_batches(columns, rows, size=2)
    assert first == "values\n(cast('1' as bigint), cast('a' as string)),\n(cast('2' as bigint), cast(NULL as string))"
    assert second == "values\n(cast('3' as bigint), cast('it\\'s' as string))"
