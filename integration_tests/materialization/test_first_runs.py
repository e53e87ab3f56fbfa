"""What a first run takes the place of, and what belongs to its table beside the rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from integration_tests.under_format import FORMAT, delta_only

from spark_mv.spark.adapter.mv_methods import MvMixin
from spark_mv.spark.run import stamps
from spark_mv.spark.run.execute import MvRun

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', tblproperties=var('properties', {})) }}
select id, name, rand() as drawn from {{ target.schema }}.src
"""
CHECKED = """
models:
  - name: checked
    config: {contract: {enforced: true}, persist_docs: {columns: true}}
    constraints:
      - {type: check, name: few, expression: "id < {{ var('most', 100) }}, 1 = 1"}
      - {type: check, name: token_of_few, expression: "drawn < {{ var('most', 100) }} and 'a  b' <> 'a b' -- always"}
    columns:
      - {name: id, data_type: bigint, description: "{{ var('words', 'the key') }}", constraints: [{type: not_null}]}
      - {name: drawn, data_type: double}
""".replace(", 1 = 1", " or id in (1, 2)")


def drop_leaving_files(sql: Any, table: str) -> Path:
    """As if whoever made it had been killed before the catalogue knew of it. Returns where they are."""
    (location,) = (row[1] for row in sql(f"describe extended {{schema}}.{table}") if row[0] == "Location")
    place = Path(location.removeprefix("file:"))
    shutil.copytree(place, place.parent / "copy")
    sql(f"drop table {{schema}}.{table}")
    shutil.copytree(place.parent / "copy", place)
    shutil.rmtree(place.parent / "copy")
    return place


class TestFirstRuns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        checked = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} select id, rand() as drawn from {{ target.schema }}.src"
        mapped = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} select id, name as `the name`, rand() as drawn from {{ target.schema }}.src"
        sampled = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} select id, name, rand() as drawn from {{ target.schema }}.src where rand() < 0.5"
        return {
            "mv.sql": MODEL,
            "sampled.sql": sampled,
            "checked.sql": checked,
            "checked.yml": CHECKED,
            "mapped.sql": mapped,
        }

    def properties(self, sql: Any, table: str) -> dict[str, str]:
        return dict(sql(f"show tblproperties {{schema}}.{table}"))

    def test_what_is_in_the_way_stays_until_the_new_table_is_there(self, mv: Any, sql: Any, project: Any) -> None:
        sql("create table {schema}.src using delta as select id, 'a' as name from range(5)")
        for made in (
            "create table {schema}.mv using parquet as select 'theirs' as mine",
            "create view {schema}.mv as select 'theirs' as mine",  # second: Iceberg's DROP leaves files, which are in no view's way
        ):
            sql(made)
            sql("insert into {schema}.src values (1, 'twice')")
            assert "share a key" in mv.run("2026-02-01 06:00:00", "--full-refresh", expect_pass=False)
            assert sql("select * from {schema}.mv") == [("theirs",)]
            sql("delete from {schema}.src where name = 'twice'")
            if FORMAT == "delta":  # others take whatever property
                mv.run(
                    "2026-02-01 06:00:00", "--full-refresh", expect_pass=False, properties={"delta.noSuchThing": "1"}
                )
                assert sql("select * from {schema}.mv") == [("theirs",)]
            assert mv.run("2026-02-01 06:00:00", "--full-refresh")["code"] == "CREATE"
            assert sorted(row[1] for row in sql("show tables in {schema}")) == ["mv", "src"]
            assert mv.run()["code"] == "NO_OP"
            sql("drop table {schema}.mv")

    @delta_only("a folder that holds files is in the way of a new table")
    def test_files_that_a_killed_first_run_left(self, mv: Any, sql: Any) -> None:
        """Before the commit, and between it and the catalogue. A table of others there is not overwritten."""
        for last in ("data", "log", "theirs"):
            sql("create table {schema}.mv using delta tblproperties ('spark_mv.model'='x') as select 1 as old")
            if last == "theirs":
                sql("alter table {schema}.mv unset tblproperties ('spark_mv.model')")
            place = drop_leaving_files(sql, "mv")
            if last == "data":
                shutil.rmtree(place / "_delta_log")
            if last == "theirs":
                assert "did not make" in mv.run(expect_pass=False)
                shutil.rmtree(place)
            else:
                assert mv.run()["code"] == "CREATE"
                assert sum(mv.rows().values()) == 5
                assert mv.run()["code"] == "NO_OP"
                sql("drop table {schema}.mv")

    @delta_only("a folder that holds files is in the way of a new table")
    def test_files_of_its_state_that_a_killed_run_left(self, mv: Any, sql: Any) -> None:
        sql("create table if not exists {schema}.src using delta as select id, 'a' as name from range(5)")
        sampled = type(mv)(sql, "sampled")
        sampled.run()
        for last in ("data", "log"):
            place = drop_leaving_files(sql, "sampled__state")
            if last == "data":
                shutil.rmtree(place / "_delta_log")
            drawn = sampled.by_id("drawn")
            sql(f"insert into {{schema}}.src select id, '{last}' from range(100, 150)")
            assert sampled.run()["code"] == "MERGE"
            assert drawn.items() <= sampled.by_id("drawn").items()
            assert len(sql("select * from {schema}.sampled__state")) == 55
            assert sampled.run()["code"] == "NO_OP"
            sql("delete from {schema}.src where id >= 100")
            sampled.run()

    @delta_only("column mapping and the change feed")
    def test_column_mapping_goes_with_the_feed(self, mv: Any, sql: Any) -> None:
        for name, mode in (("delta.columnMapping.mode", "name"), ("Delta.ColumnMapping.MODE", "ID")):
            wanted = {name: mode}
            mv.run(properties=wanted)
            drawn = mv.by_id("drawn")
            mv.run("2026-02-01 06:00:00", "--full-refresh", properties=wanted)
            assert mv.by_id("drawn") == drawn
            found = self.properties(sql, "mv")
            assert found["delta.columnMapping.mode"] == mode
            assert found["delta.enableChangeDataFeed"] == "true"
            version = mv.version()
            assert mv.run(properties=wanted)["code"] == "NO_OP"
            assert mv.version() == version
            sql("drop table {schema}.mv")
        other = type(mv)(sql, "mapped")
        other.run()
        assert self.properties(sql, "mapped")["delta.enableChangeDataFeed"] == "true"
        sql(
            "alter table {schema}.mapped set tblproperties ('delta.enableChangeDataFeed' = 'false')"
        )  # as if killed before
        other.run()
        assert self.properties(sql, "mapped")["delta.enableChangeDataFeed"] == "true"

    @delta_only("checks of a table")
    def test_checks_and_descriptions_follow_the_model(self, mv: Any, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sql("create table if not exists {schema}.src using delta as select id, 'a' as name from range(5)")
        checked = type(mv)(sql, "checked")

        def killed(*_: Any) -> Any:
            raise RuntimeError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(MvMixin, "mv_response", killed)  # after the table is made
            checked.run(expect_pass=False)
        with pytest.raises(Exception, match="few"):
            sql("insert into {schema}.checked values (100, 0.5)")
        with pytest.raises(Exception, match="mv_not_null"):
            sql("insert into {schema}.checked values (null, 0.5)")
        version = checked.version()
        assert checked.run()["code"] == "NO_OP"
        assert [row[2] for row in sql("describe {schema}.checked") if row[0] == "id"] == ["the key"]
        assert checked.run()["code"] == "NO_OP"
        assert checked.version() == version + 1  # the description, once

        sql("alter table {schema}.checked add constraint theirs check (drawn < 2)")
        sql("insert into {schema}.src values (150, 'b')")
        checked.run(most=200)  # the check that it breaks is worded anew, another's stays
        found = self.properties(sql, "checked")
        assert found["delta.constraints.few"].replace(" ", "") == "id<200oridin(1,2)"
        assert found["delta.constraints.theirs"] == "drawn < 2"
        detail = next(value for value in sql("describe detail {schema}.checked")[0] if isinstance(value, dict))
        assert (
            detail["delta.constraints.token_of_few"] == "drawn < 200 and 'a  b' <> 'a b'"
        )  # which Spark prints as (redacted) elsewhere
        sql("alter table {schema}.checked drop constraint few")  # as if killed in between
        checked.run(most=200)
        assert "delta.constraints.few" in self.properties(sql, "checked")
        version = checked.version()
        assert checked.run(most=200)["code"] == "NO_OP"
        assert checked.version() == version

    def test_staging_tables_of_a_live_run(self, mv: Any, sql: Any) -> None:
        live, dead = stamps.new_stamp(), stamps.new_stamp()
        stamps.begun(live)
        for stamp in (live, dead):
            sql(f"create table {{schema}}.mv__mv_stage_{stamp}_changes_0 using parquet as select 1 as a")
        sql(f"create view {{schema}}.mv__mv_stage_{dead}_aside as select 1 as a")
        try:
            mv.run()
            left = [row[1] for row in sql("show tables in {schema}") if "__mv_stage_" in row[1]]
            assert left == [f"mv__mv_stage_{live}_changes_0"]
        finally:
            stamps.ended(live)
        assert not [stamp for stamp in stamps._live if stamp != live], MvRun
