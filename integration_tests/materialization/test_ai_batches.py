"""`mode: batch` through dbt: a run submits and publishes what is there, an operation or a later run collects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.ai.batch_endpoint import BatchEndpoint

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, status, ai_classify(body, array('billing', 'other')) as topic from {{ target.schema }}.src
"""


@pytest.mark.slow
class TestBatches:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.fixture(scope="class")
    def server(self) -> Iterator[BatchEndpoint]:
        with BatchEndpoint() as server:
            yield server

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], server: BatchEndpoint) -> dict[str, Any]:
        ai = {"provider": "openai", "base_url": server.url, "model": "m", "api_key": "sk-test", "mode": "batch"}
        return {**dbt_profile_target, "ai": ai}

    def test_submit_publish_collect(
        self, project: Any, mv: Any, sql: Any, operation: Any, server: BatchEndpoint
    ) -> None:
        sql(
            "create or replace table {schema}.src using delta as select id, 'open' as status, "
            "concat('text ', id % 5) as body from range(20)"
        )
        first = mv.run()
        assert (first["ai_calls"], first["ai_under_way"], first["ai_pending"]) == (0, 5, 0)
        assert "5 under way in batches" in first["_message"]
        assert {row[1] for row in mv.rows("id, topic")} == {None}
        assert "1 batches are under way" in operation("collect_ai", {})
        assert "no open batch has the id batch_mistyped" in operation("collect_ai", {"gone": "batch_mistyped"})

        # before it ends: what changed is published, nothing is submitted or asked again
        sql("update {schema}.src set status = 'closed' where id < 3")
        second = mv.run()
        assert (second["ai_under_way"], second["rows_updated"], len(server.batches)) == (5, 3, 1)

        server.finish()
        assert "5 answers and 0 errors taken in from 1 batches" in operation("collect_ai", {})
        third = mv.run()
        assert (third["ai_under_way"], third["ai_reused"], third["rows_updated"]) == (0, 5, 20)
        assert {row[1] for row in mv.rows("id, topic")} <= {"billing", "other"}
        assert mv.run()["strategy"] == "NO_OP"

        # a new text: the run that finds it ended collects by itself
        sql("insert into {schema}.src values (20, 'open', 'new text')")
        assert mv.run()["ai_under_way"] == 1
        server.finish()
        last = mv.run()
        assert (last["ai_collected"], last["ai_under_way"]) == (1, 0)
        assert mv.by_id("topic")[20][0] in {"billing", "other"}
        assert set(server.paid.values()) == {1}
        assert (len(server.paid), len(server.batches), sum(server.seen.asked.values())) == (6, 2, 0)
