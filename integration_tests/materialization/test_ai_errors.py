"""on_ai_error counts wherever it stands: in the profile, in the model's `ai` block, or beside it."""

from __future__ import annotations

from typing import Any

import pytest

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai=var('ai', {})) }}
select id, ai_gen(body) as answer from {{ target.schema }}.src
"""


class TestOnAiError:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        options = {"fail": {"refused": 0.5}}
        return {**dbt_profile_target, "ai": {"provider": "scripted", "on_ai_error": "fail", "options": options}}

    def test_the_model_wins_over_the_profile(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, concat('text ', id) as body from range(20)")
        said = mv.run(expect_pass=False)
        assert "on_ai_error is fail" in said and "nothing was changed" in said
        assert not sql("show tables in {schema} like 'mv'")

        allowed = mv.run(ai={"on_ai_error": "null"})
        failed = sum(row[0] is None for row in mv.rows("answer").elements())
        assert 0 < failed < 20
        # the answers that came are kept from the failed run, the inputs that were refused may not be asked again yet
        assert (allowed["ai_calls"], allowed["ai_reused"], allowed["ai_errors"]) == (0, 20 - failed, failed)


NESTED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', max_ai_calls=5) }}
select id, ai_gen(ai_gen(body)) as answer from {{ target.schema }}.src
"""


class TestBudget:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": NESTED}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    def test_it_is_that_of_the_run_not_of_each_call(self, project: Any, mv: Any, sql: Any) -> None:
        """Eight texts, two calls each, five calls a run: four runs, none of which fails."""
        sql("create table {schema}.src using delta as select id, concat('text ', id) as body from range(8)")
        calls = [mv.run()["ai_calls"] for _ in range(5)]
        assert calls == [5, 5, 5, 1, 0]
        assert mv.rows("count(*)", "answer is null") == {(0,): 1}
