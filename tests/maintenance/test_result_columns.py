"""When the columns of a query's result are those that the last run was told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_mv.maintenance.facts import Column, RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.record import RunRecord, read_record
from spark_mv.maintenance.result_columns import remembered, result_print
from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

SQL = "select id, rand() as r from s.t where ts > current_timestamp() - interval 3 days"
SOURCE = SourceFacts("s.t", (Column("id", "bigint"), Column("ts", "timestamp")), "delta")
FACTS = RunFacts("m", "2026-01-01 00:00:00", "UTC", "i", (SOURCE,), TargetFacts(), settings={"Spark": "4.1.4"})


def printed(facts: RunFacts = FACTS, sql: str = SQL) -> str:
    return result_print(facts, sql, analyze(sql, unique_key="id", schemas={"s.t": {"id": "bigint", "ts": "timestamp"}}))


def told(facts: RunFacts, *columns: Column) -> RunFacts:
    """The facts of the next run, after one that was told these columns."""
    record = RunRecord(
        "q",
        "c",
        "2026-01-01 00:00:00",
        "UTC",
        {},
        result_print=printed(facts),
        result=tuple((c.name, c.type) for c in columns),
    )
    back = read_record(record.to_json())
    assert back == record
    return replace(facts, target=TargetFacts(exists=True, record=back), result_print=printed(facts))


def test_the_same_query_over_the_same_columns() -> None:
    columns = (Column("id", "bigint"), Column("r", "double"))
    facts = told(FACTS, *columns)
    assert remembered(facts) == columns
    later = replace(facts, as_of="2026-02-01 00:00:00", invocation_id="j")
    assert remembered(replace(later, result_print=printed(later))) == columns
    assert remembered(replace(facts, full_refresh=True)) is None
    assert remembered(FACTS) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(FACTS, settings={"Spark": "4.2.0"}),
        replace(FACTS, settings={"Spark": "4.1.4", "spark.sql.ansi.enabled": "false"}),
        replace(FACTS, time_zone="Asia/Tokyo"),
        replace(FACTS, sources=(replace(SOURCE, columns=(Column("id", "int"), *SOURCE.columns[1:])),)),
        replace(FACTS, sources=(replace(SOURCE, columns=(*SOURCE.columns, Column("x", "int"))),)),
        replace(FACTS, sources=(replace(SOURCE, view_text="select 1 as id"),)),
        replace(FACTS, sources=(SOURCE, replace(SOURCE, name="s.u"))),
    ],
)
def test_what_can_make_other_columns(other: RunFacts) -> None:
    facts = told(FACTS, Column("id", "bigint"))
    assert printed(other) not in ("", facts.result_print)
    assert remembered(replace(other, target=facts.target, result_print=printed(other))) is None


@pytest.mark.parametrize(
    "sql",
    [
        "select id, ai_classify(name, array('a', 'b')) as c from s.t",
        "select id, my_own(id) as c from s.t",
        "select id from s.t where rand() < 0.5",
    ],
)
def test_what_is_asked_each_time(sql: str) -> None:
    assert printed(sql=sql) == ""
    assert remembered(told(FACTS)) is None


def test_another_text() -> None:
    assert printed() != printed(sql=SQL.replace(" id,", " cast(id as string) as id,"))


def test_a_record_that_this_version_cannot_read() -> None:
    text = RunRecord("q", "c", "a", "UTC", {}).to_json()
    assert read_record(text.replace('"result":[]', '"result":[["id"]]')) is None
