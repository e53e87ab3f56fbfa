"""Keys that Spark and its clients do not take for what they are: texts that a collation takes for one, dates that Python has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RunFailed

TYPES = "spark.databricks.delta.schema.typeCheck.enabled"
FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
MODEL = "select id, v, uuid() as drawn from {schema}.src"


@pytest.fixture
def collations(engine: Any) -> Iterator[None]:
    """Delta's open releases hold collated text only without their check of types; engines that have collations need no such setting."""
    conf = engine.mv_spark().conf
    before = conf.get(TYPES, "true")
    conf.set(TYPES, "false")
    yield
    conf.set(TYPES, before)


class TestOddKeys:
    @delta_only("a collated column")
    def test_a_key_whose_case_changes(self, engine: Any, collations: None) -> None:
        rows = "values ('a' collate UTF8_LCASE, 'x'), ('b' collate UTF8_LCASE, 'y') as s(id, v)"
        engine.query(f"create or replace table {{schema}}.src {FEED} as select * from {rows}")
        engine.model(MODEL)
        engine.run()
        drawn = dict(engine.rows_of(f"select v, drawn from {engine.table}"))
        for change, refresh, wanted in (
            ("update {schema}.src set id = 'A' where id = 'a'", {}, {("A", "x"), ("b", "y")}),
            ("update {schema}.src set id = 'B' where id = 'b'", {"full_refresh": True}, {("A", "x"), ("B", "y")}),
        ):
            engine.query(change)
            engine.run(**refresh)
            found = engine.rows_of(f"select hex(cast(id as string)), v from {engine.table}")
            assert sorted(found) == sorted((key.encode().hex().upper(), v) for key, v in wanted), engine.steps
            assert dict(engine.rows_of(f"select v, drawn from {engine.table}")) == drawn
        engine.run()
        assert engine.published in ("", "RECORD"), engine.steps

    @pytest.mark.parametrize(
        "sql",
        [
            "select cast(n as string) as id, count(*) as c from ({rows}) group by n",
            "select cast(n as string) as id from (select n from ({rows}) union select 'z' collate utf8_lcase)",
        ],
    )
    def test_a_group_under_a_collation_has_the_spelling_of_a_row(self, engine: Any, sql: str) -> None:
        engine.query(
            f"create or replace table {{schema}}.src {FEED} as select * from values ('A', 1), ('a', 2), ('B', 3) s(n, v)"
        )
        sql = sql.format(rows="select n collate utf8_lcase as n, v from {schema}.src")
        engine.model(sql)
        engine.run()
        for change in (
            "delete from {schema}.src where n = 'A'",
            "insert into {schema}.src values ('c', 4), ('c', 5)",
            "update {schema}.src set n = 'b' where v = 3",
        ):
            engine.query(change)
            engine.run()
            assert engine.rows() == Counter(engine.rows_of(sql)), (change, engine.steps)

    def test_a_date_that_python_cannot_hold(self, engine: Any) -> None:
        for day in ("-0044-03-15", "+10000-01-01"):
            engine.query(f"create or replace table {{schema}}.src {FEED} as select date'2026-01-01' as id, 'x' as v")
            engine.model(MODEL)
            engine.run()
            before = engine.rows()
            engine.query(f"insert into {{schema}}.src values (date'{day}', 'new')")
            with pytest.raises(RunFailed, match=r"DATE_OUT_OF_RANGE.*The table was not touched"):
                engine.run()
            assert engine.rows() == before

    def test_a_timestamp_that_python_cannot_hold(self, engine: Any) -> None:
        first = "timestamp'2026-01-01 00:00:00'"
        engine.query(f"create or replace table {{schema}}.src {FEED} as select {first} as id, 'x' as v")
        engine.model(MODEL)
        engine.run()
        drawn = dict(engine.rows_of(f"select v, drawn from {engine.table}"))
        for change in (
            "insert into {schema}.src values (timestamp'+10000-01-01 00:00:00', 'new')",
            "update {schema}.src set v = 'edited' where v = 'new'",
        ):
            engine.query(change)
            engine.run()
            wanted = engine.rows_of("select unix_micros(id), v from {schema}.src order by id")
            assert engine.rows_of(f"select unix_micros(id), v from {engine.table} order by id") == wanted
        now = dict(engine.rows_of(f"select v, drawn from {engine.table}"))
        assert now["x"] == drawn["x"]
