"""The names in tests/query/fixtures/output_names.txt are the ones Spark gives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "query"))

from test_output_names import TABLES, cases  # noqa: E402


def test_spark_gives_these_names(spark: Any) -> None:
    for table, columns in TABLES.items():
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in columns.items())
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT {nulls}")
    wrong = {sql: spark.sql(sql).columns for sql, names in cases() if spark.sql(sql).columns != names}
    for table in TABLES:
        spark.catalog.dropTempView(table)
    assert wrong == {}
