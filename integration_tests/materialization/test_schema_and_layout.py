"""Changed columns, contracts, layout, comments, hooks and tags of a nondeterministic_mv."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from integration_tests.under_format import FORMAT

from spark_mv.spark.run import stamps

MODEL = """
{{ config(
    materialized='nondeterministic_mv', unique_key=['id', 'day'], tags=['nightly'],
    on_schema_change=var('policy', 'sync_all_columns'),
    tblproperties={'team': 'analytics'}, persist_docs={'relation': true, 'columns': true},
    pre_hook='create table if not exists {{ target.schema }}.hooked (at string) using delta',
    post_hook="insert into {{ target.schema }}.hooked values ('after')",
    **LAYOUT
) }}
select id, day, note, uuid() as row_id from {{ target.schema }}.src
"""
BY_DAY = MODEL.replace("**LAYOUT", "partition_by=['day']")
OTHER = {"delta": "liquid_clustered_by=['id']", "iceberg": "partition_by=['bucket(4, id)']"}
CLUSTERED = MODEL.replace("**LAYOUT", OTHER[FORMAT])
SCHEMA = """
models:
  - name: mv
    description: "It's a test"
    columns:
      - name: note
        description: the note's text
"""
CONTRACT = """
models:
  - name: mv
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: day, data_type: date}
      - {name: note, data_type: string, constraints: [{type: check, expression: "note <> 'bad'"}]}
      - {name: row_id, data_type: string}
"""


class TestSchemaAndLayout:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": BY_DAY, "schema.yml": SCHEMA}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as "
            "select id, date'2026-01-01' + cast(id % 2 as int) as day, 'n' as note from range(20)"
        )

    def describe(self, sql: Any) -> dict[str, str]:
        return {row[0]: row[1] for row in sql("describe extended {schema}.mv") if row[0]}

    def test_layout_comments_hooks(self, project: Any, mv: Any, sql: Any) -> None:
        mv.run()
        seen = self.describe(sql)
        assert "team=analytics" in seen["Table Properties"]
        assert seen["Comment"] == "It's a test"
        comments = {row[0]: row[2] for row in sql("describe {schema}.mv") if row[0] == "note"}
        assert comments == {"note": "the note's text"}
        assert sql("select count(*) from {schema}.hooked") == [(1,)]
        assert "# Partition Information" in seen
        drawn = mv.rows()
        assert mv.run()["strategy"] == "NO_OP"
        # an edited description reaches the table, and is no reason to touch its rows
        write_file(SCHEMA.replace("It's a test", "It's\\n${env:HOME}"), project.project_root, "models", "schema.yml")
        assert mv.run()["strategy"] == "NO_OP"
        assert self.describe(sql)["Comment"] == "It's\n${env:HOME}"
        version = mv.version()
        assert mv.run()["strategy"] == "NO_OP" and mv.version() == version
        # another layout rebuilds the table and keeps the draws
        write_file(CLUSTERED, project.project_root, "models", "mv.sql")
        assert mv.run()["code"] == "REPLACE"
        if FORMAT == "delta":
            assert 'clusteringColumns=[["id"]]' in self.describe(sql)["Table Properties"]
        else:
            assert self.describe(sql)["Part 0"] == "bucket(4, id)"
        assert mv.rows() == drawn
        assert mv.run()["strategy"] == "NO_OP"
        # Delta replaces no table by a partitioned one that is clustered, or ever was
        plain = MODEL.replace("**LAYOUT", "meta={'laid': 'out'}")
        for model in (BY_DAY, CLUSTERED, plain, BY_DAY, CLUSTERED):
            write_file(model, project.project_root, "models", "mv.sql")
            assert mv.run()["strategy"] == "COMPLETE_RECOMPUTE"
            assert mv.rows() == drawn
            assert ("# Partition Information" in self.describe(sql)) == (model == BY_DAY)
            assert not [row for row in sql("show tables in {schema}") if "mv_stage" in row[1]]
            assert mv.run()["strategy"] == "NO_OP"
        assert len(run_dbt(["run", "--select", "tag:nightly"])) == 1

    def test_changed_columns(self, project: Any, mv: Any, sql: Any) -> None:
        write_file(CLUSTERED, project.project_root, "models", "mv.sql")
        mv.run()
        drawn = mv.rows("id, row_id")
        more = CLUSTERED.replace("note,", "note, length(note) as size,")
        less = more.replace("note, length", "length")
        write_file(more, project.project_root, "models", "mv.sql")
        assert "on_schema_change is fail" in mv.run(expect_pass=False, policy="fail")
        assert mv.run(policy="ignore")["strategy"] == "COMPLETE_RECOMPUTE"
        assert len(next(iter(mv.rows()))) == 4
        mv.run(policy="append_new_columns")
        assert set(mv.rows("size")) == {(1,)}
        write_file(less, project.project_root, "models", "mv.sql")
        mv.run(policy="append_new_columns")
        assert set(mv.rows("size, note")) == {(1, "n")}
        mv.run()
        assert len(next(iter(mv.rows()))) == 4
        assert mv.rows("id, row_id") == drawn

    def test_contract(self, project: Any, mv: Any, sql: Any) -> None:
        write_file(CLUSTERED, project.project_root, "models", "mv.sql")
        write_file(CONTRACT, project.project_root, "models", "schema.yml")
        mv.run("2026-02-01 06:00:00", "--full-refresh")
        rows = mv.rows()
        sql("update {schema}.src set note = 'bad' where id = 1")
        assert "note" in mv.run(expect_pass=False)
        assert mv.rows() == rows
        assert "note" in mv.run("2026-02-01 06:00:00", "--full-refresh", expect_pass=False)
        assert mv.rows() == rows
        sql("update {schema}.src set note = 'good' where id = 1")
        assert mv.run()["rows_updated"] == 1
        write_file(
            CONTRACT.replace("data_type: string}", "data_type: int}"), project.project_root, "models", "schema.yml"
        )
        assert "contract" in mv.run(expect_pass=False).lower()
        assert not stamps._live  # refused once it was planned: it has not begun


FIELD = """
{{ config(materialized='nondeterministic_mv', unique_key='id', **LAYOUT) }}
select id, st, at, rand() as drawn from {{ target.schema }}.src
"""
BY_FIELD = {
    "delta": "liquid_clustered_by=['st.x', 'id']",
    "iceberg": "partition_by=['st.x', 'truncate(id, 3)', 'date(at)']",
}


class TestLaidOutByAField:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": FIELD.replace("**LAYOUT", BY_FIELD[FORMAT])}

    def test_is_followed_as_it_is_laid_out(self, project: Any, mv: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as select id, named_struct('x', id % 2) as st, "
            "timestamp'2026-01-01' as at from range(20)"
        )
        mv.run()
        drawn = mv.rows("id, drawn")
        assert mv.run()["strategy"] == "NO_OP"
        sql("insert into {schema}.src values (20, named_struct('x', 1), timestamp'2026-01-02')")
        assert mv.run()["code"] == "MERGE"  # the layout is not taken for another
        assert drawn <= mv.rows("id, drawn") and len(mv.rows("id")) == 21
