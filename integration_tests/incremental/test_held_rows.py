"""Staged rows that stay in memory: evaluated once, never again, and gone with their run."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.under_format import delta_only
from test_strategies import source, wanted

from spark_mv.spark.run import holding
from spark_mv.spark.session import held_rows
from spark_mv.spark.session.held_rows import held


def hold(spark: Any, name: str, query: str) -> Any:
    assert held(spark, f"create table `{name}` using memory as\n{query}")
    return spark.table(f"`{name}`")


class TestHeldRows:
    def test_draws_are_evaluated_once(self, spark: Any) -> None:
        rows = hold(spark, "drawn twice", "select id, rand() as r, uuid() as u from range(0, 5000, 1, 4)")
        first = rows.collect()
        assert first == spark.table("`drawn twice`").collect()
        assert (
            spark.sql("select a.r from `drawn twice` a join `drawn twice` b on a.id = b.id and a.u = b.u").count()
            == 5000
        )
        assert held(spark, "drop table if exists `drawn twice`") and not spark.catalog.tableExists("`drawn twice`")
        # another table of that name is Spark's business
        assert not held(spark, "drop table if exists `drawn twice`")

    def test_lost_rows_are_not_drawn_again(self, spark: Any) -> None:
        """Whatever becomes of the memory: what a later statement reads is what the first one wrote, or an error."""
        rows = hold(spark, "lost", "select id, rand() as r from range(1000)")
        rows.collect()
        held_rows._rows["lost"].rdd().unpersist(True)
        with pytest.raises(Exception, match="heckpoint block"):
            spark.table("lost").collect()
        held(spark, "drop table if exists `lost`")

    def test_nothing_is_left_of_a_statement_that_fails(self, spark: Any) -> None:
        with pytest.raises(Exception, match="no such luck"):
            hold(spark, "failed", "select id, rand(), if(id = 999, raise_error('no such luck'), 1) from range(1000)")
        assert "failed" not in held_rows._rows and not spark.catalog.tableExists("failed")

    def test_a_handful_of_rows_is_broadcast(self, spark: Any) -> None:
        """Whatever Spark took the query for that they came from."""
        hold(spark, "few", "select a.id from range(3000) a cross join range(3000) b where a.id = 7 and b.id = 9")
        plan = spark.sql("select * from range(100000000) r join few on r.id = few.id")._jdf.queryExecution().toString()
        assert "BroadcastHashJoin" in plan
        held(spark, "drop table if exists `few`")


def kinds(engine: Any) -> list[str]:
    """How the latest run staged rows."""
    made = [s.split() for s in engine.statements if s.startswith("create table")]
    return [words[4] for words in made if "__mv_stage_" in words[2]]


class TestRuns:
    QUERY = "select id, amount * 2 as a, rand() as split from {schema}.src where k <> 3"

    def ends_clean(self, engine: Any) -> None:
        assert not [name for name in held_rows._rows if name.startswith(f"{engine.name}__mv_stage_")]
        assert not [row for row in engine.rows_of("show tables in {schema}") if "mv_stage" in row[1]]

    def test_small_tables(self, engine: Any) -> None:
        source(engine)
        engine.model(self.QUERY)
        engine.run()
        assert kinds(engine) == []  # a first run stages no row
        drawn = dict(engine.rows_of("select id, split from {schema}.mv"))
        for refresh in ("full", "auto"):
            engine.config["refresh"] = refresh
            engine.query("update {schema}.src set amount = amount + 1 where id % 100 = 1")
            engine.query(f"delete from {{schema}}.src where id = {900 + len(refresh)}")
            engine.run()
            assert set(kinds(engine)) == {"memory"}
            assert engine.rows("mv", "id, a") == wanted(engine, "select id, amount * 2 from {schema}.src where k <> 3")
            now = dict(engine.rows_of("select id, split from {schema}.mv"))
            assert now.items() <= drawn.items()
            self.ends_clean(engine)

    def test_large_tables_are_staged_in_files(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(holding, "BYTES", 10)
        source(engine)
        engine.model(self.QUERY)
        engine.run()
        engine.query("update {schema}.src set amount = amount + 1 where id % 100 = 1")
        engine.run()
        assert kinds(engine) == ["parquet", "parquet"]
        assert engine.rows("mv", "id, a") == wanted(engine, "select id, amount * 2 from {schema}.src where k <> 3")
        self.ends_clean(engine)

    @delta_only("its feed of changes")
    def test_few_changes_of_large_tables(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        source(engine)
        engine.model(self.QUERY)
        engine.run()
        size = engine.query("describe detail {schema}.src")[0]["sizeInBytes"]
        monkeypatch.setattr(holding, "BYTES", size)
        for where, staged in (("id = 101", ["memory", "memory"]), ("id % 10 = 1", ["parquet", "parquet"])):
            engine.query(f"update {{schema}}.src set amount = amount + 1 where {where}")
            engine.run()
            assert kinds(engine) == staged
            assert engine.rows("mv", "id, a") == wanted(engine, "select id, amount * 2 from {schema}.src where k <> 3")
            self.ends_clean(engine)

    def test_a_source_of_unknown_size(self, engine: Any) -> None:
        engine.query("drop table if exists {schema}.files")
        engine.query("create table {schema}.files using parquet as select id, id % 7 as k from range(50)")
        engine.model("select id, k, rand() as split from {schema}.files")
        engine.run()
        engine.run()
        assert kinds(engine) == ["parquet"]
        self.ends_clean(engine)

    def test_a_run_that_fails(self, engine: Any) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as select id % 5 as id, id as amount from range(10)"
        )
        engine.model("select id, amount from {schema}.src")
        with pytest.raises(Exception, match="share a key with another"):
            engine.run()
        assert kinds(engine) == ["memory"]
        self.ends_clean(engine)

    @delta_only("its statements, counted")
    def test_a_long_query_is_analysed_once(self, engine: Any) -> None:
        """Its columns are known from the last run, its rows are held; a short one is not worth holding."""
        source(engine)
        chain = ["c0 as (select id, amount from {schema}.src where k <> 3)"]
        chain += [
            f"c{i} as (\n  select id,\n    amount + {i} as amount\n  from c{i - 1}\n  where amount is not null)"
            for i in range(1, 51)
        ]
        for query, times in (
            ("with " + ",\n".join(chain) + "\nselect id, amount, rand() as r from c50", 1),
            (self.QUERY, 2),
        ):
            engine.model(query)
            text = "c50 as (" if times == 1 else "k <> 3"

            def asked(statement: str = "", text: str = text) -> list[str]:
                if statement:
                    engine.query(statement)
                engine.run()
                return [s for s in engine.statements if text in s]

            assert len(asked()) == 2  # which columns it has, and its rows
            assert not asked()
            more = "insert into {schema}.src select max(id) + 1, 1, 2.0, max(ts) from {schema}.src"
            found = asked(more)
            assert len(found) == times, found
            assert kinds(engine) == ["memory", "memory"][: 2 if times == 1 else 0]
            name = "amount" if times == 1 else "a"
            total = f"sum({name})", "sum(amount) + 1275 * count(*)" if times == 1 else "sum(amount * 2)"
            assert engine.rows_of(f"select {total[0]} from {{schema}}.mv") == engine.rows_of(
                f"select {total[1]} from {{schema}}.src where k <> 3"
            )
