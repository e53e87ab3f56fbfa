"""The budget of a day over models that one process runs at the same time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any

import pytest

from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.work import endpoint_lock
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
