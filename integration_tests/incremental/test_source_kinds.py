"""What a run takes for its sources: files, temporary views, table functions, other types, old versions, hidden properties."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RefusedError, RunFailed
from spark_mv.spark.formats.commits import from_log
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.forgetting import ask_to_forget
from spark_mv.spark.session.spark_settings import ENFORCED


@pytest.fixture
def conf(engine: Any) -> Iterator[Any]:
    """Settings of the session, unset afterwards."""
    spark, made = engine.mv_spark(), []

    def set_(key: str, value: str) -> None:
        made.append((key, spark.conf.get(key, None)))
        spark.conf.set(key, value)

    yield set_
    for key, value in reversed(made):
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def codes(run: Any) -> set[str]:
    return {reason.code for candidate in run.plan.candidates for reason in candidate.reasons}


class TestOwnFunctions:
    @delta_only("functions in SQL, which Iceberg's extensions cannot read")
    def test_what_they_are_decides_and_what_they_read(self, engine: Any) -> None:
        ask = engine.query
        ask("create or replace table {schema}.base using delta as select id from range(3)")
        ask("create or replace table {schema}.rates using delta as select 7 as rate")
        ask("create or replace function {schema}.inner_of(x bigint) returns bigint return x + 1")
        ask("create or replace function outer_of(x bigint) returns bigint return {schema}.inner_of(x) * 10")
        ask(
            "create or replace function rated(x bigint) returns bigint return x * (select max(rate) from {schema}.rates)"
        )
        names = ("inner_of", "outer_of", "rated")
        engine.profile = {"embedded": True, "functions": {name: {"determinism": "deterministic"} for name in names}}
        engine.model("select id, outer_of(id) as n from {schema}.base")
        engine.run()
        assert engine.rows() == {(0, 10): 1, (1, 20): 1, (2, 30): 1}
        # made again as it was
        ask("create or replace function {schema}.inner_of(x bigint) returns bigint return x + 1")
        assert engine.run().plan.strategy == "NO_OP"
        ask("create or replace function {schema}.inner_of(x bigint) returns bigint return x + 2")
        run = engine.run()
        assert "inner_of was redefined" in " ".join(r.sentence for r in run.plan.candidates[0].reasons)
        assert engine.rows() == {(0, 20): 1, (1, 30): 1, (2, 40): 1}

        engine.model("select id, rated(id) as n from {schema}.base")
        engine.run()
        assert engine.rows() == {(0, 0): 1, (1, 7): 1, (2, 14): 1}
        ask("insert into {schema}.rates values (8)")
        assert "SOURCE_UNVERSIONED" in codes(engine.run())
        assert engine.rows() == {(0, 0): 1, (1, 8): 1, (2, 16): 1}

        ask("create or replace function outer_of(x bigint) returns bigint return x + unix_seconds(current_timestamp())")
        engine.model("select id, outer_of(id) as n from {schema}.base")
        with pytest.raises(
            RefusedError, match="outer_of is declared deterministic, and its body calls current_timestamp"
        ):
            engine.run()
        for name in names:
            ask(f"drop function {'{schema}.' if name == 'inner_of' else ''}{name}")


class TestWithoutVersions:
    def test_they_are_read_at_every_run(self, engine: Any, tmp_path: Path) -> None:
        spark, folder = engine.mv_spark(), tmp_path / "a.b"
        files, text = str(folder / "Files"), folder / "c.csv"

        def write(n: int) -> None:
            spark.range(n, n + 1).write.mode("overwrite").parquet(files)
            text.write_text(f"{n + 10}\n")
            spark.range(n + 20, n + 21).createOrReplaceTempView("frame")
            engine.query(f"create or replace table {{schema}}.base using delta as select {n + 30} as id")

        write(0)
        engine.query("create or replace function listed() returns table(id int) return select id from {schema}.base")
        engine.model(
            f"select id from parquet.`{files}` union all select cast(_c0 as bigint) from csv.`{text}` "
            "union all select id from frame union all select id from listed()"
        )
        engine.profile = {"embedded": True, "functions": {"listed": {"determinism": "deterministic"}}}
        engine.run()
        assert engine.rows() == {(0,): 1, (10,): 1, (20,): 1, (30,): 1}
        write(1)
        run = engine.run()
        engine.profile = {"embedded": True}
        assert engine.rows() == {(1,): 1, (11,): 1, (21,): 1, (31,): 1}
        said = " ".join(r.sentence for r in run.plan.reasons if r.code == "SOURCE_UNVERSIONED")
        assert all(name in said for name in (files, "c.csv", "frame", "listed()")), said


class TestWithVersions:
    @delta_only("tables by their path")
    def test_delta_by_its_path_and_through_temporary_views(self, engine: Any, tmp_path: Path) -> None:
        path = str(tmp_path / "x.y" / "Delta")
        engine.query(
            f"create table delta.`{path}` using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
            "select id, date'2026-02-01' + cast(id as int) as d from range(5)"
        )
        engine.query("create or replace table {schema}.named using delta as select id, id * 2 as b from range(9)")
        engine.query("create or replace temporary view seen as select id, b, rand() as r from {schema}.named")
        engine.model(
            f"select t.id, d, b, r from delta.`{path}` t join seen s on s.id = t.id where d >= current_date()",
            refresh="incremental",
        )
        engine.run()
        before = engine.rows(columns="id, r")
        assert len(before) == 5
        assert engine.run().plan.strategy == "NO_OP"
        engine.query(f"insert into delta.`{path}` values (7, date'2026-02-09')")
        engine.query("update {schema}.named set b = 0 where id = 1")
        run = engine.run("2026-02-02 06:00:00")
        assert run.plan.strategy == "ROW_BASED"
        assert {row[0]: row[2] for row in engine.rows()} == {1: 0, 2: 4, 3: 6, 4: 8, 7: 14}
        after = engine.rows(columns="id, r")
        assert {row for row in after if row[0] != 7} == {row for row in before if row[0] != 0}
        # as it was at first
        engine.model(f"select id, d, rand() as r from delta.`{path}@v0` where d >= current_date()")
        engine.run()
        assert engine.run("2026-02-03 06:00:00").plan.record is not None
        assert {row[0] for row in engine.rows()} == {2, 3, 4}

    @delta_only("defaults of columns")
    def test_a_source_whose_columns_have_defaults(self, engine: Any) -> None:
        feature = "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
        engine.query(
            f"create or replace table {{schema}}.with_defaults (id int, v int default 5) using delta {feature}"
        )
        engine.query("insert into {schema}.with_defaults (id) values (1), (2)")
        text = "select id, v, uuid() as r from {schema}.with_defaults"
        engine.model(text)
        with pytest.raises(Exception, match="Say `tblproperties"):
            engine.run()
        engine.model(text, tblproperties={"delta.feature.allowColumnDefaults": "supported"})
        for number in (3, 4):
            engine.run()
            assert engine.rows(columns="id, v") == {(k, 5): 1 for k in range(1, number)}
            engine.query(f"insert into {{schema}}.with_defaults (id) values ({number})")

    @delta_only("a dropped table's folder is empty")
    def test_a_source_that_becomes_another_kind(self, engine: Any) -> None:
        engine.query("create or replace table {schema}.base using delta as select 1 as id, 'a' as x")
        engine.query("create or replace view {schema}.kind as select * from {schema}.base")
        engine.model("select id, x from {schema}.kind")
        engine.run()
        engine.query("drop view {schema}.kind")
        engine.query("create table {schema}.kind using delta as select 1 as id, 'b' as x")
        engine.run()
        assert engine.rows() == {(1, "b"): 1}
        engine.query("drop table {schema}.kind")
        engine.query("create table {schema}.kind using parquet as select 1 as id, 'c' as x")
        assert "SOURCE_UNVERSIONED" in codes(engine.run())
        assert engine.rows() == {(1, "c"): 1}
        engine.query("drop table {schema}.kind")


class TestTypesAndSettings:
    @delta_only("a change of columns is told apart by the feed")
    def test_a_type_that_changed_is_no_change_of_rows(self, engine: Any) -> None:
        make = (
            "create or replace table {schema}.src using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
            "select 1 as id, "
        )
        engine.query(make + "cast(3 as decimal(10, 1)) as x, 1 as t")
        engine.model("select id, cast(x as string) as x, typeof(t) as t from {schema}.src")
        engine.run()
        engine.query(make + "cast(3 as decimal(10, 2)) as x, 1L as t")
        engine.config["refresh"] = "incremental"
        with pytest.raises(RefusedError, match="SOURCE_SCHEMA_CHANGED"):
            engine.run()
        engine.config["refresh"] = "auto"
        engine.run()
        assert engine.rows() == {(1, "3.00", "bigint"): 1}
        # more columns are no other columns
        engine.query("alter table {schema}.src add columns (y int)")
        engine.query("insert into {schema}.src values (2, 4, 1, 1)")
        engine.config["refresh"] = "incremental"
        engine.run()
        assert len(engine.rows()) == 2

    @delta_only("what Delta's history says of descriptions")
    def test_what_is_no_change_of_columns(self, engine: Any) -> None:
        """Descriptions, the order of columns, and NOT NULL: `persist_docs` edits descriptions at each run of an incremental model."""
        engine.query(
            "create or replace table {schema}.src (id int, x int not null, st struct<a: int>) using delta "
            "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        )
        engine.query("insert into {schema}.src values (1, 1, named_struct('a', 1)), (2, 2, null)")
        engine.model("select id, string(x) as x, st.a, rand() as r from {schema}.src", refresh="incremental")
        engine.run()
        kept = engine.rows_of("select r from {schema}.mv where id = 2")
        for number, change in enumerate(
            ("x comment 'a value'", "st.a comment 'inside'", "x first", "x drop not null", "id comment 'the key'"), 3
        ):
            engine.query(f"alter table {{schema}}.src alter column {change}")
            engine.query(f"insert into {{schema}}.src (id, x, st) values ({number}, {number}, null)")
            engine.query("update {schema}.src set x = x + 10 where id = 1")
            assert engine.run().plan.strategy == "ROW_BASED", change
            assert engine.rows("mv", "id, x, a") == engine.rows("src", "id, string(x), st.a")
        assert engine.rows_of("select r from {schema}.mv where id = 2") == kept
        engine.query("alter table {schema}.src set tblproperties ('delta.enableTypeWidening' = 'true')")
        engine.query("alter table {schema}.src alter column x type bigint")
        with pytest.raises(RefusedError, match="SOURCE_SCHEMA_CHANGED"):
            engine.run()

    def test_a_session_that_gives_other_values(self, engine: Any, conf: Any) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as select 1 as id, timestamp'2026-02-01 12:00:00Z' as t"
        )
        engine.model("select id, cast(t as string) as t from {schema}.src")
        engine.run()
        assert engine.run().plan.strategy == "NO_OP"
        conf("spark.sql.session.timeZone", "PST")
        assert "SESSION_CHANGED" in codes(engine.run())
        assert engine.rows() == {(1, "2026-02-01 04:00:00"): 1}
        assert engine.run().plan.strategy == "NO_OP"
        conf("spark.sql.decimalOperations.allowPrecisionLoss", "false")
        assert "SESSION_CHANGED" in codes(engine.run())


class TestOldVersions:
    @pytest.fixture
    def source(self, engine: Any, warehouse: Path) -> Any:
        """Make a source of one version, which is twenty days old."""

        def make(feed: bool) -> None:
            engine.query("drop table if exists {schema}.src")
            engine.query(
                f"create table {{schema}}.src using delta tblproperties ('delta.enableChangeDataFeed' = '{str(feed).lower()}') "
                "as select id, 0 as x from range(3)"
            )
            (row,) = engine.query("describe detail {schema}.src")
            then = time.time() - 20 * 86400
            os.utime(Path(row["location"].removeprefix("file:")) / "_delta_log" / f"{0:020d}.json", (then, then))
            engine.mv_spark()._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

        return make

    @delta_only("the change feed")
    def test_the_feed_begins_behind_the_last_run(self, engine: Any, conf: Any, source: Any) -> None:
        conf(ENFORCED, "true")
        source(feed=True)
        engine.model("select id, x, rand() as r from {schema}.src", refresh="incremental")
        engine.run()
        assert engine.run().plan.strategy == "NO_OP"
        engine.query("insert into {schema}.src values (3, 0)")
        assert engine.run().plan.strategy == "APPEND_ONLY"

    @pytest.mark.parametrize("enforced", ["true", "false"])
    @delta_only("the change feed")
    def test_two_versions_are_compared_where_both_can_be_read(
        self, engine: Any, conf: Any, source: Any, enforced: str
    ) -> None:
        conf(ENFORCED, enforced)
        source(feed=False)
        engine.model("select id, x, rand() as r from {schema}.src")
        engine.run()
        draws = engine.rows(columns="id, r")
        engine.query("insert into {schema}.src values (3, 0)")
        run = engine.run()
        assert ("HISTORY_GONE" in codes(run)) == (enforced == "true")
        assert ("deletedFileRetentionDuration" in str(run.plan.candidates)) == (enforced == "true")
        assert engine.warnings == []
        assert engine.rows(columns="id, r") >= draws and len(engine.rows()) == 4

    @delta_only("the change feed")
    def test_a_source_that_moves_while_its_old_version_is_read(self, engine: Any, conf: Any, source: Any) -> None:
        conf(ENFORCED, "true")
        source(feed=True)
        engine.model("select id, x, rand() as r from {schema}.src")
        query, sent = engine.adapter.query, []

        def meanwhile(sql: str) -> Any:
            if sql.lstrip().lower().startswith("create table") and not sent:
                sent.append(sql)
                query(f"insert into {engine.schema}.src values (6, 0)")
            return query(sql)

        engine.adapter.query = meanwhile
        try:
            engine.run()
        finally:
            del engine.adapter.query
        assert sent
        engine.run()
        assert len(engine.rows()) == 4


class TestHiddenProperties:
    @delta_only("liquid clustering")
    def test_names_that_look_like_secrets(self, engine: Any) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as select id, 'u' as page_url, 't' as my_token from range(3)"
        )
        engine.model(
            "select id, page_url, rand() as r from {schema}.src",
            liquid_clustered_by="page_url",
            tblproperties={"api_token": "a,b=c", "note": "x,spark_mv.model=y"},
        )
        engine.run()
        before = engine.rows(columns="id, r")
        engine.query("insert into {schema}.src values (3, 'u', 't')")
        assert engine.run().verb == "MERGE"
        assert engine.rows(columns="id, r") >= before
        ask_to_forget(engine.adapter, engine.table, engine.name, ["r"], "id < 2 and 'url' > ''", {})
        engine.run()
        after = engine.rows(columns="id, r")
        assert len(after & before) == 1 and engine.run().plan.strategy == "NO_OP"

    def test_partitions_with_names_of_their_own(self, engine: Any) -> None:
        engine.query("create or replace table {schema}.src using delta as select id, 1 as day from range(3)")
        engine.model(
            "select id, day as `the day`, rand() as r from {schema}.src",
            partition_by=["the day"],
            refresh="incremental",
        )
        engine.run()
        engine.query("insert into {schema}.src values (3, 2)")
        assert engine.run().verb == "MERGE"


@delta_only("its log")
class TestLongCommits:
    @pytest.mark.parametrize("length", [0, 3_900, 9_000, 100_000])
    def test_they_are_read_as_the_history_has_them(self, spark: Any, length: int) -> None:
        """In parts, where their text is long."""
        text = "é😀\\ 表\n'\"" + "x😀" * (length // 2)
        rows = spark.range(3).write.format("delta").mode("overwrite").option("userMetadata", text)
        rows.option("replaceWhere", f"id < 9 or id in ({', '.join(map(str, range(length // 9 + 1)))})")
        rows.saveAsTable("long_commits")
        try:
            read = from_log(spark, "long_commits", 1)
            told = spark.sql("describe history long_commits limit 1").collect()[0]
            assert read is not None and read[0]["userMetadata"] == text == told["userMetadata"]
            for name in ("version", "timestamp", "operation", "operationParameters", "operationMetrics"):
                assert read[0][name] == told[name], name
        finally:
            spark.sql("drop table long_commits")


class TestFilesGone:
    @delta_only("VACUUM")
    def test_incremental_says_what_to_do(self, engine: Any, conf: Any) -> None:
        """VACUUM took the files of the version that the last run read."""
        conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        engine.query("create or replace table {schema}.thrown using delta as select id, 1 as v from range(5)")
        engine.model("select id, v, rand() as r from {schema}.thrown", refresh="incremental")
        engine.run()
        rows = engine.rows()
        engine.query("insert overwrite {schema}.thrown select id, 2 from range(3)")
        engine.query("vacuum {schema}.thrown retain 0 hours")
        with pytest.raises(RunFailed, match=r"are gone \(VACUUM\?\).*run once with --full-refresh"):
            engine.run()
        assert engine.rows() == rows
        engine.run(full_refresh=True)
        assert engine.rows(columns="id, v") == {(k, 2): 1 for k in range(3)}
        assert set(engine.rows(columns="id, r")) <= {(id_, r) for id_, _, r in rows}


class TestTableGone:
    def test_a_table_that_is_dropped_during_the_run(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        execute = MvRun.execute
        engine.query("create or replace table {schema}.steady using delta as select id, 1 as v from range(5)")
        for stage in (False, True):
            engine.model("select id, v, rand() as r from {schema}.steady")
            engine.run()
            engine.query("insert into {schema}.steady select max(id) + 1, 2 from {schema}.steady")

            def dropped(run: MvRun, step: Any, sql: str | None, stage: bool = stage) -> None:
                if step.kind == "stage_changes" if stage else step.of.publishes:
                    engine.adapter.query(f"drop table {engine.table}")
                execute(run, step, sql)

            with monkeypatch.context() as patch:
                patch.setattr(MvRun, "execute", dropped)
                with pytest.raises(RunFailed, match=r"was dropped or renamed while this run worked.*run again"):
                    engine.run()
            engine.run()
            assert engine.rows(columns="id") == Counter(row for row in engine.rows_of("select id from {schema}.steady"))


class TestAppendOnly:
    @delta_only("delta.appendOnly")
    def test_a_table_that_takes_no_changes_says_how_it_would(self, engine: Any) -> None:
        engine.query("create or replace table {schema}.steady using delta as select id, 1 as v from range(5)")
        engine.model("select id, v, rand() as r from {schema}.steady", tblproperties={"delta.appendOnly": "true"})
        engine.run()
        engine.query("insert into {schema}.steady values (5, 1)")
        engine.run()
        engine.query("update {schema}.steady set v = 2 where id = 3")
        with pytest.raises(RunFailed, match=r"alter table (\S+) unset tblproperties") as failed:
            engine.run()
        del engine.config["tblproperties"]
        engine.query(str(failed.value).split(": ")[-1])
        engine.run()
        assert engine.rows(columns="id, v") == Counter(row for row in engine.rows_of("select * from {schema}.steady"))


class TestViewsWithNamesOfTheirOwn:
    """CREATE VIEW v(a, b) AS SELECT …: the columns are called as the view says, whatever its SELECT calls them."""

    @pytest.fixture(autouse=True)
    def source(self, engine: Any) -> Iterator[None]:
        feed = "using delta tblproperties (delta.enableChangeDataFeed = true)"
        engine.query(f"create table {{schema}}.named (id int, k int) {feed}")
        engine.query("insert into {schema}.named values (1, 10), (2, 20)")
        yield
        engine.query("drop table {schema}.mv")
        engine.query("drop table {schema}.named")

    def lives(self, engine: Any, sql: str, key: str) -> None:
        engine.model(sql, unique_key=key)
        for number in (3, 4):
            engine.run()
            columns = "a, b"
            wanted = engine.rows_of(f"select {columns} from ({sql}) order by a")
            assert engine.rows_of(f"select {columns} from {{schema}}.mv order by a") == wanted
            engine.query(f"insert into {{schema}}.named values ({number}, {number * 10})")
        assert engine.run().plan.strategy != "COMPLETE_RECOMPUTE"

    @pytest.mark.parametrize("select", ["k as b, id as a", "id, id"])
    def test_they_are_read_by_these_names(self, engine: Any, select: str) -> None:
        engine.query(f"create or replace view {{schema}}.own_names (a, b) as select {select} from {{schema}}.named")
        self.lives(engine, "select a, b from {schema}.own_names", "a")

    def test_a_temporary_view(self, engine: Any) -> None:
        engine.query(
            "create or replace temporary view own_names_of_a_session (a, b) as select id, k from {schema}.named"
        )
        self.lives(engine, "select a, b from own_names_of_a_session", "a")

    def test_a_draw_is_kept_under_the_name_that_the_view_gives_it(self, engine: Any) -> None:
        engine.query(
            "create or replace view {schema}.own_names (id, drawn, k) as select id, rand() as k, k as drawn from {schema}.named"
        )
        engine.model("select id, drawn, k from {schema}.own_names", unique_key="id")
        engine.run()
        before = engine.rows_of("select id, drawn from {schema}.mv order by id")
        engine.query("update {schema}.named set k = k + 1")
        engine.run()
        assert engine.rows_of("select id, drawn from {schema}.mv order by id") == before
        assert engine.rows_of("select id, k from {schema}.mv order by id") == [(1, 11), (2, 21)]

    @pytest.mark.parametrize("view", ["view {schema}.starred", "temporary view starred"])
    def test_a_star_stands_for_the_columns_that_were_there(self, engine: Any, view: str) -> None:
        """Spark reads a view by the columns that it had; one that a table gained since is none of them."""
        engine.query(f"create or replace {view} as select *, rand() as drawn from {{schema}}.named")
        engine.query("alter table {schema}.named add columns (late string)")
        engine.model(f"select * from {view.split()[-1]}", unique_key="id")
        engine.run()
        kept = engine.rows_of("select id, drawn from {schema}.mv order by id")
        engine.query("insert into {schema}.named values (3, 30, 'late')")
        engine.run()
        assert engine.rows_of("select id, drawn from {schema}.mv where id < 3 order by id") == kept
        assert engine.rows_of("select * except (drawn) from {schema}.mv order by id") == [(1, 10), (2, 20), (3, 30)]


class TestColumnsThatAreNotRead:
    def test_what_changes_in_them_is_no_change(self, engine: Any) -> None:
        """A column that no row can be compared by does not disturb either, and rows that differ in such columns alone count as often as they stand there."""
        ask = engine.query
        ask(
            "create or replace table {schema}.wide using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
            "select id, id % 3 as grp, id * 10 as amount, 'a' as remark, map('k', id) as more from range(9)"
        )
        texts = (
            "with s as (select * from {schema}.wide) select id, amount, rand() as draw from s",
            "select grp as id, sum(amount) as amount, count(*) as n from (select * from {schema}.wide) group by grp",
            "select id, amount, grp, row_number() over (partition by grp order by amount) as draw from {schema}.wide",
        )
        for text in texts:
            engine.model(text, refresh="incremental")
            engine.run()
            before = engine.rows()
            ask("update {schema}.wide set remark = concat(remark, 'b') where id < 4")
            engine.run()
            assert (engine.published, engine.rows()) == ("RECORD", before)
            # 1 takes the place of 4, but for columns that are not read
            ask("delete from {schema}.wide where id = 4")
            ask("insert into {schema}.wide values (4, 1, 40, 'other', map('k', 0L))")
            ask("update {schema}.wide set amount = amount + 1, more = map('z', 1L) where id = 2")
            run = engine.run()
            assert run.plan.strategy != "COMPLETE_RECOMPUTE"
            wanted = ask(f"select id, amount from ({text.replace('{schema}', engine.schema)})")
            assert Counter((r["id"], r["amount"]) for r in wanted) == Counter((row[0], row[1]) for row in engine.rows())
            if "rand()" in text:
                after = {row[0]: row[2] for row in engine.rows()}
                assert after == {row[0]: row[2] for row in before}


def test_a_subquery_that_is_joined_in_parentheses(engine: Any) -> None:
    """Both sides of the join are read, though one alias stands for the two."""
    engine.query("create or replace table {schema}.src using delta as select id, id % 3 as k from range(6)")
    engine.query("create or replace table {schema}.names using delta as select id as n, 'a' as name from range(3)")
    engine.model("select id, name from ((select id, k from {schema}.src) s join {schema}.names i on s.k = i.n) j")
    engine.run()
    engine.query("update {schema}.names set name = 'b' where n = 1")
    engine.run()
    found = dict(engine.rows_of(f"select id, name from {engine.table}"))
    assert found == {id: "b" if id % 3 == 1 else "a" for id in range(6)}


def test_an_operator_behind_a_select_with_draws(engine: Any) -> None:
    """It sees the draw that the SELECT gives, not the column of the same name that it reads."""
    engine.query("create or replace table {schema}.src using delta as select id, 1.0d as k from range(60)")
    engine.model("select id, rand() as k from {schema}.src |> where k > 0.5")
    with pytest.raises(RefusedError, match=r"NOT_KEPT.*a random filter"):
        engine.run()
    engine.model("select id, rand() as r from {schema}.src |> where id > 9 |> extend r * 2 as twice")
    engine.run()
    first = dict(engine.rows_of(f"select id, r from {engine.table}"))
    engine.query("insert into {schema}.src values (100, 1.0d)")
    for full_refresh in (False, True):
        engine.run(full_refresh=full_refresh)
        found = {id: (r, twice) for id, r, twice in engine.rows_of(f"select id, r, twice from {engine.table}")}
        assert {id: r for id, (r, _) in found.items() if id != 100} == first
        assert len(first) == 50 and 100 in found
