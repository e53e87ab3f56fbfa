"""Columns by which files are laid out are those of the query: that is said before anything is asked, or paid, for the rows."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.maintenance.columns import plan_columns
from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.maintenance.layout import layout_changed, layout_clause, layout_problems, stays_clustered
from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

TYPES = {"id": "bigint", "day": "date", "at": "timestamp", "st": "struct<x:int>", "tags": "map<string,int>"}


QUERY = [Column(name, kind) for name, kind in {**TYPES, "r": "double"}.items()]


def problems(**config: Any) -> list[str]:
    return layout_problems(QUERY, read_config("m", {"unique_key": "id", **config}))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"partition_by": "nosuch"}, "partition_by: the query has no column 'nosuch'; its columns are id, day"),
        ({"liquid_clustered_by": ["id", "nosuch"]}, "liquid_clustered_by: the query has no column 'nosuch'"),
        ({"partition_by": "days(at)"}, "partition_by: the query has no column 'days(at)'"),
        ({"partition_by": "days(nosuch)", "file_format": "iceberg"}, "partition_by: the query has no column 'nosuch'"),
        ({"liquid_clustered_by": "st.nosuch"}, "liquid_clustered_by: the query has no column 'st.nosuch'"),
        ({"liquid_clustered_by": "id.x"}, "liquid_clustered_by: the query has no column 'id.x'"),
        ({"partition_by": "."}, "partition_by: the query has no column '.'"),
        ({"partition_by": "days()", "file_format": "iceberg"}, "partition_by: the query has no column ''"),
        ({"partition_by": "st"}, "partition_by: column st is of type struct<x:int>, by which no files are laid out"),
        ({"liquid_clustered_by": "tags"}, "liquid_clustered_by: column tags is of type map<string,int>"),
        ({"partition_by": "days(st.x)"}, "the query has no column 'days(st.x)'"),
        ({"partition_by": "foo(id)", "file_format": "iceberg"}, "partition_by: 'foo(id)' is no transform of Iceberg's"),
        (
            {"partition_by": "bucket(id)", "file_format": "iceberg"},
            "'bucket(id)' is no transform of Iceberg's; these are years",
        ),
        ({"partition_by": "days(3, at)", "file_format": "iceberg"}, "'days(3, at)' is no transform of Iceberg's"),
        ({"liquid_clustered_by": ["id", "day", "at", "st.x", "r"]}, "Delta clusters by 4 columns at most; these are 5"),
    ],
)
def test_what_cannot_be_laid_out_is_said(config: dict[str, Any], said: str) -> None:
    found = problems(**config)
    assert len(found) == 1 and said in found[0], found


@pytest.mark.parametrize(
    "config",
    [
        {"partition_by": "DAY"},
        {"partition_by": ["`day`"]},
        {"liquid_clustered_by": ["st.x", "id"]},
        {
            "partition_by": ["bucket(4, id)", "days(at)", "truncate(id, 3)", "date_hour(at)", "st.x"],
            "file_format": "iceberg",
        },
    ],
)
def test_what_can_be(config: dict[str, Any]) -> None:
    assert problems(**config) == []


@pytest.mark.parametrize(
    ("config", "clause"),
    [
        ({}, ""),
        ({"partition_by": ["Day", "`a b`"]}, "partitioned by (`Day`, `a b`)"),
        ({"liquid_clustered_by": ["st.x", "a.b"]}, "cluster by (`st`.`x`, `a.b`)"),
        (
            {"partition_by": ["truncate(id, 3)", "days( at )"], "file_format": "iceberg"},
            "partitioned by (truncate(3, `id`), days(`at`))",
        ),
    ],
)
def test_the_clause(config: dict[str, Any], clause: str) -> None:
    assert layout_clause(read_config("m", {"unique_key": "id", **config}), [*TYPES, "a b", "a.b"]) == clause


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"partition_by": ["DAY"]}, ("day",)),
        (
            {"partition_by": ["truncate(id, 3)", "day(at)", "date_hour(at)"], "file_format": "iceberg"},
            ("truncate(3, id)", "days(at)", "hours(at)"),
        ),
        ({"partition_by": ["bucket(4, `id`)", "st.x"], "file_format": "iceberg"}, ("bucket(4, id)", "st.x")),
        ({"partition_by": ["`a b`", "a.b"]}, ("`a b`", "`a.b`")),
    ],
)
def test_a_layout_that_the_table_tells_in_other_words(config: dict[str, Any], told: tuple[str, ...]) -> None:
    columns = (*QUERY, Column("a b", "int"), Column("a.b", "int"))
    there = TargetFacts(exists=True, columns=columns, partition_by=told)
    assert not layout_changed(columns, read_config("m", {"unique_key": "id", **config}), there)
    assert layout_changed(columns, read_config("m", {"unique_key": "id"}), there)


def test_rows_that_no_key_finds_keep_nothing() -> None:
    """The table has another key, of which the query has no column."""
    columns = tuple(Column(name, kind) for name, kind in {"k": "bigint", "k2": "bigint", "r": "double"}.items())
    config = read_config("m", {"unique_key": "id"})
    analysis = analyze("select *, rand() as r from t", unique_key="id", schemas={"t": TYPES})
    for more, keeps in (((), False), ((Column("id", "bigint"),), True)):
        there = TargetFacts(exists=True, columns=(*columns, *more), ours=True)
        assert plan_columns(analysis, QUERY, there, config, None).keeps is keeps


@pytest.mark.parametrize(
    ("target", "asked", "stays"),
    [
        ({"cluster_by": ("id",)}, {"partition_by": "day"}, True),
        ({"written": "[clusteringColumns=[],delta.feature.clustering=supported]"}, {"partition_by": "day"}, True),
        ({"written": "[delta.feature.deletionVectors=supported]"}, {"partition_by": "day"}, False),
        ({"cluster_by": ("id",)}, {"liquid_clustered_by": "day"}, False),
        ({"partition_by": ("day",), "written": "delta.feature.clustering=supported"}, {"partition_by": "day"}, False),
        ({"cluster_by": ("id",)}, {"partition_by": "day", "file_format": "iceberg"}, False),
    ],
)
def test_what_delta_does_not_replace(target: dict[str, Any], asked: dict[str, Any], stays: bool) -> None:
    config = read_config("m", {"unique_key": "id", **asked})
    assert stays_clustered(config, TargetFacts(exists=True, provider="delta", **target)) == stays
