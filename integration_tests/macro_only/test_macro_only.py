"""Models on plain dbt-spark (`type: spark`, the session in this process), from plans that `spark-mv plan` wrote; the same tables as with
the adapter, in turns with it."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import write_file
from pyspark.sql import SparkSession

_MV = """
{{ config(materialized='nondeterministic_mv', meta={'nondeterministic_mv': {'unique_key': 'id'}}) }}
select id, word, created_at, rand() as draw, uuid() as token, 'it''s {{ "{{" }} "\\\\ ' as odd
from {{ target.schema }}.events
where created_at > current_timestamp() - interval 3 days
"""
_STAMPED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['first_seen_at'], partition_by='id') }}
select {{ target.schema }}.events.id, current_timestamp() as first_seen_at, current_date() as day, unix_timestamp() as at, localtimestamp() as here
from {{ target.schema }}.events
"""
_OF_FILES = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, rand() as draw from {{ target.schema }}.events_files
"""
_SAMPLED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id from {{ target.schema }}.events where rand() < 0.5
"""
_RIVAL = """
{#- Another run publishes between this one's look at the table and its own commit. -#}
{% macro default__mv_append(args) -%}
  {%- if var('rival', none) -%}
    {%- set last = run_query('describe history ' ~ args['relation'] ~ ' limit 1').rows[0] -%}
    {%- set record = fromjson(last['userMetadata']) -%}
    {%- do record.update({'base_version': last['version'] | int, 'turn': (last['version'] | int) + 1, 'run_id': 'rival'}) -%}
    {%- set sql = 'insert into ' ~ args['relation'] ~ " select 99, 'rival', current_timestamp(), 0, '', ''" -%}
    {%- do dbt_spark_mv.mv_publish(args['relation'], record, {'theirs': {}}, sql, []) -%}
  {%- endif -%}
  {{ return(dbt_spark_mv.default__mv_append(args)) }}
{%- endmacro %}
"""


class TestMacroOnly:
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {"mv.sql": _MV, "stamped.sql": _STAMPED, "of_files.sql": _OF_FILES, "sampled.sql": _SAMPLED}

    @pytest.fixture(scope="class")
    def macros(self) -> Any:
        return {"rival.sql": _RIVAL}

    @pytest.fixture(scope="class")
    def tables(self) -> tuple[str, ...]:
        return (
            "create table {s}.events (id bigint, word string, created_at timestamp) using delta",
            "insert into {s}.events select id, 'w', timestampadd(DAY, cast(id as int), timestamp'2026-01-28 12:00:00') from range(1, 5)",
            "create table {s}.events_files using parquet as select * from {s}.events",
        )

    def test_alternating(self, project: Any, sql: Any, run: Any, plan: Any) -> None:
        def rows() -> dict[int, tuple[Any, ...]]:
            return {row[0]: row[1:] for row in sql("select id, word, draw, token from {s}.mv")}

        def version() -> int:
            return int(sql("describe history {s}.mv limit 1")[0][0])

        assert "spark-mv plan" in run("plain", 1, ok=False)
        made = plan()
        assert made.exit_code == 0, made.output
        assert "mv: planned (changed)" in made.output and "stamped: planned" in made.output
        assert "of_files: needs the adapter: it reads" in made.output and "sampled: needs the adapter" in made.output
        assert plan("--check").exit_code == 0

        assert run("plain", 1)["code"] == "CREATE"
        first = rows()
        assert run("plain", 1)["code"] == "NO_OP"
        assert run("ours", 1)["strategy"] == "NO_OP"  # all that the macros recorded is what the adapter finds
        assert version() == 0

        evicted = run("plain", 3)
        second = rows()
        assert evicted["code"] == "MERGE" and 0 < len(second) < len(first)
        assert second == {key: first[key] for key in second}
        assert run("ours", 3)["strategy"] == "NO_OP"

        sql("insert into {s}.events values (10, 'new', timestamp'2026-02-02 00:00:00')")
        run("ours", 3)
        third = rows()
        assert third == {**second, 10: third[10]}
        sql("update {s}.events set word = 'x' where id = 4")
        sql("insert into {s}.events values (11, 'new', timestamp'2026-02-02 00:00:00')")
        assert run("plain", 3)["code"] == "MERGE"
        fourth = rows()
        assert {key: row[1:] for key, row in fourth.items() if key != 11} == {k: r[1:] for k, r in third.items()}
        assert fourth[4][0] == "x" and 11 in fourth
        assert run("ours", 3)["strategy"] == "NO_OP"
        assert run("plain", 3, "--full-refresh")["code"] == "REPLACE"
        assert rows() == fourth
        sql("insert into {s}.events values (12, 'new', timestamp'2026-02-02 00:00:00')")
        assert run("plain", 3)["code"] == "MERGE"  # an append
        fifth = rows()
        assert fifth == {**fourth, 12: fifth[12]}

        # what must not be published is not
        before = version()
        sql("insert into {s}.events values (12, 'twice', timestamp'2026-02-02 00:00:00')")
        assert "[KEY_REPEATED]" in run("plain", 3, ok=False)
        sql("delete from {s}.events where word = 'twice'")
        sql("insert into {s}.events values (13, 'new', timestamp'2026-02-02 00:00:00')")
        assert "[TURN_TAKEN]" in run("plain", 3, ok=False, rival=True)
        assert set(rows()) == {*fifth, 99} and version() == before + 1
        assert run("plain", 3)["code"] == "MERGE"
        sixth = rows()
        assert sixth == {**fifth, 13: sixth[13]}
        sql("delete from {s}.mv where id = 12")
        assert "[NEEDS_ADAPTER]" in run("plain", 3, ok=False)
        run("ours", 3)
        assert rows() == sixth
        assert run("plain", 3)["code"] == "NO_OP"
        assert sql("show tables in {s} like 'mv__mv_stage*'") == []
        left = SparkSession.builder.getOrCreate().sql("set").collect()  # dbt-spark's own session
        assert not [row[0] for row in left if "txnAppId" in row[0] or "userMetadata" in row[0]]

    def test_every_form_of_the_clock(self, sql: Any, run: Any, plan: Any) -> None:
        """What Spark writes in the places of a plan is what the engine writes."""
        assert plan().exit_code == 0
        run("plain", 4, model="stamped")
        assert run("ours", 4, model="stamped")["strategy"] == "NO_OP"
        kept = sql("select id, first_seen_at from {s}.stamped order by id")
        run("plain", 5, model="stamped")
        assert sql("select id, first_seen_at from {s}.stamped order by id") == kept
        assert {str(row[0]) for row in sql("select day from {s}.stamped")} == {"2026-02-05"}
        assert run("ours", 5, model="stamped")["strategy"] == "NO_OP"

    def test_what_does_not_fit(self, project: Any, run: Any, plan: Any) -> None:
        assert plan().exit_code == 0
        assert "[NEEDS_ADAPTER]" in run("plain", 5, model="of_files", ok=False)
        assert "[ONE_THREAD]" in run("plain", 5, "--threads", "2", ok=False)
        write_file(_MV.replace("3 days", "2 days"), project.project_root, "models", "mv.sql")
        assert "[STALE_PLAN]" in run("plain", 5, ok=False)
        assert plan("--check").exit_code == 1
        assert "mv: planned (changed)" in plan("mv").output
        run("plain", 5)
        write_file(
            _MV.replace("3 days", "2 days").replace("'unique_key': 'id'", "'unique_key': 'word'"),
            project.project_root,
            "models",
            "mv.sql",
        )
        assert "unique_key" in run("plain", 5, ok=False)
        write_file(_MV, project.project_root, "models", "mv.sql")
        write_file(_MV.replace(".events", ".nowhere"), project.project_root, "models", "later.sql")
        planned = plan()
        assert planned.exit_code == 1 and "mv: planned (changed)" in planned.output
        assert "later: it cannot be planned: " in planned.output and "nowhere" in planned.output
