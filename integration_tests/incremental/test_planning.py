"""How the statements of a run over few rows are planned, and what is looked for meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from direct import AI
from integration_tests.under_format import delta_only
from pyarrow import parquet
from test_strategies import source, wanted

from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.session_settings import made_settings
from spark_mv.spark.formats.turn import tagged
from spark_mv.spark.formats.views import default_setting
from spark_mv.spark.run import prepare as mv_prepare
from spark_mv.spark.run.look_up import RESULT_SETTINGS
from spark_mv.spark.run.planning import ADAPTIVE, EXCLUDED, ask_ahead, look_ahead, planned_once
from spark_mv.spark.session.current_values import current_values

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


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are taken for too large to be held in memory."""
    monkeypatch.setattr(mv_prepare, "holds", lambda *_: False)


class TestFewRows:
    @delta_only("its second listing of files")
    def test_changed_rows_of_one_source(
        self, engine: Any, planned: list[tuple[str, str]], settings: Any, large: None
    ) -> None:
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

    @delta_only("its second listing of files")
    def test_not_with_another_source(
        self, engine: Any, planned: list[tuple[str, str]], settings: Any, large: None
    ) -> None:
        source(engine)
        source(engine, "other")
        engine.model("select s.id, s.amount + o.amount as a from {schema}.src s join {schema}.other o on s.id = o.id")
        engine.run()
        engine.query("update {schema}.src set amount = amount + 1 where id % 100 = 1")
        planned.clear()
        run = engine.run()
        assert run.plan.strategy == "ROW_BASED" and not run.plan.few
        assert how(planned, "create table") == ["true"] * 3

    def test_small_tables_whatever_is_asked_of_them(
        self, engine: Any, planned: list[tuple[str, str]], settings: Any
    ) -> None:
        source(engine)
        source(engine, "other")
        query = "select s.id, s.amount + o.amount as a from {schema}.src s join {schema}.other o on s.id = o.id"
        engine.model(query, refresh="full")
        engine.run()
        assert set(how(planned, "create table")) == {"true"}  # nothing is held by the statement that makes the table
        engine.query("update {schema}.src set amount = amount + 1 where id = 7")
        planned.clear()
        engine.run()
        held = [adaptive for sql, adaptive in planned if " using memory as" in sql]
        assert held and set(held) == {"false"}
        assert set(how(planned, "insert into")) == {"true"}  # what is published
        assert settings.get(ADAPTIVE) == "true"

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
        with pytest.raises(KeyError), tagged(engine, planned_once(engine.mv_spark())):
            assert settings.get(ADAPTIVE) == "false"
            raise KeyError
        assert settings.get(ADAPTIVE) == "true"
        settings.set(ADAPTIVE, "false")
        with tagged(engine, planned_once(engine.mv_spark())):
            assert settings.get(ADAPTIVE) == "false"
        assert settings.get(ADAPTIVE) == "false"
        assert planned_once(None) == {}  # Thrift


class TestSubqueriesAmongColumns:
    """Spark's optimizer stops at them above a UNION, and changed rows are read in one. Beside a draw it does not."""

    @pytest.mark.parametrize(
        ("model", "plain"),
        [
            (
                "select id, (select max(o.amount) from {schema}.other o where o.id = s.id) as most from {schema}.src s",
                "select id, (select max(o.amount) from {schema}.other o where o.id = s.id) as most from {schema}.src s where {past}",
            ),
            (
                "with one as (select id, ai_gen(cast(amount as string)) as a, ts from {schema}.src), two as (select id, ai_gen(a) as most, ts "
                "from one) select id, most, rand() as r from two",
                "select id, concat('ai_gen: ai_gen: ', amount) as most from {schema}.src where {past}",
            ),
            (
                "select id, ai_gen(cast(k as string)) as most from (select id, k, ts from {schema}.src union all select id + 5000, 11, null from {schema}.other)",
                "select id, concat('ai_gen: ', k) as most from (select id, k, ts from {schema}.src union all select id + 5000, 11, null from {schema}.other)",
            ),
        ],
        ids=["subquery", "answers", "union"],
    )
    def test_changed_rows_are_followed(self, engine: Any, model: str, plain: str) -> None:
        source(engine, rows=200)
        source(engine, "other", rows=50)
        clock = " where ts <= current_timestamp()" if "{past}" in plain else ""
        engine.model(model + clock, refresh="incremental")
        engine.profile = {**engine.profile, "ai": AI}
        conf = engine.mv_spark().conf
        conf.set(EXCLUDED, "org.apache.spark.sql.catalyst.optimizer.CombineConcats")
        changes = (
            "update {schema}.src set amount = 0.5, k = 12 where id in (3, 4)",
            "delete from {schema}.src where id = 5",
        )
        try:
            for minute, change in enumerate((None, *changes), 1):
                if change:
                    engine.query(change)
                as_of = f"2026-01-01 00:0{minute}:30"
                run = engine.run(as_of)
                assert (run.plan.strategy == "ROW_BASED") == bool(change)
                past = f"ts <= timestamp'{as_of} UTC'"
                assert engine.rows("mv", "id, most") == wanted(engine, plain.replace("{past}", past))
            assert conf.get(EXCLUDED).endswith(".CombineConcats")
        finally:
            conf.unset(EXCLUDED)

    @pytest.mark.parametrize("first", ["order by amount desc, id limit 7", "order by amount desc, id limit 5 offset 3"])
    def test_the_first_rows_are_those_of_the_order(self, engine: Any, first: str) -> None:
        """Spark alone takes any rows: it drops the ORDER BY. The query below asks for the rows first."""
        source(engine, rows=200)
        source(engine, "other", rows=200)
        top = f"(select * from {{schema}}.src {first})"
        look_up = "(select max(o.amount) from {schema}.other o where o.id = t.id)"
        engine.model(f"with t as {top} select id, {look_up} as most, ai_gen(cast(amount as string)) as a from t")
        engine.profile = {**engine.profile, "ai": AI}
        for change in ("", "update {schema}.src set amount = amount + 5000 where id in (3, 4)"):
            if change:
                engine.query(change)
            engine.run()
            ids = ", ".join(str(row["id"]) for row in engine.query(f"select id from {top}"))
            expected = f"select id, {look_up} as most, concat('ai_gen: ', amount) as a from {{schema}}.src t where id in ({ids})"
            assert engine.rows("mv", "id, most, a") == wanted(engine, expected)

    def test_a_column_of_the_row_around_is_told_by_the_tables(self, engine: Any) -> None:
        source(engine, rows=60)
        engine.query("create or replace table {schema}.around using delta as select id as kk from range(4)")
        asked = "(select max(ai_gen(concat('of one around ', amount))) from {schema}.src where k = kk and amount > 10)"
        engine.model(f"select kk as id, {asked} as a from {{schema}}.around")
        engine.profile = {**engine.profile, "ai": AI}
        run = engine.run()
        plain = asked.replace("ai_gen(", "concat('ai_gen: ', ")
        assert engine.rows("mv", "id, a") == wanted(engine, f"select kk as id, {plain} as a from {{schema}}.around")
        (texts,) = engine.query("select count(distinct amount) as n from {schema}.src where amount > 10")
        assert run.ai.calls == texts["n"]


class TestLookAhead:
    @delta_only("a summary of its log")
    def test_the_table_is_summed_up_while_the_run_is_planned(self, engine: Any) -> None:
        source(engine)
        engine.query("create or replace table {schema}.odd using delta as select id from range(10)")
        engine.query("insert into {schema}.odd values (11)")
        spark = engine.mv_spark()
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
        table = spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier
        name = table("odd", spark._jvm.scala.Option.apply(engine.schema))
        snapshot = log.forTable(spark._jsparkSession, name).unsafeVolatileSnapshot()
        assert not snapshot.stateReconstructionTriggered()
        sent = look_ahead(spark, f"{engine.schema}.`odd`")
        assert sent is not None
        wait([sent], 60)
        assert sent.exception() is None and snapshot.stateReconstructionTriggered()

    def test_only_where_a_run_has_something_to_follow(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []
        monkeypatch.setattr(mv_prepare, "look_ahead", lambda spark, table: asked.append(table))
        source(engine)
        engine.model("select id, rand() as r from {schema}.src where ts > current_timestamp() - interval 30 days")
        engine.run("2026-01-20 22:00:00")
        assert engine.run("2026-01-20 22:00:00").verb == "NO_OP" and not asked
        engine.query("insert into {schema}.src select id + 5000, k, amount, ts from {schema}.src where id < 100")
        assert engine.run("2026-01-20 22:00:00").verb == "MERGE" and asked == [engine.table]
        assert engine.run("2026-03-20 22:00:00").verb == "MERGE" and asked == [engine.table] * 2

    def test_a_failure_is_not_the_runs(self, engine: Any) -> None:
        sent = look_ahead(engine.mv_spark(), f"{engine.schema}.missing")
        assert sent is not None
        wait([sent], 60)
        assert sent.done()

    def test_no_session_in_reach(self) -> None:
        assert look_ahead(None, "s.t") is None


class TestAskAhead:
    """The next bound of a window is asked for while the rows to write are staged."""

    MOVING = (
        "select k as id, count(*) as n from {schema}.src "
        "where ts between current_timestamp() - interval 20 days and current_timestamp() group by k"
    )

    def test_the_check_does_not_ask_again(self, engine: Any) -> None:
        source(engine)
        engine.model(self.MOVING)
        engine.run("2026-01-20 22:00:00")
        run = engine.run("2026-01-21 06:00:00")
        assert run.plan.strategy == "GROUP_AGGREGATE" and "ask_ahead" in engine.steps
        assert not any("as next_change" in sql for sql in engine.statements)
        ahead = run.next_change_at
        assert ahead is not None and engine.run("2026-01-21 06:00:00").verb == "NO_OP"
        engine.run("2026-01-20 22:00:00", full_refresh=True)
        assert engine.run("2026-01-21 06:00:00", full_refresh=True).next_change_at == ahead

    def test_no_session_in_reach(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        source(engine)
        engine.model(self.MOVING)
        engine.run("2026-01-20 22:00:00")
        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.run.planning.in_reach", lambda spark: False)
            run = engine.run("2026-01-21 06:00:00")
        assert run.plan.strategy == "GROUP_AGGREGATE" and "ask_ahead" in engine.steps
        assert any("as next_change" in sql for sql in engine.statements)
        assert engine.run("2026-01-21 06:00:00").verb == "NO_OP"

    def test_a_failure_stops_the_plan(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        source(engine)
        engine.model(self.MOVING)
        engine.run("2026-01-20 22:00:00")
        failing = ["select raise_error('no bound')"] * 2  # not for the complete recompute, which asks, too
        with monkeypatch.context() as patch:
            patch.setattr(
                "spark_mv.spark.run.planning.ask_ahead",
                lambda spark, sql: ask_ahead(spark, failing.pop() if failing else sql),
            )
            run = engine.run("2026-01-21 06:00:00")
        assert run.plan.strategy == "COMPLETE_RECOMPUTE" and not failing
        assert any("no bound" in text for text in engine.warnings)
        sql = self.MOVING.replace("current_timestamp()", "timestamp'2026-01-21 06:00:00'")
        assert engine.rows("mv") == wanted(engine, sql)


class TestAheadOfARecompute:
    """The same of complete recomputes; what the clock took is counted while the rows are published."""

    WINDOW = "select id, ts, rand() as u from {schema}.src where ts > current_timestamp() - interval 20 days"

    def test_the_bound_and_the_evicted(self, engine: Any) -> None:
        source(engine)
        engine.model(self.WINDOW, refresh="full")
        first = engine.run("2026-01-20 22:00:00")
        assert engine.steps == ["next_change", "create_table"] and first.next_change_at is not None
        engine.query("delete from {schema}.src where id % 7 = 3")
        run = engine.run("2026-01-25 22:00:00")
        checks = [sql for sql in engine.statements if "as inserted" in sql]
        assert "ask_ahead" in engine.steps and checks and not any("as next_change" in sql for sql in checks)
        response = run.response()
        assert run.plan.strategy == "COMPLETE_RECOMPUTE" and not any("as evicted" in sql for sql in engine.statements)
        assert 0 < response.rows_evicted < response.rows_deleted
        sql = self.WINDOW.replace("current_timestamp()", "timestamp'2026-01-25 22:00:00'").replace(", rand() as u", "")
        assert engine.rows("mv", "id, ts") == wanted(engine, sql)

    def test_a_count_that_fails_is_said(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        source(engine)
        engine.model(self.WINDOW, refresh="full")
        engine.run("2026-01-20 22:00:00")
        with monkeypatch.context() as patch:
            patch.setattr(
                "spark_mv.spark.run.planning.ask_ahead",
                lambda spark, sql: ask_ahead(spark, "select raise_error('no count')" if "as evicted" in sql else sql),
            )
            response = engine.run("2026-01-25 22:00:00").response()
        assert response.rows_deleted > 0 == response.rows_evicted
        assert any("could not count" in text and "no count" in text for text in engine.warnings)


@delta_only("_metadata.file_path")
def test_rows_of_a_window_are_found_by_minimum_and_maximum(engine: Any) -> None:
    """Parquet keeps them for timestamps of 64 bits, not for Spark's usual ones of 96."""
    source(engine)
    engine.model("select id, ts from {schema}.src where ts > current_timestamp() - interval 90 days")
    engine.run()
    (file,) = engine.rows_of("select distinct _metadata.file_path from {schema}.mv")[0]
    group = parquet.ParquetFile(unquote(urlsplit(file).path)).metadata.row_group(0)
    statistics = next(group.column(k).statistics for k in range(2) if group.column(k).path_in_schema == "ts")
    assert statistics.has_min_max


class TestKnownAnswers:
    """What the session knows without a statement, and what it was told before."""

    SAID = (
        "select current_timezone() as time_zone, current_user() as user_name, current_catalog() as catalog_name, "
        "current_schema() as schema_name, version() as version_text"
    )

    def test_the_session_says_what_its_functions_say(self, spark: Any) -> None:
        session = spark.newSession()
        session.sql("create schema if not exists elsewhere")
        for statement in (
            "set time zone 'Asia/Tokyo'",
            "use elsewhere",
            "set time zone '+02:00'",
            "set time zone local",
        ):
            session.sql(statement)
            assert current_values(session) == session.sql(self.SAID).collect()[0].asDict()
        session.sql("create schema if not exists `2026`")
        session.sql("use `2026`")
        assert current_values(session) is None  # Spark quotes it, and is asked
        assert current_values(None) is None

    def test_settings_are_asked_at_once(self, spark: Any) -> None:
        session = spark.newSession()
        for number, value in enumerate(["", "a -> b", " -> ", "'\"`\\", "one\ntwo\r\t", "日本 \x1e"]):
            session.conf.set(f"my.{number}", value)
        found = made_settings(Ask(session.sql, session))
        assert found == session.conf.getAll and found["my.4"] == "one\ntwo\r\t"

    def test_settings_that_decide_results_are_sparks(self, spark: Any) -> None:
        if spark.version.startswith("4.1."):
            assert [
                name for name in sorted(RESULT_SETTINGS) if default_setting(Ask(spark.sql, spark), name, True) is None
            ] == []

    @delta_only("descriptions by version")
    def test_a_source_is_described_once_per_version(self, engine: Any) -> None:
        def asked(statement: str = "") -> int:
            if statement:
                engine.query(statement)
            engine.run()
            return sum(s.startswith("describe extended") and "shared" in s for s in engine.statements)

        feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
        engine.query(f"create or replace table {{schema}}.shared {feed} as select id, 1 as v from range(5)")
        engine.model("select *, rand() as r from {schema}.shared")
        assert asked() == 1
        engine.model("select id, v + 1 as w from {schema}.shared")
        assert (asked(), asked()) == (0, 0)
        assert asked("insert into {schema}.shared values (5, 1)") == 1
        assert asked("alter table {schema}.shared add columns (x string)") == 1
        assert asked("alter table {schema}.shared set tblproperties ('delta.enableChangeDataFeed' = 'false')") == 1
        engine.query("drop table {schema}.shared")
        # the same name and the same version, another table
        engine.query(f"create table {{schema}}.shared {feed} as select id, 7 as v, 'x' as x from range(5)")
        engine.model("select * from {schema}.shared", unique_key="id")
        assert asked() == 1 and engine.rows() == wanted(engine, "select id, 7, 'x' from {schema}.shared")
        engine.query("create or replace view {schema}.seen as select id, v from {schema}.shared")
        engine.model("select * from {schema}.seen")
        engine.run()
        engine.query("create or replace view {schema}.seen as select id, v + 1 as v from {schema}.shared")
        assert engine.run().plan.strategy != "NO_OP"
        assert engine.rows() == wanted(engine, "select id, 8 from {schema}.shared")
