"""A cascade through Spark: who answers, what the tables say of it, budgets, forecast, and a table of an earlier release."""

from __future__ import annotations

import json

import pytest
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.forecast import forecast
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.project_budget import within_periods
from spark_mv.ai.results import COLUMN_NAMES, add_columns_sql
from spark_mv.ai.upkeep import costs_view_sql, provenance_sql

CASCADE = [{"model": "small", "accept_if": "confidence >= 0.9"}, {"model": "large"}]
PRICES = {"small": {"input": 1.0, "output": 4.0}, "large": {"input": 10.0, "output": 40.0}}
SQL = "SELECT id, ai_classify(body, ARRAY('good', 'bad')) AS label FROM {s}.reviews"


def test_a_cascade_from_the_query_to_the_views(bench: Bench) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT id, concat('text ', id % 60) AS body FROM range(90)"
    )
    old = [name for name in COLUMN_NAMES if name not in ("confidence", "steps", "cached_tokens")]
    bench.sql(f"CREATE TABLE {bench.schema}.kept USING delta AS SELECT {', '.join(old)} FROM {bench.results}")
    bench.sql(f"DROP TABLE {bench.results}")
    bench.sql(f"ALTER TABLE {bench.schema}.kept RENAME TO {bench.results}")
    alter = add_columns_sql(bench.results, old)
    assert alter is not None
    bench.sql(alter)
    with Endpoint(Behaviour(unsure=0.3)) as endpoint:
        settings = bench.openai(endpoint.url, cascade=CASCADE, prices=PRICES, concurrency=2)
        (calls,) = bench.plan(SQL, settings).rounds
        (before,) = forecast(bench.rows, calls, settings, bench.results)
        assert (before.model, before.calls) == ("small → large", 60)
        assert before.cascade is not None
        assert (before.cascade.most_requests, before.cascade.expected) == (120, None)
        assert before.cost == before.cascade.most_cost == pytest.approx(11 * before.cascade.least_cost)

        first, rows = bench.run(SQL, settings, project="p", invocation_id="one")
        small, large = endpoint.seen.models["small"], endpoint.seen.models["large"]
        assert (small, first.calls, first.ok, first.further) == (60, 60, 60, large)
        assert 5 < large < 35
        assert all(label is not None for _, label in rows)
        again, _ = bench.run(SQL, settings, project="p", invocation_id="two")
        assert (again.calls, again.further, again.reused) == (0, 0, 60)
        assert sum(endpoint.seen.models.values()) == 60 + large

        bench.sql(costs_view_sql(f"{bench.schema}.ai_costs", bench.results))
        costs = bench.rows(
            "SELECT model, calls, errors, declined, round(cost, 6), confidence FROM {s}.ai_costs ORDER BY model"
        )
        assert [row[:4] for row in costs] == [("large", large, 0, 0), ("small", 60, 0, large)]
        assert sum(row[4] for row in costs) == pytest.approx(first.cost, abs=1e-4)
        assert costs[0][5] is None
        assert 0.4 < costs[1][5] < 0.95
        who = bench.rows(
            f"SELECT model, count(*), min(confidence) FROM ({provenance_sql(calls, bench.results)}) GROUP BY 1"
        )
        assert {row[0]: row[1] for row in who} == {"small": 60 - large, "large": large}
        assert {row[0]: row[2] for row in who}["small"] == pytest.approx(0.95)

        bench.sql(f"UPDATE {bench.schema}.reviews SET body = concat('new ', id) WHERE id < 40")
        (after,) = forecast(bench.rows, calls, settings, bench.results)
        assert after.cascade is not None
        assert after.cascade.expected == [40, round(40 * large / 60)]
        assert after.cascade.least_cost < (after.cost or 0) < after.cascade.most_cost
        day = bench.openai(endpoint.url, cascade=CASCADE, prices=PRICES, max_ai_calls_per_day=200)
        assert within_periods(bench.rows, day, bench.results, "p", 64, AiOutcome()).max_ai_calls == 200 - 60 - large

        endpoint.seen = Seen()
        capped = bench.openai(endpoint.url, cascade=CASCADE, prices=PRICES, concurrency=2, max_ai_calls=20)
        some, _ = bench.run(SQL, capped, project="p", invocation_id="three")
        asked = sum(endpoint.seen.models.values())
        assert 16 <= asked <= 20
        assert some.charged_calls == asked
        assert (some.left_for_later, some.errors) == (40 - some.ok, 0)

        endpoint.seen, endpoint.behaviour = Seen(), Behaviour(unsure=1.0)
        poor = bench.openai(endpoint.url, cascade=CASCADE, prices=PRICES, concurrency=1, max_ai_cost=2.5)
        cut, _ = bench.run(SQL, poor, project="p", invocation_id="four")
        assert (cut.errors, cut.left_for_later) == (0, 40 - some.ok - cut.ok)
        assert cut.cost <= 2.5
        between = bench.rows("SELECT steps FROM {results} WHERE invocation_id = 'four' AND status = 'error'")
        assert len(between) <= 1
        assert all(len(json.loads(text)) == 1 for (text,) in between)
        assert endpoint.seen.models["small"] == endpoint.seen.models["large"] + len(between)

        endpoint.behaviour = Behaviour(unsure=0.3)
        other = [{"model": "small", "accept_if": "confidence >= 0.3"}, {"model": "large"}]
        changed = bench.openai(endpoint.url, cascade=other, prices=PRICES, on_model_change="keep")
        kept, _ = bench.run(SQL, changed, project="p", invocation_id="five")
        assert kept.calls == 40 - some.ok - cut.ok
        anew, _ = bench.run(SQL, bench.openai(endpoint.url, cascade=other), project="p", invocation_id="six")
        assert (anew.calls, anew.further) == (len(bench.rows("SELECT DISTINCT body FROM {s}.reviews")) - kept.calls, 0)
