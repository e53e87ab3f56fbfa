"""The table format that the tests are run on: `FORMAT=iceberg pytest integration_tests/materialization` makes the tables of models and
of sources Iceberg tables. With `FORMAT_VERSION=3` these have row lineage, so that their commits say which rows changed (the tables of models, where
`engine` or direct.py makes them). The tests themselves speak of Delta's; what only one format has is marked."""

from __future__ import annotations

import os
import re

import pytest

from spark_mv.spark.formats.registry import FORMATS

FORMAT = os.environ.get("FORMAT", "delta")
MADE_WITH = (
    {**(FORMATS["iceberg"].properties() or {}), "format-version": "3"}
    if FORMAT == "iceberg" and os.environ.get("FORMAT_VERSION") == "3"
    else {}
)
"""Properties of the tables of models and sources."""
REPLACES_BY_KEY = FORMATS[FORMAT].replaces_by_key
"""Whether rows are replaced by their keys in one statement; else they are merged."""
VERSION = {
    "delta": "describe history {table} limit 1",
    "iceberg": "select count(*) - 1 as version from {table}.history",
}
"""Statements whose first column, `version`, is a number that each commit to a table raises by one."""
COMMITS = {
    "delta": "describe history {table}",
    "iceberg": "select to_json(summary), summary['spark_mv'] from {table}.snapshots order by committed_at desc",
}
"""Statements whose rows are a table's commits, the newest first, with what a run wrote into them."""
_PROPERTIES = re.compile(r"\s*\btblproperties\s*\(([^()]*)\)", re.IGNORECASE)


def in_format(statement: str, table_format: str = FORMAT) -> str:
    """A test's statement that makes a Delta table, for the format: without Delta's properties.

    >>> in_format("create table t using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as select 1 as id", "iceberg")
    'create table t using iceberg as select 1 as id'
    """
    if table_format == "delta":
        return statement
    made, found = re.subn(r"\busing delta\b", f"using {table_format}", statement, flags=re.IGNORECASE)
    if not found:
        return statement
    made = _PROPERTIES.sub(_others, made)
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in MADE_WITH.items() if f"'{name}'" not in made)
    if not listed:
        return made
    if _PROPERTIES.search(made):
        return _PROPERTIES.sub(lambda found: f" tblproperties ({found[1]}, {listed})", made)
    return re.sub(
        rf"\busing {table_format}\b", f"using {table_format} tblproperties ({listed})", made, flags=re.IGNORECASE
    )


def _others(properties: re.Match[str]) -> str:
    """Those that are none of Delta's."""
    others = [text.strip() for text in properties[1].split(",") if not text.strip(" '").lower().startswith("delta.")]
    return f" tblproperties ({', '.join(others)})" if others else ""


def delta_only(why: str) -> pytest.MarkDecorator:
    """Marks a test of something that Delta alone has, and says what it is."""
    return pytest.mark.skipif(FORMAT != "delta", reason=f"Delta alone: {why}")
