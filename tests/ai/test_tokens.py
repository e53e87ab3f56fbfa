"""Tokens before a run: by the model's tokenizer where there is one, over everything that is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from spark_mv.ai.expected import expected_output
from spark_mv.ai.forecast import CallForecast
from spark_mv.ai.prices import Price
from spark_mv.ai.protocol import Request
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.ai.tokens import PER_MESSAGE, four_bytes, input_tokens, tokenizer_of
from spark_mv.explain.ai_cost import cost_lines
from spark_mv.query.ai_calls.ai_plan import plan_ai

BASE = {"provider": "openai", "model": "m", "api_key": "k"}


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tokenizer library that knows one model, whose tokens are words."""

    class Words:
        def encode(self, text: str, disallowed_special: Any) -> list[str]:
            return text.split()

    def encoding_for_model(model: str) -> Words:
        if model != "wordy":
            raise KeyError(model)
        return Words()

    library = ModuleType("tiktoken")
    library.encoding_for_model = encoding_for_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", library)
    tokenizer_of.cache_clear()
    yield
    tokenizer_of.cache_clear()


def test_the_models_own_tokenizer_counts_where_it_is_known(words: None) -> None:
    count = tokenizer_of("wordy")
    assert count is not None
    assert tokenizer_of("other") is None
    plain = Request("ai_gen", {"prompt": "one two three"}, model="wordy")
    assert input_tokens(plain, count) == PER_MESSAGE + 3
    classified = Request("ai_classify", {"content": "one two three"}, {"labels": ["a", "b"]}, model="wordy")
    assert input_tokens(classified, count) > 2 * PER_MESSAGE + 3 + 10  # instruction and schema are paid, too


def test_without_it_four_bytes_are_a_token() -> None:
    tokenizer_of.cache_clear()
    assert tokenizer_of("no-such-model") is None
    assert input_tokens(Request("ai_gen", {"prompt": "ä" * 8}), four_bytes) == PER_MESSAGE + 4
    vector = Request("ai_query", {"request": "x" * 40}, embedding=True)
    assert input_tokens(vector, four_bytes) == 10


def test_prices_by_model_win_over_those_of_the_profile() -> None:
    prices = {"big": {"input": "1", "output": 2, "batch_output": 0.5}}
    settings = AiSettings.from_config({**BASE, "price_per_1k_input_tokens": 0.1, "prices": prices})
    assert settings.price_of("big") == Price(1.0, 2.0, None, None, 0.5)
    assert settings.price_of("big").in_batch(0.5) == (0.5, 0.5)
    assert settings.price_of("m").direct == (0.1, 0.0, 0.1)
    cached = AiSettings.from_config({**BASE, "prices": {"big": {"input": 1, "output": 2, "cached_input": 0.2}}})
    assert cached.price_of("big").direct == (1.0, 2.0, 0.2)
    with pytest.raises(AiConfigError, match=r"prices.big has an unknown word 'inputs'"):
        AiSettings.from_config({**BASE, "prices": {"big": {"inputs": 1}}})


def test_modes_and_budgets_are_checked() -> None:
    with pytest.raises(AiConfigError, match="mode 'batch' needs provider openai: local has no batches"):
        AiSettings.from_config({"provider": "local"}, {"mode": "batch"})
    with pytest.raises(AiConfigError, match="max_ai_cost needs a price"):
        AiSettings.from_config(BASE, {"max_ai_cost_per_day": 2.0})
    settings = AiSettings.from_config({**BASE, "prices": {"m": {"input": 1}}, "max_ai_cost_per_day": 2.0})
    assert settings.keep_old


def test_explain_says_how_the_figures_came_about() -> None:
    one = CallForecast("ai_classify", 4, "small", 1200, 103_000, 10_800, 0.0216, 0.0108, True)
    two = CallForecast("ai_gen", 5, "big", 3, 40, 192, None, None, False)
    lines = cost_lines([one, two, CallForecast("ai_mask", 6, "big", 0, 0, 0, None, None, False)])
    assert len(lines) == 4
    assert "ai_classify (line 4)" in lines[1]
    assert "0.0216" in lines[1]
    assert "input of small counted by its tokenizer; input of big estimated at four bytes a token" in lines[3]
    assert cost_lines([]) == []


def test_data_of_an_odd_shape_is_counted_all_the_same() -> None:
    """What is wrong with it is said by who asks."""

    def of(request: Any, **parameters: Any) -> int:
        return input_tokens(Request("ai_query", {"request": request}, model="m", parameters=parameters), four_bytes)

    assert of({"messages": ["hello"]}) == four_bytes('{"request": {"messages": ["hello"]}}')
    assert of({"messages": [{"role": "user", "content": ["four byt", {"type": "text"}, 5]}]}) > PER_MESSAGE + 2
    assert of({"messages": [{"content": [{"type": "image_url"}]}]}) == PER_MESSAGE + 1000
    assert of("a", messages=5) == PER_MESSAGE + 1


@pytest.mark.parametrize(("limit", "tokens"), [("many", 64), (-1, 64), (None, 64), ([1], 64), ("100", 100), (32, 32)])
def test_a_limit_that_is_none_is_not_expected(limit: Any, tokens: int) -> None:
    identity = AiSettings.from_config({"provider": "scripted", "parameters": {"max_tokens": limit}}).identity()
    (call,) = plan_ai("SELECT ai_gen(t) AS x FROM s", results_table="r", identity=identity).calls
    assert expected_output(lambda sql: [], "r", "m", [call]) == tokens
