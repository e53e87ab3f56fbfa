"""What `spark-mv cost` says of forecasts and budgets."""

from __future__ import annotations

import pytest

from spark_mv.ai.forecast import CallForecast
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.project_budget import Spent, with_what_is_left
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.explain.project_cost import costs_json, costs_text, model_cost

pytestmark = pytest.mark.unit

PROFILE = {"provider": "openai", "api_key": "k", "model": "m", "prices": {"m": {"input": 1.0, "output": 2.0}}}
CALL = CallForecast("ai_classify", 2, "m", 100, 4000, 1000, 6.0, 3.0, counted=True, cached_tokens=500, place="kind")


def test_the_tightest_budget_says_how_far_the_next_run_comes() -> None:
    settings = AiSettings.from_config(
        PROFILE, {"max_ai_calls": 80, "max_ai_cost_per_day": 10, "max_ai_tokens_per_month": 9000}
    )
    spent = {"day": Spent(50, 6000, 8.5), "month": Spent(60, 7000, 8.5)}
    left = with_what_is_left(settings, spent)
    assert (left.max_ai_calls, left.max_ai_tokens, left.max_ai_cost) == (80, 2000, 1.5)
    own = with_what_is_left(settings, spent, Spent(10, 1000, 0.5))
    assert (own.max_ai_calls, own.max_ai_tokens, own.max_ai_cost) == (80, 3000, 2.0)

    found = model_cost("tickets", settings, [CALL], AiOutcome(reused=7, blocked=2), spent)
    assert found["total"] == {
        "calls": 100,
        "input_tokens": 4000,
        "output_tokens": 1000,
        "cached_tokens": 500,
        "cost": 6.0,
    }
    assert found["next_run"] == {"calls": 25, "tokens": 1250, "cost": 1.5, "stopped_by": "max_ai_cost_per_day"}
    said = costs_text(
        {"b": found, "a": model_cost("plain", None, (), None, {}), "c": {"model": "lost", "error": "why"}}
    )
    assert said.splitlines() == [
        "tickets: 100 AI calls without an answer, 7 with one, 2 that wait; 6.0000",
        "  column  AI call               model  calls  input tokens  output tokens  cost    in batches",
        "  kind    ai_classify (line 2)  m      100    4,000         1,000          6.0000  3.0000",
        "  input of m counted by its tokenizer; 500 input tokens at the price of cached input, as many as so far; output as long as answers were so far",
        "  spent of the project's day: 8.5000 of 10.0000 cost",
        "  spent of the project's month: 7,000 of 9,000 tokens",
        "  the next run: about 25 calls, 1,250 tokens, 1.5000, then max_ai_cost_per_day is used up",
        "",
        "nothing to ask: plain",
        "lost: why",
    ]
    assert '"stopped_by": "max_ai_cost_per_day"' in costs_json({"b": found})


def test_batches_have_their_price_and_money_needs_one() -> None:
    batches = AiSettings.from_config(PROFILE, {"mode": "batch"})
    found = model_cost("tickets", batches, [CALL], None, {})
    assert (found["total"]["cost"], found["next_run"]["cost"], found["next_run"]["stopped_by"]) == (3.0, 3.0, None)
    with pytest.raises(AiConfigError, match="needs a price"):
        AiSettings.from_config({**PROFILE, "prices": None}, {"max_ai_cost_per_month": 2})
