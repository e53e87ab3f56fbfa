"""Turns: of two runs that started from one state of the table one publishes, the other writes nothing and says so."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.spark.formats.commits import Ask, commits
from spark_mv.spark.formats.replace_using import replace_using
from spark_mv.spark.formats.turn import USER_METADATA, Turn, take
from spark_mv.spark.run import prepare, publish
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.session.own_catalogue import own_catalogue

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, name, rand() as drawn from {{ target.schema }}.src where id < 100
"""
SECOND = "another run published a new version of the table while this one was working"


class Held(RunFailed):
    """Stops a run right before it publishes."""


@dataclass
class Late:
    """A run that was stopped before it published, and goes on later."""

    project: Any
    go_on: Callable[[], Any] | None = None

    def publish(self) -> str:
        """What the run says of its commit."""
        assert self.go_on is not None
        with self.project.adapter.connection_named("late"):
            return str(self.go_on())


@pytest.fixture
def hold(project: Any, mv: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Late]:
    """Start a run with these arguments and stop it before it publishes, its staging table as it is."""
    monkeypatch.setattr(prepare, "_leftovers", lambda *_: ())
    monkeypatch.setattr(prepare, "holds", lambda *_: False)  # it goes on in another session

    def start(*args: str) -> Late:
        late = Late(project)

        def held(run: MvRun, step: Any, statement: str) -> None:
            def go_on() -> str:
                resumed = replace(run, session=project.adapter)
                publish.publish(resumed, step, statement)
                return resumed.verb

            late.go_on = go_on
            raise Held("HELD", "held")

        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.run.execute.publish", held)
            patch.setattr(MvRun, "_drop_stages", lambda run: None)
            assert "held" in mv.run("2026-02-01 06:00:00", *args, expect_pass=False)
        return late

    return start


class TestTurns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    def right(self, mv: Any, sql: Any) -> None:
        assert mv.rows("id, name") == mv.rows("id, name") & _bag(
            sql("select id, name from {schema}.src where id < 100")
        )
        assert sum(mv.rows("id").values()) == sql("select count(*) from {schema}.src where id < 100")[0][0]

    def test_of_two_first_runs_one_makes_the_table(self, mv: Any, sql: Any, hold: Any) -> None:
        sql("create table {schema}.src using delta as select id, 'a' as name from range(5)")
        for second in ((), ("--full-refresh",)):
            late = hold()
            assert mv.run("2026-02-01 06:00:00", *second)["code"] == "CREATE"
            drawn = mv.by_id("drawn")
            with pytest.raises(RunFailed, match=SECOND):
                late.publish()
            assert (mv.by_id("drawn"), mv.version()) == (drawn, 0)
            sql("drop table {schema}.mv")

        late = hold()
        sql("create table {schema}.mv using delta as select 'theirs' as mine")
        with pytest.raises(RunFailed, match=SECOND):
            late.publish()
        assert sql("select * from {schema}.mv") == [("theirs",)]
        sql("drop table {schema}.mv")
        mv.run()

    def test_no_turn_is_taken_twice(self, mv: Any, sql: Any, hold: Any) -> None:
        """By the commit without data, by --full-refresh, by a merge, and by two runs alike in every word."""
        without_effect = "insert into {schema}.src values (1000, 'not selected')"
        with_effect = "insert into {schema}.src select 10 + max(id), 'b' from {schema}.src where id < 50"
        for first, args, second in (
            (without_effect, (), with_effect),
            (without_effect, (), without_effect),
            (with_effect, (), without_effect),
            (with_effect, ("--full-refresh",), with_effect),
            (with_effect, ("--full-refresh",), None),
        ):
            sql(first)
            late = hold(*args)
            if second:
                sql(second)
            mv.run()
            rows, version = mv.rows(), mv.version()
            with pytest.raises(RunFailed, match=SECOND):
                late.publish()
            assert (mv.rows(), mv.version()) == (rows, version)
            assert mv.run()["code"] == "NO_OP"
            self.right(mv, sql)

    @delta_only(
        "a run publishes over what others wrote meanwhile; see iceberg/test_targets.py for the run that is refused"
    )
    def test_a_foreign_commit_while_a_run_works(self, mv: Any, sql: Any, hold: Any, project: Any, spark: Any) -> None:
        sql("create table if not exists {schema}.src using delta as select id, 'a' as name from range(5)")
        mv.run()
        sql("update {schema}.src set name = 'before' where id = 0")
        mv.run()
        record = next(iter(sql("describe history {schema}.mv")))
        ours = next(v for v in record if isinstance(v, str) and "run_id" in v)
        for round_, metadata in enumerate(("job 7", ours)):
            sql(f"update {{schema}}.src set name = 'n{round_}' where id = 1")
            before = mv.by_id("drawn")
            late = hold()
            spark.conf.set(USER_METADATA, metadata)
            try:
                spark.sql(f"insert into {project.test_schema}.mv values (77, 'theirs', 0.5)")
                spark.sql(f"update {project.test_schema}.mv set name = 'theirs', drawn = -1 where id = 2")
            finally:
                spark.conf.unset(USER_METADATA)
            assert late.publish() == "MERGE"
            assert mv.run()["code"] != "NO_OP"
            self.right(mv, sql)
            assert mv.by_id("drawn") == before
            assert mv.run()["code"] == "NO_OP"


class TestOwnCatalogue:
    """Whose staging tables are dead at once: only where no other process can see the catalogue."""

    def test_another_default_catalogue_may_be_shared(self, spark: Any) -> None:
        session = spark.newSession()
        assert own_catalogue(session)
        session.conf.set("spark.sql.defaultCatalog", "elsewhere")
        assert not own_catalogue(session)
        assert not own_catalogue(None)


def _bag(rows: Any) -> Any:
    from collections import Counter

    return Counter(rows)


class Direct:
    """A session without dbt."""

    def __init__(self, spark: Any) -> None:
        self.spark, self.warned = spark, ""

    def query(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.sql(sql).collect()]

    def warn(self, text: str) -> None:
        self.warned = text

    def mv_spark(self) -> Any:
        return self.spark


class BySql(Direct):
    """As over Thrift: nothing but statements."""

    def mv_spark(self) -> Any:
        return None


def test_each_statement_that_publishes(spark: Any) -> None:
    """A skipped write is never taken for a published one, whatever the statement says of itself; what the user had set of
    these settings is as it was."""
    spark.sql("create schema if not exists turns")
    spark.sql("create or replace table turns.rows using delta as select 5L as id, 'new' as name")
    table = "`turns`.`kinds`"
    statements = {
        "merge_into": f"merge into {table} t using turns.rows s on t.id = s.id when matched then update set * "
        "when not matched then insert *",
        "append": f"insert into {table} select * from turns.rows",
        "replace_where": f"insert into {table} replace where id in (5) select * from turns.rows",
        "delete_where": f"delete from {table} where id = 1",
        "record_only": f"insert into {table} select * from {table} where false",
        "replace_table": f"create or replace table {table} using delta as select * from turns.rows",
    }
    spark.sql(f"create or replace table {table} using delta as select id, 'old' as name from range(3)")
    kinds = [(Direct, kind) for kind in (*statements, "replace_using")] + [(BySql, "append")]
    for make, kind in kinds:
        session = make(spark)
        ask = Ask(session.query, session.mv_spark())

        def write(kind: str = kind) -> None:
            if kind == "replace_using":
                replace_using(spark, "select * from turns.rows", table, ("id",))
            else:
                spark.sql(statements[kind]).collect()

        number = int(commits(ask, table, 1)[0]["version"]) + 1
        spark.conf.set(USER_METADATA, "the user's own")
        first, second = (uuid.uuid4().hex for _ in range(2))
        take(Turn(table, "kinds", number, f'{{"run_id":"{first}"}}', first), session, ask, write)
        assert first in commits(ask, table, 1)[0]["userMetadata"], kind
        with pytest.raises(TurnTaken):
            take(Turn(table, "kinds", number, f'{{"run_id":"{second}"}}', second), session, ask, write)
        assert int(commits(ask, table, 1)[0]["version"]) == number, kind
        assert spark.conf.get(USER_METADATA) == "the user's own"
        spark.conf.unset(USER_METADATA)
