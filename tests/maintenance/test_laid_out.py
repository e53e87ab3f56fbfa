"""Columns by which files are laid out are those of the query: that is said before anything is asked, or paid, for the rows."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.maintenance.columns import ColumnPlan, plan_columns
from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

TYPES = {"id": "bigint", "day": "date", "at": "timestamp", "st": "struct<x:int>", "tags": "map<string,int>"}


def plan(target: TargetFacts | None = None, **config: Any) -> ColumnPlan:
    words = {"unique_key": "id", **config}
    analysis = analyze("select *, rand() as r from t", unique_key=words["unique_key"], schemas={"t": TYPES})
    query = [Column(name, kind) for name, kind in {**TYPES, "r": "double"}.items()]
    return plan_columns(analysis, query, target or TargetFacts(), read_config("m", words), None)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"partition_by": "nosuch"}, "partition_by: the query has no column 'nosuch'; its columns are id, day"),
        ({"liquid_clustered_by": ["id", "nosuch"]}, "liquid_clustered_by: the query has no column 'nosuch'"),
        ({"partition_by": "days(at)"}, "partition_by: the query has no column 'days(at)'"),
        ({"partition_by": "days(nosuch)", "file_format": "iceberg"}, "partition_by: the query has no column 'nosuch'"),
        ({"partition_by": "st"}, "partition_by: column st is of type struct<x:int>, by which no files are laid out"),
        ({"liquid_clustered_by": "tags"}, "liquid_clustered_by: column tags is of type map<string,int>"),
        ({"liquid_clustered_by": ["id", "day", "at", "st.x", "r"]}, "Delta clusters by 4 columns at most; these are 5"),
    ],
)
def test_what_cannot_be_laid_out_is_said(config: dict[str, Any], said: str) -> None:
    problems = plan(**config).problems
    assert len(problems) == 1 and said in problems[0], problems


@pytest.mark.parametrize(
    "config",
    [
        {"partition_by": "DAY"},
        {"partition_by": ["`day`"]},
        {"liquid_clustered_by": ["st.x", "id"]},
        {"partition_by": ["bucket(4, id)", "days(at)", "truncate(id, 3)"], "file_format": "iceberg"},
    ],
)
def test_what_can_be(config: dict[str, Any]) -> None:
    assert plan(**config).problems == ()


def test_rows_that_no_key_finds_keep_nothing() -> None:
    """The table has another key, of which the query has no column."""
    columns = tuple(Column(name, kind) for name, kind in {"k": "bigint", "k2": "bigint", "r": "double"}.items())
    assert not plan(TargetFacts(exists=True, columns=columns, ours=True)).keeps
    found = (*columns, Column("id", "bigint"))
    assert plan(TargetFacts(exists=True, columns=found, ours=True)).keeps
