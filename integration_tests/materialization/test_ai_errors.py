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
