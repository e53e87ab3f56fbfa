"""Conditions that hold for listed rows, as another database reads them."""

from __future__ import annotations

import sqlite3
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_mv.query.syntax.literals import LISTS, in_rows

KEYS = ["kind", "nr", "day"]
ROWS = list(product(["a", "b", ""], range(-1, 3), range(4)))


@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=20))
def test_the_condition_holds_for_these_rows_and_no_other(rows: list[tuple[str, int, int]]) -> None:
    condition = in_rows(KEYS, rows, "t.")
    assert condition is not None and "named_struct" not in condition
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (kind text, nr int, day int)")
        database.executemany("insert into t values (?, ?, ?)", ROWS)
        found = database.execute(f"select * from t where {condition}").fetchall()
        neither = database.execute(f"select count(*) from t where not {condition}").fetchone()
    assert sorted(found) == sorted(set(rows)) and neither == (len(ROWS) - len(found),)


@pytest.mark.parametrize(("values", "compared"), [(LISTS, False), (LISTS + 1, True)])
def test_rows_are_compared_where_no_column_has_few_values(
    monkeypatch: pytest.MonkeyPatch, values: int, compared: bool
) -> None:
    rows = [(n % values, n) for n in range(2 * values)]
    condition = in_rows(["a", "b"], rows) or ""
    assert ("named_struct" in condition) == compared
    assert condition.count(" IN (") == (3 if compared else values)
    monkeypatch.setattr("spark_mv.query.syntax.literals.COMPARED", len(rows))
    assert in_rows(["a", "b"], rows) == condition
    monkeypatch.setattr("spark_mv.query.syntax.literals.COMPARED", len(rows) - 1)
    assert (in_rows(["a", "b"], rows) is None) == compared


def test_a_value_without_an_exact_literal() -> None:
    assert in_rows(["a", "b"], [(1, 2), (1, 0.5)]) is None and in_rows(["a"], []) is None
