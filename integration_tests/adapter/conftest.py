"""The standard suite speaks PostgreSQL where it makes its own tables; here it is put into Spark's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_WORDS = (
    (r"\bTIMESTAMP WITHOUT TIME ZONE\b", "timestamp"),
    (r"\btimestamp without time zone\b", "timestamp"),
    (r"\b(VARCHAR|varchar|character varying)\s*\(\d+\)", "string"),
    (r"(?<![.\w'])(TEXT|text)\b(?!')", "string"),
    (r"\{database\}\.", ""),
    (r"\bNone\.", ""),
    (r"\badd column (\w+) ([\w()]+)( default ('[^']*'|null))?", r"add columns (\1 \2)"),
    (r"('(?:[^']|'')*'|[\w.]+(?:\([^()]*\))?)::(\w+)", r"cast(\1 as \2)"),
    (r'"(\w+)"', r"`\1`"),
)


_VARIANTS = (
    r"test_utils\.py::(?!TestDateAdd|TestDateDiff|TestCast\b|TestCurrentTimestamps|TestCalculateFreshness|TestFunction\b)",
    r"::TestSnapshot(Column|New|Invalid|DbtValid|Ephemeral)",
    r"::TestStoreTestFailuresAs",
    r"::TestPrePost(ModelHooks(InConfig|OnSeeds|OnSnapshots|Underscores)|SnapshotHooks)",
    r"::Test(Macro|Empty|Null)\w*QueryComments",
    r"::Test(Incremental|Table)Constraints(DdlEnforcement|Rollback)",
    r"::TestSeed(Config|With)",
    r"::TestPersistDocs(ColumnMissing|AllColumns|CommentOn|Quoted)",
    r"::TestCaching(Lower|Upper)",
    r"::TestDebug(InvalidProject|ProfileVariable)",
    r"::Test(MetadataWithEmpty|EmptySeed)Flag",
    r"::TestEphemeral(ErrorHandling|Multi|Nested)",
    r"::TestSimpleCopy",
    r"::TestCloneSame",
    r"::Test(View|Incremental)ConstraintsColumnsEqual",
    r"::Test(Incremental|Table)ContractSqlHeader",
    r"::Test(AfterRunHooks|HooksRefsOnSeeds|DuplicateHooks)",
    r"::Test(SimpleSeed|SeedCustomSchema|SeedParsing|SeedSpecificFormats)",
    r"::TestUnitTest(InvalidInput|CaseInsensitivity|QuotedReserved|ingVarchar)",
    r"::TestPy(Spark|thonEmpty|thonMetaGet|thonSample)",
    r"::TestCloneNotPossible",
    r"::TestShow(DoesNot|SqlHeader)",
)
"""Classes of the standard suite that say once more, with other settings or with SQL of dbt-spark's alone, what their kin say: before a
release (`-m slow`)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(re.search(variant, item.nodeid) for variant in _VARIANTS):
            item.add_marker(pytest.mark.slow)


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


@pytest.fixture(scope="class", autouse=True)
def project_speaks_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.cls is None:  # a test with processes of its own
        yield
        return
    project: Any = request.getfixturevalue("project")
    plain = project.run_sql
    for file in Path(project.project_root).rglob("*.sql"):
        text = file.read_text(encoding="utf-8")
        if (bare := re.sub(r"\{\{ *target\.database *\}\}\.", "", text)) != text:
            file.write_text(bare, encoding="utf-8")

    def run_sql(sql: str, fetch: Any = None) -> Any:
        result = None
        for statement in to_spark(sql):
            result = plain(statement, fetch=fetch)
        return result

    project.run_sql = run_sql
    yield
