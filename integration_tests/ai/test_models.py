"""Three models over one text column, through dbt: what the endpoint is asked, counted by the endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.ai.endpoint import Endpoint

SUMMARIES = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, stars, ai_summarize(body) as summary, rand() as draw from {{ target.schema }}.reviews
"""
GOOD_ONES = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
with summarized as (select id, upper(ai_summarize(body)) as summary, stars from {{ target.schema }}.reviews)
select * from summarized where stars < 100
"""
COUNTS = """
{{ config(materialized='nondeterministic_mv', unique_key='summary') }}
select ai_summarize(body) as summary, count(*) as n from {{ target.schema }}.reviews group by ai_summarize(body)
"""


@pytest.mark.slow
class TestThreeModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"summaries.sql": SUMMARIES, "good_ones.sql": GOOD_ONES, "counts.sql": COUNTS}

    @pytest.fixture(scope="class")
    def endpoint(self) -> Iterator[Endpoint]:
        with Endpoint() as endpoint:
            yield endpoint

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
        ai = {"provider": "openai", "base_url": endpoint.url, "model": "m", "api_key": "sk-test", "concurrency": 32}
        return {**dbt_profile_target, "ai": ai}

    def run(self, endpoint: Endpoint) -> tuple[int, int]:
        """Calls that dbt reports for all models, and that the endpoint has seen."""
        before = sum(endpoint.seen.asked.values())
        results = run_dbt(["run", "--vars", json.dumps({"as_of": "2026-02-01 06:00:00"})])
        said = sum(int(result.adapter_response["ai_calls"]) for result in results)
        return said, sum(endpoint.seen.asked.values()) - before

    def test_a_text_is_paid_once(self, project: Any, endpoint: Endpoint) -> None:
        def sql(text: str) -> Any:
            return project.run_sql(text.replace("{s}", project.test_schema), fetch="all")

        sql(
            "create table {s}.reviews using delta as "
            "select id, concat('text ', id % 2000) as body, cast(id % 5 as int) as stars from range(10000)"
        )
        assert self.run(endpoint) == (2_000, 2_000)
        assert set(endpoint.seen.asked.values()) == {1}
        assert self.run(endpoint) == (0, 0)
        sql("update {s}.reviews set stars = stars + 1 where id < 5000")
        assert self.run(endpoint) == (0, 0)
        sql("update {s}.reviews set body = concat('new ', id) where id < 7")
        assert self.run(endpoint) == (7, 7)
        assert set(endpoint.seen.asked.values()) == {1}
        for model, rows in (("summaries", 10_000), ("good_ones", 10_000), ("counts", 2_007)):
            found = sql(f"select count(*), count(summary), count(distinct upper(summary)) from {{s}}.{model}")
            assert [tuple(row) for row in found] == [(rows, rows, 2_007)]
