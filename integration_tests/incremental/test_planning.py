"""How the statements of a run over few rows are planned, and what is looked for meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from test_strategies import source, wanted

from spark_mv.spark.planning import ADAPTIVE, look_ahead, planned_once

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture
def planned(engine: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The statements of the runs, each with whether it was planned adaptively."""
    seen: list[tuple[str, str]] = []
    query = engine.query

    def record(sql: str) -> Any:
        seen.append((sql.strip(), engine.mv_spark().conf.get(ADAPTIVE)))
        return query(sql)

    monkeypatch.setattr(engine, "query", record)
    return seen


@pytest.fixture
def settings(engine: Any) -> Iterator[Any]:
    conf = engine.mv_spark().conf
    before = {key: conf.get(key) for key in (ADAPTIVE, PARTITIONS)}
    yield conf
    for key, value in before.items():
        conf.set(key, value)


def how(planned: list[tuple[str, str]], start: str) -> list[str]:
    return [adaptive for sql, adaptive in planned if sql.startswith(start)]


class TestFewRows:
    def test_changed_rows_of_one_source(self, engine: Any, planned: list[tuple[str, str]], settings: Any) -> None:
        source(engine)
        engine.model("select id, amount * 2 as a, rand() as split from {schema}.src where k <> 3")
        engine.run()
        assert set(how(planned, "create table")) == {"true"}  # all rows, not few
        engine.query("update {schema}.src set amount = amount + 1 where id % 100 = 1")
        planned.clear()
        run = engine.run()
        assert run.plan.strategy == "ROW_BASED" and run.counts["updated"] == 10
        # the changes and the rows to write are staged, the affected keys are not written down in between
        assert how(planned, "create table") == ["false", "false"]
        assert engine.rows("mv", "id, a") == wanted(engine, "select id, amount * 2 from {schema}.src where k <> 3")
        assert settings.get(ADAPTIVE) == "true"

    def test_what_is_published_is_written_to_few_files(
        self, engine: Any, planned: list[tuple[str, str]], settings: Any
    ) -> None:
        source(engine)
        engine.model("select id, amount * 2 as a, rand() as split from {schema}.src where k <> 3")
        engine.run()
        engine.query("insert into {schema}.src select id + 5000, k, amount, ts from {schema}.src where id < 100")
        planned.clear()
        assert engine.run().plan.strategy == "APPEND_ONLY"
        assert how(planned, "select\n  count_if") == ["false"]
        assert how(planned, "insert into") == ["true"]

    def test_not_with_another_source(self, engine: Any, planned: list[tuple[str, str]], settings: Any) -> None:
        source(engine)
        source(engine, "other")
        engine.model("select s.id, s.amount + o.amount as a from {schema}.src s join {schema}.other o on s.id = o.id")
        engine.run()
        engine.query("update {schema}.src set amount = amount + 1 where id % 100 = 1")
        planned.clear()
        run = engine.run()
        assert run.plan.strategy == "ROW_BASED" and not run.plan.few
        assert how(planned, "create table") == ["true"] * 3

    def test_not_where_shuffles_are_wide(self, engine: Any, planned: list[tuple[str, str]], settings: Any) -> None:
        source(engine)
        engine.model("select id, amount * 2 as a from {schema}.src")
        engine.run()
        engine.query("update {schema}.src set amount = amount + 1 where id = 7")
        settings.set(PARTITIONS, "200")
        planned.clear()
        assert engine.run().plan.few
        assert set(how(planned, "create table")) == {"true"}

    def test_settings_are_the_users(self, engine: Any, settings: Any) -> None:
        with pytest.raises(KeyError), planned_once(engine.mv_spark()):
            assert settings.get(ADAPTIVE) == "false"
            raise KeyError
        assert settings.get(ADAPTIVE) == "true"
        settings.set(ADAPTIVE, "false")
        with planned_once(engine.mv_spark()):
            assert settings.get(ADAPTIVE) == "false"
        assert settings.get(ADAPTIVE) == "false"
        with planned_once(None):  # Thrift
            assert settings.get(ADAPTIVE) == "false"


class TestLookAhead:
    def test_files_are_listed_for_the_statement_that_follows(self, engine: Any) -> None:
        source(engine)
        engine.query("create or replace table {schema}.odd using delta as select id as `a``b.c` from range(10)")
        engine.query("insert into {schema}.odd values (11)")
        spark = engine.mv_spark()
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
        table = spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier
        name = table("odd", spark._jvm.scala.Option.apply(engine.schema))
        snapshot = log.forTable(spark._jsparkSession, name).unsafeVolatileSnapshot()
        assert not snapshot.stateReconstructionTriggered()
        thread = look_ahead(spark, f"{engine.schema}.odd", "a`b.c")
        assert thread is not None
        thread.join(60)
        assert not thread.is_alive() and snapshot.stateReconstructionTriggered()

    def test_a_failure_is_not_the_runs(self, engine: Any) -> None:
        thread = look_ahead(engine.mv_spark(), f"{engine.schema}.missing", "id")
        assert thread is not None
        thread.join(60)
        assert not thread.is_alive()

    def test_no_session_in_reach(self) -> None:
        assert look_ahead(None, "s.t", "id") is None
