"""`freeze_where` is one condition that Spark can evaluate on the rows of the result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import Column
from spark_mv.spark.run.frozen_condition import check_condition

pytestmark = pytest.mark.unit
COLUMNS = (Column("n", "int"), Column("a`b", "struct<x:int>"))


def unasked(sql: str) -> Any:
    pytest.fail(f"nothing is asked of Spark: {sql}")


@pytest.mark.parametrize(
    "condition", ["true) or (true", "n > 1) group by (n", "n > 1; drop table t", "n >", "n > 1 /*", ")"]
)
def test_what_is_not_one_condition_is_not_asked(condition: str) -> None:
    with pytest.raises(
        RefusedError, match=r"FREEZE_WHERE.*model m: freeze_where: .* is not one condition\. The table was not touched"
    ):
        check_condition(unasked, "m", condition, COLUMNS)


def test_no_condition_asks_nothing() -> None:
    check_condition(unasked, "m", "", COLUMNS)


@pytest.mark.parametrize(
    ("found", "says"), [("boolean", ""), ("int", "gives int, and a condition has to be true or false")]
)
def test_sparks_type_of_it_decides(found: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def columns(query: Any, sql: str) -> Any:
        asked.append(sql)
        return [SimpleNamespace(type=found)]

    monkeypatch.setattr("spark_mv.spark.run.frozen_condition.query_columns", columns)
    if says:
        with pytest.raises(RefusedError, match=says):
            check_condition(unasked, "m", "n > 1 -- as it was", COLUMNS)
    else:
        check_condition(unasked, "m", "n > 1 -- as it was", COLUMNS)
    assert asked == [
        "SELECT (\nn > 1 -- as it was\n) AS condition FROM (SELECT CAST(NULL AS int) AS `n`, CAST(NULL AS struct<x:int>) AS `a``b`)"
    ]


def test_what_spark_cannot_evaluate_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def columns(query: Any, sql: str) -> Any:
        raise RuntimeError("[UNRESOLVED_COLUMN] there is no nn\nmore")

    monkeypatch.setattr("spark_mv.spark.run.frozen_condition.query_columns", columns)
    with pytest.raises(
        RefusedError, match=r"cannot be evaluated on the query's columns: \[UNRESOLVED_COLUMN\] there is no nn\. The"
    ):
        check_condition(unasked, "m", "nn > 1", COLUMNS)
