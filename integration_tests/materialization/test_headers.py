"""A model's header holds wherever the model is asked about: its runs, explain_mv, matches_recompute and operations on answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.under_format import FORMAT

MAKES = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
{% call set_sql_header(config) %}
create or replace temporary function times_seven(x bigint) returns bigint return x * 7;
set time zone 'Asia/Kolkata'
{% endcall %}
select id, times_seven(id) as n, hour(timestamp'2026-02-01 00:00:00Z') as h, rand() as d
from {{ target.schema }}.src
"""
ASKS = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
{% call set_sql_header(config) %}set time zone 'Asia/Tokyo'{% endcall %}
select id, ai_gen(concat('headed ', cast(at as string))) as answer from {{ target.schema }}.src
"""
PLAIN = """
{{ config(materialized='nondeterministic_mv', unique_key='id', pre_hook=var('hook', 'select 1')) }}
select id, ai_gen(concat('plain ', cast(at as string))) as answer from {{ target.schema }}.src
"""
SCHEMA = """
models:
  - name: makes
    data_tests: [matches_recompute]
"""
if FORMAT == "iceberg":  # Iceberg's own parser takes no SQL function
    MAKES = MAKES.replace(
        "create or replace temporary function times_seven(x bigint) returns bigint return x * 7;\n", ""
    )
    MAKES = MAKES.replace("times_seven(id)", "id * 7")
DECLARED = {"functions": {"times_seven": {"determinism": "deterministic"}}}


class TestHeaders:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"makes.sql": MAKES, "asks.sql": ASKS, "plain.sql": PLAIN, "schema.yml": SCHEMA}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    def run(self, *args: str, **variables: Any) -> dict[str, Any]:
        said = json.dumps({"as_of": "2026-02-01 06:00:00", **DECLARED, **variables})
        return {r.node.name: r.adapter_response for r in run_dbt(["run", *args, "--vars", said])}

    def test_it_goes_before_every_question(self, project: Any, sql: Any, operation: Any) -> None:
        sql("create table {schema}.src using delta as select id, timestamp'2026-01-01 00:00:00Z' as at from range(4)")
        assert all(response["code"] == "CREATE" for response in self.run("--threads", "1").values())
        assert sql("select n, h from {schema}.makes where id = 1") == [(7, 5)]

        for name in ("makes", "asks"):
            said = operation("explain_mv", {"model": name}, as_of="2026-02-01 06:00:00", **DECLARED)
            assert f"{name}: NO_OP, as of" in said
        results = run_dbt(["test", "--vars", json.dumps(DECLARED)])
        assert [(r.status, r.node.name.split("_")[0]) for r in results] == [("pass", "matches")]
        sql("update {schema}.makes set h = 0 where id = 3")
        assert run_dbt(["test", "--vars", json.dumps(DECLARED)], expect_pass=False)[0].status == "fail"

        # answers that are in use, by requests that only this header tells; and it holds for its own model alone
        operation("ai_views", {})
        for name in ("asks", "plain"):
            assert sql(f"select distinct state from {{schema}}.{name}__ai_answers") == [("current",)]
        operation("recompute_ai", {"model": "asks", "where": "false"})
        before = sql("select count(*) from {schema}.ai_results")
        for dry_run in (True, False):
            assert "0 rows" in operation("prune_ai_results", {"older_than_days": 0, "dry_run": dry_run})
        assert sql("select count(*) from {schema}.ai_results") == before == [(2,)]
        assert not sql("show tables in {schema} like '*used*'")
        sql("update {schema}.src set at = timestamp'2027-01-01 00:00:00Z'")
        assert [r["ai_calls"] for r in self.run("--select", "asks", "plain").values()] == [1, 1]
        operation("prune_ai_results", {"older_than_days": 0})
        assert sql("select count(*) from {schema}.ai_results") == [(2,)]

    def test_a_session_that_is_not_the_runs(self, project: Any, sql: Any, operation: Any) -> None:
        """What only a hook sets is not known to an operation, which then removes nothing."""
        self.run("--select", "plain", hook="set time zone 'Asia/Tokyo'")
        before = sql("select count(*) from {schema}.ai_results")
        said = operation("prune_ai_results", {"older_than_days": 0}, expect_pass=False)
        assert "time zone was Asia/Tokyo" in said and "Nothing was removed" in said
        assert sql("select count(*) from {schema}.ai_results") == before
