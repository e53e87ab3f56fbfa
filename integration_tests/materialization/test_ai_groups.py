"""ai_agg and dedupe through dbt: which groups are asked about again, how their runs are maintained, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.materialization.conftest import Mv

GROUPS = """
{{ config(materialized='nondeterministic_mv', unique_key='g') }}
select g, count(*) as n, sum(price) as total, ai_agg(body, 'What do they want?') as wish
from {{ target.schema }}.src group by g
"""
FOLDED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai={'dedupe': {'normalize': ['case', 'whitespace']}}) }}
select id, price, ai_gen(body) as answer from {{ target.schema }}.src
"""


class TestGroups:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": GROUPS, "folded.sql": FOLDED}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    @pytest.mark.slow
    def test_groups_and_near_duplicates_over_runs(self, mv: Any, sql: Any, operation: Any) -> None:
        sql(
            "create table {schema}.src using delta as select id, if(id < 4, 'g0', if(id < 6, 'g1', 'g2')) as g, 1 as price, "
            "concat(if(id % 2 = 0, 'Text ', 'TEXT   '), id % 4 div 2) as body from range(12)"
        )
        assert mv.run()["ai_calls"] == 3
        wishes = dict(sql("select g, wish from {schema}.mv"))
        assert wishes["g0"] == 'ai_agg: ["TEXT   0","TEXT   1","Text 0","Text 1"]'

        # an edit that leaves a group's texts alone asks nothing; a new member asks about its group
        sql("update {schema}.src set price = 5 where id = 1")
        edited = mv.run()
        assert (edited["ai_calls"], edited["rows_updated"]) == (0, 1)
        sql("insert into {schema}.src values (12, 'g0', 1, 'new'), (13, 'g4', 1, null)")
        grown = mv.run()
        assert grown["ai_calls"] == 1
        assert dict(sql("select g, wish from {schema}.mv")) == {
            **wishes,
            "g0": 'ai_agg: ["TEXT   0","TEXT   1","Text 0","Text 1","new"]',
            "g4": None,
        }
        assert mv.run()["strategy"] == "NO_OP"
        assert mv.run("2026-02-01 06:00:00", "--full-refresh")["ai_calls"] == 0

        # twelve rows with four texts of two questions; the new text is a third, and NULL is none
        folded = Mv(sql, "folded")
        said = operation("explain_mv", {"model": "folded"})
        assert "AI calls: 3 to make now" in said and "2 answered" in said
        assert folded.run()["ai_calls"] == 3
        answers = folded.by_id("answer")
        assert answers[0] == answers[1] and answers[2] == answers[3] != answers[0]
        assert folded.run()["strategy"] == "NO_OP"
        sql("insert into {schema}.src values (14, 'g5', 1, ' text 0 ')")
        later = folded.run()
        assert (later["ai_calls"], later["rows_inserted"], folded.by_id("answer")[14]) == (0, 1, answers[0])
        operation("ai_views", {})
        shared = "select state, count(answered_by) from {schema}.folded__ai_answers group by state"
        assert sql(shared) == [("current", 3)]
        assert sql("select sum(calls) from {schema}.ai_costs where function = 'ai_gen'") == [(3,)]
        operation("recompute_ai", {"model": "folded"})
        again = folded.run()
        assert (again["ai_calls"], again["ai_pending"]) == (3, 0)
        assert None not in {value for key, (value,) in folded.by_id("answer").items() if key != 13}
