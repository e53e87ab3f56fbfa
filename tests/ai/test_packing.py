"""Several inputs in one request, against an endpoint on loopback that counts: the same answers, fewer requests, each input answered once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.chat import reply_of
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.packing import packable, packed_answers, packs
from spark_mv.ai.protocol import ProviderSettings, Request
from spark_mv.ai.providers.openai import OpenAIProvider
from spark_mv.ai.secret import Secret
from spark_mv.ai.settings import AiConfigError, AiSettings

TEXTS = [f"text {n}" for n in range(60)]


def classify(text: str) -> Request:
    return Request("ai_classify", {"content": text}, {"labels": ["good", "bad", "ugly"]}, model="m")


def summarize(text: str) -> Request:
    return Request("ai_summarize", {"content": text}, {"max_words": 9}, model="m")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Endpoint, OpenAIProvider]]:
    with Endpoint() as endpoint:
        yield endpoint, OpenAIProvider(ProviderSettings(endpoint.url, Secret("sk-test"), 5.0, rows_per_request=10))


Ask = Callable[..., list[Outcome]]


@pytest.fixture
def ask(served: tuple[Endpoint, OpenAIProvider]) -> Ask:
    endpoint, provider = served
    endpoint.seen, endpoint.behaviour = Seen(), Behaviour()

    def asked(make: Callable[[str], Request], size: int, **faults: Any) -> list[Outcome]:
        endpoint.behaviour = Behaviour(**faults)
        asker = Asker(provider, Limits(Share(concurrency=1)), max_attempts=3)
        found: list[Outcome] = []
        for start in range(0, len(TEXTS), size):
            found += asker.ask([make(text) for text in TEXTS[start : start + size]])
        return found

    return asked


@pytest.mark.parametrize("make", [classify, summarize])
def test_the_same_answers_with_a_tenth_of_the_requests(
    served: tuple[Endpoint, OpenAIProvider], ask: Ask, make: Callable[[str], Request]
) -> None:
    endpoint, provider = served
    assert provider.batch_size(make("x")) == 10
    together = ask(make, 10)
    assert (sum(endpoint.seen.asked.values()), set(endpoint.seen.answered.values())) == (6, {1})
    alone = ask(make, 1)
    assert [o.value for o in together] == [o.value for o in alone]
    assert all(o.error_class is None and o.value for o in together)


def test_an_input_that_is_missing_or_doubled_is_asked_alone(served: tuple[Endpoint, OpenAIProvider], ask: Ask) -> None:
    endpoint, _ = served
    found = ask(classify, 10, pack_missing=0.15, pack_doubled=0.15)
    assert all(o.error_class is None for o in found)
    again = [o for o in found if o.attempts == 2]
    assert 4 < len(again) < 30
    assert sum(endpoint.seen.asked.values()) == 6 + len(again)
    assert set(endpoint.seen.answered.values()) == {1}
    assert [o.value for o in found] == [o.value for o in ask(classify, 1)]
    assert min(o.input_tokens for o in again) > min(o.input_tokens for o in found if o.attempts == 1)


def test_an_id_that_is_no_number_is_none() -> None:
    """In Python, true is 1."""
    items = [{"id": True, "answer": "wrong"}, {"id": False, "answer": "wrong"}, {"id": "2", "answer": "wrong"}]
    content = json.dumps({"answers": [*items, {"id": 3, "answer": "right"}]})
    reply = reply_of({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})
    found = packed_answers([summarize(text) for text in "abcd"], reply)
    assert [one.value for one in found] == [None, None, None, "right"]
    assert all(one.error is not None and one.error.alone for one in found[:3])


def test_a_reply_that_is_cut_off_is_halved_and_what_it_took_is_counted(
    served: tuple[Endpoint, OpenAIProvider], ask: Ask
) -> None:
    endpoint, _ = served
    found = ask(classify, 10, truncated=1.0)
    assert all(o.error_class is None for o in found)
    first = sum(o.input_tokens for o in found)
    assert first > 1.5 * sum(o.input_tokens for o in ask(classify, 10))
    assert set(endpoint.seen.answered.values()) == {2}  # once in each of the two rounds


def test_what_is_packed() -> None:
    assert packable(classify("a"))
    assert not packable(Request("ai_gen", {"prompt": "a"}))
    assert not packable(Request("ai_translate", {"content": "a", "to_lang": "de"}))
    assert not packable(Request("mine", {"content": "a"}, prompt="{content}?"))
    long = [classify("x" * 20_000), classify("y" * 20_000), classify("z")]
    assert [len(pack) for pack in packs(long)] == [1, 2]


def test_auto_packs_what_is_worth_it() -> None:
    settings = AiSettings.from_config({"provider": "openai", "model": "m", "api_key": "k", "rows_per_request": "auto"})
    with Endpoint() as endpoint:
        endpoint.counts_everything = True
        provider = OpenAIProvider(replace(settings.for_provider(), base_url=endpoint.url))
        sizes = [provider.batch_size(classify("x" * length)) for length in (10, 500, 2_000, 20_000)]
        assert sizes[0] == 20 and sizes[-1] == 1
        assert sizes == sorted(sizes, reverse=True)
        texts = ["word " * 100 + str(n) for n in range(60)]
        took = []
        for size in (provider.batch_size(classify(texts[0])), 1):
            asker = Asker(provider, Limits(Share(concurrency=1)), max_attempts=1)
            found = [o for at in range(0, 60, size) for o in asker.ask([classify(t) for t in texts[at : at + size]])]
            assert all(o.error_class is None for o in found)
            took.append(sum(o.input_tokens for o in found))
        alone, text = took[1], sum(len(t) for t in texts) / 4
        assert took[0] < 1.25 * text < alone
    with pytest.raises(AiConfigError, match="rows_per_request must be a whole number"):
        AiSettings.from_config({"provider": "scripted", "rows_per_request": "many"})


def test_it_is_off_by_default() -> None:
    settings = AiSettings.from_config({"provider": "openai", "model": "m", "api_key": "k"})
    assert OpenAIProvider(settings.for_provider()).batch_size(classify("a")) == 1
