"""Operations on AI answers: counting calls ahead, asking again, looking at who answered, removing what nobody uses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Mv
from dbt.tests.util import run_dbt

from spark_mv.spark.run.planning import CONSTRAINTS, EXCLUDED

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, ai_gen(body) as answer from {{ target.schema }}.src
"""
PLAIN = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} select id, rand() as d from {{ target.schema }}.src"


class TestUpkeep:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL, "plain.sql": PLAIN}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted", "price_per_1k_input_tokens": 1.0}}

    def test_the_life_of_an_answer(self, mv: Any, sql: Any, operation: Any) -> None:
        sql("create table {schema}.src using delta as select id, concat('text ', id) as body from range(10)")
        assert mv.run()["ai_calls"] == 10

        # what a run would ask, without asking
        sql("insert into {schema}.src values (10, 'new'), (11, 'newer'), (12, 'new')")
        output = operation("explain_mv", {"model": "mv", "format": "json"})
        counted = json.JSONDecoder().raw_decode(output[output.index("{\n") :])[0]["ai_calls"]
        assert (counted["calls"], counted["reused"]) == (2, 10)
        assert counted["input_tokens"] > 0 and counted["cost"] > 0
        assert "AI calls: 2 to make now" in operation("explain_mv", {"model": "mv"})
        assert mv.run()["ai_calls"] == 2
        assert mv.run()["strategy"] == "NO_OP"

        # asked again: once, by the next run, within its budget; until then the old answers stay
        answers = mv.by_id("answer")
        said = operation("recompute_ai", {"model": "mv", "where": "value = 'ai_gen: new'"})
        assert "mv: the next run asks again for 1 AI answers" in said
        assert mv.by_id("answer") == answers
        assert mv.run()["ai_calls"] == 1
        assert mv.run()["strategy"] == "NO_OP"
        operation("recompute_ai", {})
        assert mv.run()["ai_calls"] == 12
        operation("recompute_ai", {"errors_only": True})
        assert mv.run()["ai_calls"] == 0
        assert mv.by_id("answer") == answers

        # who answered what
        operation("ai_views", {})
        assert sql("select state, count(*) from {schema}.mv__ai_answers group by state") == [("current", 12)]
        assert sql("select sum(calls), sum(errors) from {schema}.ai_costs") == [(25, 0)]
        assert sql("select count(*) from {schema}.ai_errors") == [(0,)]

        # what no row refers to, and nothing else
        sql("delete from {schema}.src where id < 4")
        assert "0 rows would be removed" in operation("prune_ai_results", {"older_than_days": 1, "dry_run": True})
        would = operation("prune_ai_results", {"older_than_days": 0, "dry_run": True})
        before = sql("select count(*) from {schema}.ai_results")[0][0]
        said = operation("prune_ai_results", {"older_than_days": 0})
        gone = before - sql("select count(*) from {schema}.ai_results")[0][0]
        assert gone > 0 and f" {gone} rows would be removed" in would and f" {gone} rows removed" in said
        pruned = mv.run()
        assert (pruned["rows_deleted"], pruned["ai_calls"]) == (4, 0)

    def test_a_model_without_ai_need_not_be_fit_to_run(self, mv: Any, sql: Any, operation: Any) -> None:
        sql(
            "create table if not exists {schema}.src using delta as select id, concat('text ', id) as body from range(10)"
        )
        mv.run()
        sql(
            "create or replace table {schema}.plain using delta as select 1 as id, 0.5 as d"
        )  # it stands in the way of the model's
        assert "[NOT_OURS]" in operation("explain_mv", {"model": "plain"}, expect_pass=False)
        assert "0 rows would be removed" in operation("prune_ai_results", {"older_than_days": 1, "dry_run": True})
        assert "mv: the next run asks again for 0 AI answers" in operation(
            "recompute_ai", {"where": "value = 'no such'"}
        )
        assert mv.run()["strategy"] == "NO_OP"


class TestUnionOfSubqueries:
    """What Spark plans only with settings of the session, also where the model is asked about outside of its run."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        note = "(select max(body) from {{ target.schema }}.src i where i.id = o.id)"
        union = f"select id, {note} as body from {{{{ target.schema }}}}.src o union all select id + 100, 'more' from {{{{ target.schema }}}}.src"
        sql = MODEL.replace("{{ target.schema }}.src", f"({union})")
        tests = [{"ai_error_rate_below": {"arguments": {"rate": 0.5}}}]
        return {"mv.sql": sql, "schema.yml": json.dumps({"models": [{"name": "mv", "data_tests": tests}]})}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    def test_operations(self, mv: Any, sql: Any, operation: Any, spark: Any) -> None:
        sql("create table {schema}.src using delta as select id, concat('text ', id) as body from range(3)")
        before = {name: spark.conf.get(name, None) for name in (CONSTRAINTS, EXCLUDED)}
        assert mv.run()["ai_calls"] == 4
        sql("insert into {schema}.src values (3, 'new')")
        assert "AI calls: 1 to make now" in operation("explain_mv", {"model": "mv"})
        assert "the next run asks again for 4 AI answers" in operation("recompute_ai", {"model": "mv"})
        assert mv.run()["ai_calls"] == 5
        assert "0 rows would be removed" in operation("prune_ai_results", {"older_than_days": 1, "dry_run": True})
        sql("delete from {schema}.src where id = 3")
        operation("prune_ai_results", {"older_than_days": 0})
        assert sql("select count(*) from {schema}.ai_results where value = 'ai_gen: new'") == [(0,)]
        assert mv.run()["ai_calls"] == 0
        assert {name: spark.conf.get(name, None) for name in before} == before
        assert [str(result.status) for result in run_dbt(["test"])] == ["pass"]


class TestSharedAnswers:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        other = MODEL.replace("ai_gen(body)", "ai_gen(concat('another ', body))")
        last = MODEL.replace(".src", ".last")  # a table that is not there
        return {"mv.sql": MODEL, "twin.sql": MODEL, "other.sql": other, "plain.sql": PLAIN, "z_last.sql": last}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    @pytest.fixture(scope="class", autouse=True)
    def src(self, sql: Any) -> None:
        sql("create table {schema}.src using delta as select id, concat('text ', id) as body from range(3)")

    def test_who_shows_an_answer_is_told_that_it_is_asked_again(self, mv: Any, sql: Any, operation: Any) -> None:
        twin, other = Mv(sql, "twin"), Mv(sql, "other")
        assert [model.run()["ai_calls"] for model in (mv, twin, other)] == [3, 0, 3]
        answers = mv.by_id("answer")
        sql("update {schema}.ai_results set value = 'earlier'")
        for model in (mv, twin):
            model.run("2026-02-01 06:00:00", "--full-refresh")
        assert set(twin.by_id("answer").values()) == {("earlier",)}
        said = operation("recompute_ai", {"model": "mv"})
        assert "twin shares some of these answers" in said
        assert not any(name in said for name in ("other", "plain"))
        assert mv.run()["ai_calls"] == 3
        shown = twin.run()
        assert (shown["ai_calls"], shown["rows_updated"]) == (0, 3)
        assert twin.by_id("answer") == mv.by_id("answer") == answers
        assert [model.run()["strategy"] for model in (mv, twin, other)] == ["NO_OP"] * 3

    def test_nothing_is_marked_where_one_of_all_models_cannot_be_read(self, mv: Any, sql: Any, operation: Any) -> None:
        mv.run()
        stale = sql("select count(*) from {schema}.ai_results where status = 'stale'")
        said = operation("recompute_ai", {}, expect_pass=False)
        assert "z_last" in said and "last` cannot be found" in said
        assert sql("select count(*) from {schema}.ai_results where status = 'stale'") == stale

    def test_a_table_of_somebody_else_is_left_alone(self, mv: Any, sql: Any, operation: Any) -> None:
        mv.run()
        sql("create table if not exists {schema}.plain using delta as select 1 as id, 0.5 as d")
        sql("alter table {schema}.plain unset tblproperties if exists ('spark_mv.model')")
        sql("insert into {schema}.plain values (2, 0.5)")  # two small files, which OPTIMIZE would put together
        before = len(sql("describe history {schema}.plain"))
        said = operation("maintain", {"vacuum": True})
        assert "plain: left alone, nondeterministic_mv did not make it" in said and "vacuumed" in said
        assert len(sql("describe history {schema}.plain")) == before
        sql("drop table {schema}.plain")

    def test_a_model_without_ai_is_refused(self, operation: Any) -> None:
        assert "there is no AI function in plain" in operation("recompute_ai", {"model": "plain"}, expect_pass=False)

    def test_wrong_arguments_are_refused_before_anything_is_marked(self, operation: Any, sql: Any) -> None:
        for model in ("mv", "plain"):
            Mv(sql, model).run()
        for name, args, why in (
            (
                "recompute_ai",
                {"modl": "mv"},
                "recompute_ai takes model, errors_only, where, and no modl. Nothing was changed",
            ),
            ("ai_views", {"model": "mv"}, "ai_views takes no argument, and no model"),
            ("maintain", {"vaccum": True}, "and no vaccum"),
            ("erase", {"model": "plain", "key": [1]}, "erase takes model, keys, where, dry_run, and no key"),
            ("recompute_ai", {"model": "mv", "where": "nosuch = 1"}, "UNRESOLVED_COLUMN"),
            ("recompute_ai", {"model": "mv", "where": "status"}, "gives string"),
            ("recompute_ai", {"model": "mv", "where": ""}, "is no condition"),
            ("recompute_ai", {"model": "mv", "where": ["status = 'ok'"]}, "is no condition"),
            ("recompute_ai", {"model": "mv", "where": "rand() < 0.5"}, "depends on rand"),
            ("recompute_ai", {"model": "mv", "where": "result_key in (select 1)"}, "has a subquery"),
            ("recompute_ai", {"model": "mv", "errors_only": "false"}, "neither true nor false"),
            ("recompute_ai", {"model": None}, "nothing is no name of a model"),
            ("collect_ai", {"model": ""}, "nothing is no name of a model"),
            ("collect_ai", {"gone": 5}, "neither a name nor a list"),
            ("prune_ai_results", {"older_than_days": "x"}, "is no number"),
            ("prune_ai_results", {"older_than_days": -30}, "from 0 to 36,500"),
            ("prune_ai_results", {"dry_run": "no"}, "neither true nor false"),
            ("maintain", {"vacuum": "perhaps"}, "neither true nor false"),
            ("maintain", {"model": None, "dry_run": True}, "nothing is no name of a model"),
            ("erase", {}, "nothing is no name of a model"),
            ("eject_mv", {"model": "plain", "apply": "false"}, "neither true nor false"),
            ("erase", {"model": "mv", "where": ""}, "is no condition"),
            ("forget_values", {"model": "plain", "columns": ["d"], "where": ""}, "is no condition"),
            ("forget_values", {"model": "plain", "columns": 7}, "neither a name nor a list"),
            ("forget_values", {"model": "plain", "columns": [None]}, "neither a name nor a list"),
            ("forget_values", {"model": "plain", "columns": {"d": "n = 1"}}, "neither a name nor a list"),
            ("explain_mv", {"model": "mv", "format": "xml"}, "is none of text, json"),
        ):
            said = operation(name, args, expect_pass=False)
            assert why in said and "Nothing was" in said and "Project [" not in said, said
        sql("alter table {schema}.src rename to {schema}.away")
        said = operation("prune_ai_results", {"older_than_days": 0}, expect_pass=False)
        assert "src` cannot be found" in said and "Project [" not in said
        sql("alter table {schema}.away rename to {schema}.src")
