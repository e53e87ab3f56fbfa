"""Hive's metastore behind Iceberg's catalogue: what Spark's own statements ask of it is there, though Iceberg opened it first."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def opened(spark: Any) -> Any:
    """A Spark in which Iceberg has made a table before the metastore was asked for anything else."""
    spark.sql("create schema if not exists opened")
    spark.sql("create table opened.t using iceberg as select 1 as id")
    yield spark
    spark.sql("drop schema opened cascade")


def test_functions_and_statistics(opened: Any) -> None:
    opened.sql("create function opened.f as 'org.apache.hadoop.hive.ql.udf.UDFHex'")
    assert "spark_catalog.opened.f" in [row[0] for row in opened.sql("show user functions in opened").collect()]
    opened.sql("drop function opened.f")
    opened.sql("create table opened.parts using parquet partitioned by (p) as select 1 as id, 2 as p")
    opened.sql("analyze table opened.parts compute statistics for all columns")
    opened.sql("analyze table opened.parts partition (p) compute statistics")
    found = opened.sql("describe extended opened.parts").collect()
    assert any("1 rows" in str(row) for row in found)
