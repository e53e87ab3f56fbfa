"""Budgets of calls: of a day over models that one process runs at the same time, and over attempts and partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any

import pytest
from integration_tests.ai.endpoint import Behaviour, Endpoint

from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.work import build_job, endpoint_lock, with_shares
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.spark.run.ai import AiRunner

pytestmark = pytest.mark.unit


def test_rounds_that_waited_see_what_those_before_them_have_spent() -> None:
    spent = [0]

    class Runner(AiRunner):
        def _rows(self, sql: str) -> list[tuple[Any, ...]]:
            return [(spent[0], 0, 0.0)]

        def _directly(self, calls: Sequence[Any]) -> AiOutcome:
            with endpoint_lock(self.settings):
                asked = min(10, (self.settings.max_ai_calls or 0) - self.spent.charged_calls)
                time.sleep(0.05)
                spent[0] += asked
            return AiOutcome(requested=10, calls=asked, ok=asked)

    class Adapter:
        def say(self, text: str) -> None: ...

    def run(model: str) -> int:
        settings = AiSettings.from_config({"provider": "scripted", "max_ai_calls_per_day": 15})
        context = AiContext(results_table="r", identity=settings.identity(), functions=())
        runner = Runner(Adapter(), model, settings, context, "i", datetime.now(timezone.utc))
        (calls,) = plan_ai("SELECT ai_gen(t) AS x FROM s", results_table="r", identity=settings.identity()).rounds
        return runner.run(calls).calls

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(run, ["a", "b", "c", "d"])) == [0, 0, 5, 10]


@pytest.mark.parametrize(("together", "budget"), [(1, 30), (1, 40), (10, 30)])
def test_all_partitions_together_send_no_more_requests_than_the_budget(together: int, budget: int) -> None:
    with Endpoint(Behaviour(server_error=1.0, failures=100)) as endpoint:
        config = {
            "provider": "openai",
            "base_url": endpoint.url,
            "model": "m",
            "api_key": "k",
            "max_ai_calls": budget,
            "concurrency": 6,
        }
        settings = AiSettings.from_config({**config, "max_attempts": 2, "rows_per_request": together})
        sql = "SELECT ai_classify(t, ARRAY('a', 'b')) AS x FROM s"
        plan = plan_ai(sql, results_table="r", identity=settings.identity())
        job = with_shares(build_job(plan.calls, settings, "i"), settings, 3, AiOutcome(), None, planned=30)
        attempts = 0
        for number, share in enumerate(job.shares):
            texts = [f'{{"constant":{{"labels":["a","b"]}},"row":[{{"content":"{number} {n}"}}]}}' for n in range(10)]
            pending = [(text, text, 0, 0) for text in texts]
            attempts += sum(outcome.attempts for *_, outcome in job.answer_all(pending, job.asker(share)))
        assert 3 <= len(endpoint.seen.times) <= budget
        assert len(endpoint.seen.times) <= attempts
