"""The words of a refusal: place, way, reason and cure."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit


def test_grouping_by_a_draw_through_a_cte() -> None:
    sql = "with draws as (\n  select order_id, floor(rand() * 10) as bucket from orders)\nselect bucket, count(*) as n from draws group by bucket"
    (error,) = (e for e in analyze(sql, unique_key="n", model="orders_mv").errors if e.code == "PER_ROW_IN_GROUP_BY")
    assert error.message == (
        "model orders_mv: GROUP BY depends on rand() (line 2, column 26, through CTE draws.bucket). "
        "A drawn value cannot be a grouping key, because the groups would change whenever it is drawn again. "
        "Put it in its own nondeterministic_mv keyed by order_id and group that."
    )
    assert (error.line, error.column) == (2, 26)


def test_a_set_operation() -> None:
    errors = analyze("select id, rand() as r from t union all select id, v from u", unique_key="id").errors
    assert "UNION ALL depends on rand() (line 1, column 12)" in errors[0].message
    assert "Draw it above the set operation" in errors[0].message


def test_an_unresolved_column_names_what_there_is() -> None:
    (error,) = analyze("select nme as id from t", unique_key="id", schemas={"t": {"name": "string"}}).errors
    assert "column nme is in none of the tables in scope: t (name)" in error.message
    assert (error.line, error.column) == (1, 8)


def test_a_second_statement_has_a_place() -> None:
    (error,) = analyze(";select id from t;\n\n  select 1", unique_key="id", model="m").errors
    assert (error.code, error.line, error.column) == ("NOT_ONE_STATEMENT", 3, 3)


def test_a_parse_error_has_a_place() -> None:
    (error,) = analyze("select id\n  from t where", unique_key="id", model="m").errors
    assert error.code == "PARSE_ERROR" and error.message.startswith("model m: the SQL cannot be read (line ")
    assert error.line == 2, error
