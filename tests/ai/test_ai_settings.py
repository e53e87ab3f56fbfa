"""The ai block: errors are collected, near words named, secrets unseen."""

from __future__ import annotations

import pickle

import pytest

from spark_mv.ai.secret import Secret
from spark_mv.ai.settings import AiConfigError, AiSettings, check_ai_words
from spark_mv.maintenance.ai_context import AiContext


def test_the_body_of_a_request_is_not_the_users_to_write() -> None:
    with pytest.raises(
        AiConfigError, match="parameters may not set model, messages: the request is written with its own"
    ):
        AiSettings.from_config(
            {"provider": "scripted"}, {"parameters": {"messages": [], "temperature": 0, "model": "x"}}
        )


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"model_version": ["a"]}, r"model_version must be a text, not \['a'\]"),
        ({"model": ""}, "model is empty"),
        ({"model_version": " "}, "model_version is empty"),
        ({"model": True}, "model must be a text, not True"),
        ({"api_key": ["k-17"]}, "api_key must be a text$"),
        ({"versions": {"m": ["a"]}}, r"versions.m must be a text, not \['a'\]"),
        ({"embedding_models": {"m": 1}}, "embedding_models must be a model's name or a list of them"),
        ({"keep_requests": "maybe"}, "keep_requests must be true or false, not 'maybe'"),
        ({"max_ai_cost": float("nan")}, "max_ai_cost must be a number, not nan"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds must be a number, not inf"),
        ({"functions": {"tone": "{content}"}}, "functions.tone must be a mapping with a prompt"),
        ({"functions": {"tone": {"prompt": ["{content}"]}}}, "functions.tone needs a prompt"),
        (
            {"functions": {"tone": {"prompt": "{a}", "arguments": 3}}},
            "functions.tone.arguments must be a name or a list",
        ),
        ({"functions": {"tone": {"prompt": "{a}", "returns": ["INT"]}}}, "functions.tone.returns must be a text"),
        (
            {"functions": {"tone": {"prompt": "{content}", "returns": "INTT"}}},
            "functions.tone.returns is no Spark type: 'INTT'",
        ),
        ({"functions": {"tone": {"prompt": "Which tone?"}}}, "its prompt does not hold {content}, so"),
        ({"functions": {"tone": {"prompt": "{a} {c}", "arguments": ["a", "b"]}}}, "its prompt does not hold {b}, so"),
        (
            {"functions": {"tone": {"prompt": "{a}", "arguments": ["a", "a"]}}},
            "functions.tone.arguments names one twice",
        ),
    ],
)
def test_a_value_of_another_type_is_refused(block: dict[str, object], said: str) -> None:
    with pytest.raises(AiConfigError, match=said) as caught:
        AiSettings.from_config({"provider": "scripted", **block})
    assert "k-17" not in str(caught.value)


def test_every_error_is_in_one_list() -> None:
    with pytest.raises(AiConfigError) as caught:
        AiSettings.from_config(
            {"provider": "opnai", "concurency": 3, "timeout_seconds": "soon", "max_attempts": 0},
            {"api_key": "x", "on_model_change": "recompte"},
        )
    text = str(caught.value)
    for part in (
        "(did you mean 'openai'?)",
        "'concurency' (did you mean 'concurrency'?)",
        "timeout_seconds must be a number",
        "max_attempts must be more than 0",
        "config(ai=…) may not set api_key",
        "(did you mean 'recompute'?)",
    ):
        assert part in text
    assert text.count("\n  - ") == 6


def test_words_are_checked_where_nothing_is_asked() -> None:
    """What is missing is missed by a model that asks."""
    check_ai_words({"provider": "openai"}, {"max_ai_calls": 3})
    check_ai_words(None, None)
    with pytest.raises(
        AiConfigError, match=r"(?s)'concurency' \(did you mean 'concurrency'.*'max_ai_cals' \(did you mean"
    ):
        check_ai_words({"concurency": 3}, {"max_ai_cals": 3})


def test_openai_needs_key_and_model() -> None:
    with pytest.raises(AiConfigError, match=r"(?s)needs api_key.*needs model"):
        AiSettings.from_config({"provider": "openai", "api_key": ""}, None)


def test_a_cost_budget_needs_a_price() -> None:
    with pytest.raises(AiConfigError, match="max_ai_cost needs a price"):
        AiSettings.from_config({"provider": "openai", "model": "m", "api_key": "k"}, {"max_ai_cost": 2.0})
    priced = {"provider": "native", "price_per_1k_output_tokens": 0.1}
    assert AiSettings.from_config(priced, {"max_ai_cost": 2.0}).max_ai_cost == 2.0
    assert AiSettings.from_config({"provider": "local"}, {"max_ai_cost": 2.0}).max_ai_cost == 2.0


def test_the_models_block_wins() -> None:
    settings = AiSettings.from_config({"provider": "local", "max_ai_calls": 5}, {"max_ai_calls": "7"})
    assert settings.max_ai_calls == 7
    assert settings.keep_old


def test_secrets_have_no_text() -> None:
    settings = AiSettings.from_config({"provider": "openai", "model": "m", "api_key": "sk-1"})
    assert "sk-1" not in f"{settings!r} {settings} {settings.api_key} {settings.for_provider()!r}"
    assert pickle.loads(pickle.dumps(settings.api_key)) == Secret("sk-1")


def test_local_models_name_themselves() -> None:
    identity = AiSettings.from_config({"provider": "local"}).identity()
    assert identity.models["ai_analyze_sentiment"] == ("vaderSentiment", "3.3.2")


def test_functions() -> None:
    block = {"urgency": {"prompt": "{content}?", "returns": "INT"}}
    (function,) = AiSettings.from_config({"provider": "scripted", "functions": block}).functions
    assert (function.name, function.returns) == ("urgency", "INT")
    for wrong, message in (({"ai_gen": {"prompt": "x"}}, "built-in"), ({"f": {"promt": "x"}}, "did you mean 'prompt'")):
        with pytest.raises(AiConfigError, match=message):
            AiSettings.from_config({"functions": wrong})


def test_a_budget_of_cost_needs_a_price_of_each_model_that_is_asked() -> None:
    base = {
        "provider": "openai",
        "api_key": "k",
        "model": "m",
        "prices": {"big": {"input": 1, "output": 4}, "own": {"input": 0, "output": 0}},
    }
    settings = AiSettings.from_config({**base, "max_ai_cost": 1})
    settings.check_prices(["big", "own"])
    with pytest.raises(AiConfigError, match=r"max_ai_cost needs a price of bigg, .*it has big, own"):
        settings.check_prices(["big", "bigg"])
    AiSettings.from_config(base).check_prices(["bigg"])
    AiSettings.from_config({**base, "max_ai_cost": 1, "price_per_1k_output_tokens": 1}).check_prices(["bigg"])


def test_whether_old_answers_are_asked_for_anew_is_part_of_what_a_table_knows_of_its_configuration() -> None:
    """Under a budget the same older answers are shown, and asked for anew; else a run would find nothing to do."""
    budget = AiSettings.from_config({"provider": "scripted", "max_ai_calls": 2})
    keep = AiSettings.from_config({"provider": "scripted", "max_ai_calls": 2, "on_model_change": "keep"})
    assert budget.identity() == keep.identity()
    texts = {
        AiContext("r", one.identity(), (), only_unanswered=one.on_model_change == "keep").identity_text
        for one in (budget, keep)
    }
    assert len(texts) == 2
