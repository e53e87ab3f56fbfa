"""What is asked, paid and forecast: counted at the endpoint and in the result table."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.driver_job import run_ai_round_on_driver
from spark_mv.ai.forecast import forecast
from spark_mv.ai.job import run_ai_round
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.project_budget import within_periods

SQL = "SELECT id,\n ai_classify(body, ARRAY('good', 'bad')) AS label,\n ai_gen(body) AS said\nFROM {s}.reviews"


def test_forecast_packs_and_the_budget_of_a_day(bench: Bench) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT id, concat('text ', id % 60) AS body FROM range(90)"
    )
    with Endpoint(Behaviour(pack_missing=0.1, cached=0.5)) as endpoint:
        settings = bench.openai(
            endpoint.url,
            rows_per_request=10,
            concurrency=1,
            ask_from="driver",
            prices={"m": {"input": 1.0, "output": 2.0, "cached_input": 0.2}},
        )
        (calls,) = bench.plan(SQL, settings).rounds
        label, said = forecast(bench.rows, calls, settings, bench.results)
        assert [(one.function, one.line, one.calls, one.output_tokens) for one in (label, said)] == [
            ("ai_classify", 2, 60, 60 * 64),
            ("ai_gen", 3, 60, 60 * 64),
        ]
        assert label.input_tokens > said.input_tokens > 60 * 2
        assert label.cost == (label.input_tokens * 1.0 + label.output_tokens * 2.0) / 1000
        assert label.batch_cost == label.cost / 2

        outcome, rows = bench.run(SQL, settings, project="p")
        assert (outcome.ok, outcome.errors) == (120, 0)
        assert all(None not in row for row in rows)
        assert set(endpoint.seen.answered.values()) == {2}  # each text, once by each function
        asked = sum(endpoint.seen.asked.values())
        assert 60 + 6 < asked < 60 + 6 + 25  # ai_gen alone; ai_classify in tens, and what did not come back, alone

        again = forecast(bench.rows, calls, settings, bench.results)
        assert [one.calls for one in again] == [0, 0]

        sums = "sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(cost)"
        ((given, out, cached, cost),) = bench.rows(f"SELECT {sums} FROM {{results}}")
        assert 0.3 * given < cached <= 0.5 * given  # what a reply lost is charged as not cached
        assert cost == pytest.approx((given - cached + 0.2 * cached + 2.0 * out) / 1000)
        (next_one,) = bench.plan("SELECT ai_gen(concat('new ', body)) AS said FROM {s}.reviews", settings).rounds
        (next_said,) = forecast(bench.rows, next_one, settings, bench.results)
        assert next_said.place == "said"
        assert 0.3 < next_said.cached_tokens / next_said.input_tokens <= 0.5

        capped = bench.openai(
            endpoint.url,
            prices={"m": {"input": 1.0}},
            max_ai_calls_per_day=160,
            max_ai_cost_per_month=1000,
            max_ai_tokens_per_day=100_000,
            max_ai_calls=50,
        )
        left = within_periods(bench.rows, capped, bench.results, "p", 64, AiOutcome())
        assert left.max_ai_calls == 160 - outcome.charged_calls
        assert outcome.charged_calls == 120 + outcome.repeated
        assert left.max_ai_cost is not None
        assert abs(1000 - left.max_ai_cost - outcome.cost) < 1e-6
        assert left.max_ai_tokens == 100_000 - outcome.tokens
        assert within_periods(bench.rows, capped, bench.results, "another", 64, AiOutcome()).max_ai_calls == 50
        own = within_periods(bench.rows, capped, bench.results, "p", 64, AiOutcome(calls=100))
        assert own.max_ai_calls == 50  # of which this run has used 100 of the 120 itself


@pytest.mark.parametrize("ask_from", ["executors", "auto", "driver"])
def test_attempts_count_as_calls(bench: Bench, ask_from: str) -> None:
    bench.sql(f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT concat('text ', id) AS body FROM range(30)")
    with Endpoint(Behaviour(server_error=1.0, failures=100)) as endpoint:

        def asked(budget: int, invocation: str) -> AiOutcome:
            endpoint.seen = Seen()
            settings = bench.openai(endpoint.url, max_ai_calls=budget, max_attempts=3, ask_from=ask_from)
            (calls,) = bench.plan("SELECT ai_gen(body) AS said FROM {s}.reviews", settings).rounds
            more: Any = {
                "settings": settings,
                "results_table": bench.results,
                "invocation_id": invocation,
                "project": "p",
            }
            if ask_from == "driver":
                return run_ai_round_on_driver(bench.rows, calls, **more)
            return run_ai_round(bench.spark, calls, **more)

        first = asked(5, "first")
        assert (sum(endpoint.seen.asked.values()), first.calls, first.repeated, first.left_for_later) == (5, 5, 0, 25)
        bench.sql(f"DELETE FROM {bench.results}")
        endpoint.behaviour = Behaviour(server_error=0.3)
        second = asked(40, "second")
        assert sum(endpoint.seen.asked.values()) == second.charged_calls <= 40
        capped = bench.openai(endpoint.url, max_ai_calls_per_day=60)
        left = within_periods(bench.rows, capped, bench.results, "p", 64, AiOutcome())
        assert left.max_ai_calls == 60 - second.charged_calls
