"""Models in Iceberg tables: what a run publishes, keeps, evicts and leaves alone, and who comes first of two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt, write_file

from spark_mv.cli import main
from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.formats import iceberg_target
from spark_mv.spark.run import publish

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', file_format='iceberg') }}
select id, name, at, rand() as drawn from {{ target.schema }}.events
where at >= current_timestamp() - interval 3 days
"""
WHOLE = "select id, name, at from {schema}.events where at >= timestamp'%s' - interval 3 days"
MANY = 1000
"""Ids from here on are of rows that are there so that an incremental run is the cheaper one."""
Drawn = dict[Any, tuple[Any, ...]]


def days(*rows: tuple[int, str, int]) -> str:
    """Rows of `events`: id, name, day of February 2026."""
    return ", ".join(f"({id}, '{name}', timestamp'2026-02-{day:02} 00:00:00')" for id, name, day in rows)


@dataclass
class Model:
    """The model `mv` over the table `events`."""

    mv: Any
    sql: Callable[..., Any]
    project: Any

    def events(self, *rows: tuple[int, str, int]) -> None:
        self.sql("insert into {schema}.events values " + days(*rows))

    def run(self, day: int, strategy: str, *changed: int, args: tuple[str, ...] = ()) -> Drawn:
        """The run at a day of February, its strategy and, where given, its counts (inserted, updated, deleted); the drawn values
        after it."""
        at = f"2026-02-{day:02} 00:00:00"
        said = self.mv.run(at, *args)
        found = [said["strategy"], *(said[f"rows_{what}"] for what in ("inserted", "updated", "deleted"))]
        assert found[: 1 + len(changed)] == [strategy, *changed]
        assert sorted(self.mv.rows("id, name, at").elements()) == sorted(self.sql(WHOLE % at))
        return self.drawn()

    def fails(self, day: int, *args: str) -> str:
        return str(self.mv.run(f"2026-02-{day:02} 00:00:00", *args, expect_pass=False))

    def drawn(self) -> Drawn:
        return {id: drawn for id, drawn in self.mv.by_id("drawn").items() if id < MANY}

    def write(self, text: str) -> None:
        write_file(text, self.project.project_root, "models", "mv.sql")

    @property
    def newest(self) -> int:
        return int(self.sql("select snapshot_id from {schema}.mv.refs where name = 'main'")[0][0])

    @property
    def branches(self) -> list[str]:
        return [row[0] for row in self.sql("select name from {schema}.mv.refs where name <> 'main'")]


@pytest.fixture
def model(project: Any, mv: Any, sql: Callable[..., Any]) -> Model:
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    sql(f"create table {{schema}}.events (id bigint, name string, at timestamp) using delta {feed}")
    found = Model(mv, sql, project)
    found.events((1, "a", 1), (2, "b", 2), (3, "c", 3))
    sql(f"insert into {{schema}}.events select {MANY} + id, 'many', timestamp'2026-03-30 00:00:00' from range(200)")
    return found


class Base:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}


class TestRowsComeAndGo(Base):
    def test_who_stays_keeps_its_value(self, model: Model, sql: Callable[..., Any]) -> None:
        first = model.run(3, "COMPLETE_RECOMPUTE", 203, 0, 0)
        assert {row[0]: row[1] for row in sql("describe extended {schema}.mv")}["Provider"] == "iceberg"
        before = model.newest
        assert model.run(3, "NO_OP") == first
        assert model.newest == before
        model.events((4, "d", 3))
        second = model.run(3, "APPEND_ONLY", 1, 0, 0)
        sql("update {schema}.events set name = 'B' where id = 2")
        sql("delete from {schema}.events where id = 4")
        assert model.run(3, "ROW_BASED", 0, 1, 1) == first == {k: second[k] for k in (1, 2, 3)}
        # rows leave by the clock: alone, and with rows that come
        model.run(5, "ROW_BASED", 0, 0, 1)
        model.events((5, "e", 5))
        assert model.run(6, "APPEND_ONLY", 1, 0, 1)[3] == first[3]
        # a commit that writes nothing carries the record all the same
        model.events((99, "old", 1))
        model.run(6, "APPEND_ONLY", 0, 0, 0)
        model.run(6, "NO_OP")
        # compaction changes no row
        options = "options => map('rewrite-all', 'true')"
        sql(f"call iceberg_catalog.system.rewrite_data_files(table => '{{schema}}.mv', {options})")
        model.run(6, "NO_OP")
        assert model.branches == []


class TestOthersWrite(Base):
    def test_their_rows_go_and_values_stay_until_they_are_forgotten(
        self, model: Model, sql: Callable[..., Any], operation: Callable[..., str]
    ) -> None:
        first = model.run(3, "COMPLETE_RECOMPUTE")
        sql("update {schema}.mv set name = 'foreign', drawn = 7 where id = 3")
        sql("insert into {schema}.mv select id + id % 2, name, at, drawn from {schema}.mv")
        assert model.run(3, "COMPLETE_RECOMPUTE") == first
        operation("forget_values", {"model": "mv", "columns": ["drawn"], "where": "id = 3"})
        drawn = model.run(3, "COMPLETE_RECOMPUTE", 0, 1, 0)
        assert {k for k in first if drawn[k] != first[k]} == {3}
        model.run(3, "NO_OP")


class TestWhoComesFirst(Base):
    def test_one_of_two_publishes_and_who_is_killed_shows_nothing(
        self, model: Model, sql: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = model.run(3, "COMPLETE_RECOMPUTE")
        publishing = publish.publish

        def late(run: Any, step: Any, statement: str) -> None:
            run.session.query(
                f"insert into {run.relations['target']} select * from {run.relations['target']} where false"
            )
            publishing(run, step, statement)

        model.events((6, "f", 3))
        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.run.execute.publish", late)
            assert "by somebody else's statement" in model.fails(3)
        assert (model.branches, model.drawn()) == ([], first)
        second = model.run(3, "APPEND_ONLY", 1, 0, 0)

        def killed(*_: Any) -> None:
            raise RunFailed("KILLED", "killed")

        before = model.newest
        model.events((7, "g", 3))
        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.formats.iceberg_target._move_main", killed)
            patch.setattr("spark_mv.spark.formats.iceberg_target._drop_own", lambda *_: None)
            assert "killed" in model.fails(3)
        assert (model.newest, len(model.branches), model.drawn()) == (before, 1, second)
        third = model.run(3, "APPEND_ONLY", 1, 0, 0)
        assert model.branches == [] and {k: third[k] for k in second} == second
        # a table that is made anew: also there the second of two is refused
        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.run.execute.publish", late)
            assert "by somebody else's statement" in model.fails(3, "--full-refresh")
        assert model.drawn() == third

        # also where it publishes while the table is being made; the columns are put back, too
        moving = iceberg_target._move_main

        def moved(loaded: Any, name: str, asked: Any) -> None:
            moving(loaded, name, asked)
            sql("insert into {schema}.mv select * from {schema}.mv where id = 1")

        before = model.mv.rows()
        model.write(MODEL.replace("id, name,", "id, upper(name) as loud, name,"))
        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.formats.iceberg_target._move_main", moved)
            assert "by somebody else's statement" in model.fails(3)
        assert model.mv.rows() - before == Counter(model.sql("select * from {schema}.mv where id = 1")[:1])
        assert model.run(3, "COMPLETE_RECOMPUTE") == third


class TestAnotherTable(Base):
    def test_made_anew_with_its_values(self, model: Model) -> None:
        kept = model.run(3, "COMPLETE_RECOMPUTE")
        with_more = MODEL.replace("id, name,", "id, name, upper(name) as loud,")
        for text in (with_more.replace("file_format=", "partition_by=['days(at)'], file_format="), MODEL):
            model.write(text)
            assert model.run(3, "COMPLETE_RECOMPUTE") == kept
            model.run(3, "NO_OP")
        assert model.run(3, "COMPLETE_RECOMPUTE", args=("--full-refresh",)) == kept
        model.run(3, "NO_OP")
        model.write(MODEL.replace("'iceberg'", "'delta'"))
        assert "which is not made one of another format" in model.fails(3, "--full-refresh")


class TestFromDelta:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL.replace("'iceberg'", "'delta'")}

    def test_a_model_that_was_a_delta_table(
        self, model: Model, project: Any, sql: Callable[..., Any], warehouse: Path
    ) -> None:
        kept = model.run(3, "COMPLETE_RECOMPUTE")
        folder = warehouse / "tables" / f"{project.test_schema}.db"
        assert (folder / "mv" / "_delta_log").exists()
        model.write(MODEL)
        assert "Run once with --full-refresh" in model.fails(3)
        assert model.run(3, "COMPLETE_RECOMPUTE", args=("--full-refresh",)) == kept
        assert not [file for file in folder.iterdir() if "mv" in file.name and (file / "_delta_log").exists()]
        model.run(3, "NO_OP")
        sql("update {schema}.events set name = 'A' where id = 1")
        assert model.run(3, "ROW_BASED", 0, 1, 0) == kept


class TestInTheWay(Base):
    def test_a_table_that_somebody_else_made(self, model: Model, sql: Callable[..., Any]) -> None:
        """What is offered works: --full-refresh does not replace an Iceberg table by one of Delta."""
        sql("drop table if exists {schema}.mv")
        sql("create table {schema}.mv using iceberg as select 1L as id")
        model.write(MODEL.replace("'iceberg'", "'delta'"))
        for args in ((), ("--full-refresh",)):
            assert "FORMAT_STAYS" in model.fails(3, *args)
        assert sql("select id from {schema}.mv")[0][0] == 1
        model.write(MODEL)
        assert "NOT_OURS" in model.fails(3)
        model.run(3, "COMPLETE_RECOMPUTE", args=("--full-refresh",))


class TestUpkeep(Base):
    def test_snapshots_that_expire(self, model: Model, sql: Callable[..., Any]) -> None:
        def call(procedure: str, options: str) -> None:
            sql(f"call iceberg_catalog.system.{procedure}(table => '{{schema}}.mv', {options})")

        expire = "older_than => timestamp'2090-01-01 00:00:00', retain_last => 1"
        model.run(3, "COMPLETE_RECOMPUTE")
        model.events((4, "d", 3))
        drawn = model.run(3, "APPEND_ONLY", 1, 0, 0)
        call("expire_snapshots", expire)
        assert model.run(3, "NO_OP") == drawn
        # behind a compaction it is the record that expires: recomputed once, with the kept values
        call("rewrite_data_files", "options => map('rewrite-all', 'true')")
        call("expire_snapshots", expire)
        assert model.run(3, "COMPLETE_RECOMPUTE", 0, 0, 0) == drawn
        assert model.run(3, "NO_OP") == drawn


TESTED = """
models:
  - name: mv
    data_tests:
      - values_unchanged: {arguments: {columns: drawn}}
      - values_unchanged: {name: far_back, arguments: {columns: drawn, back: 99}}
      - matches_recompute
"""
HEADED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
{% call set_sql_header(config) %}create or replace temporary function twice(x bigint) returns bigint return x * 2{% endcall %}
select id, twice(id) as n, rand() as drawn from {{ target.schema }}.events
"""


class TestWhatIsSaidOfIt(Base):
    def test_tests_status_and_errors(self, model: Model, project: Any) -> None:
        model.write(MODEL)
        write_file(TESTED, project.project_root, "models", "schema.yml")
        model.run(3, "COMPLETE_RECOMPUTE")
        model.events((4, "d", 3))
        model.run(3, "APPEND_ONLY")
        tested = ["test", "--vars", json.dumps({"as_of": "2026-02-03 00:00:00"})]
        assert {r.status for r in run_dbt(tested)} == {"pass"}
        model.sql("update {schema}.mv set drawn = 2 where id = 1")
        assert {r.node.name.split("_mv")[0]: str(r.status) for r in run_dbt(tested, expect_pass=False)} == {
            "values_unchanged": "fail", "far_back": "pass", "matches_recompute": "pass"
        }  # fmt: skip

        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        found = CliRunner().invoke(main, ["status", *where, "--format", "json"])
        (said,) = json.loads(found.stdout)["models"]
        assert said["rows"] == 204 and said["condition"] != "never run", said
        adopted = CliRunner().invoke(main, ["adopt", "mv", *where])
        assert "only Delta tables can be adopted" in adopted.output and "--full-refresh" in adopted.output

        model.write(HEADED)
        assert "cannot read a function that is written in SQL" in model.fails(3)
