"""An endpoint that says how much room it has is not asked until it has some."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.asking import Asker
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.protocol import Answer, ProviderSettings, Request
from spark_mv.ai.providers.openai import OpenAIProvider
from spark_mv.ai.secret import Secret


def ask(text: str) -> Request:
    return Request("ai_gen", {"prompt": text}, model="m")


def test_the_headers_of_replies_keep_the_pace() -> None:
    with Endpoint(Behaviour(window=(4, 0.6))) as endpoint:
        provider = OpenAIProvider(ProviderSettings(endpoint.url, Secret("sk-test"), 5.0))
        for says in (True, False):
            endpoint.seen, endpoint.behaviour.says_window = Seen(), says
            asker = Asker(provider, Limits(Share(concurrency=1)), max_attempts=5)
            found = [asker.ask([Request("ai_gen", {"prompt": f"text {n}"}, model="m")])[0] for n in range(11)]
            assert all(outcome.value for outcome in found)
            # without the headers, only a refusal tells
            assert (endpoint.seen.refused == 0) == says


def test_requests_under_way_are_not_in_the_headers_of_an_earlier_reply() -> None:
    with Endpoint(Behaviour(window=(10, 2.0), seconds=0.03)) as endpoint, ThreadPoolExecutor(4) as pool:
        provider = OpenAIProvider(ProviderSettings(endpoint.url, Secret("sk-test"), 5.0))
        asker = Asker(provider, Limits(Share(concurrency=4)), max_attempts=5)
        requests = [Request("ai_gen", {"prompt": f"text {n}"}, model="m") for n in range(35)]
        found = list(pool.map(lambda one: asker.ask([one])[0], requests))
        assert all(outcome.value for outcome in found)
        assert set(endpoint.seen.asked.values()) == {1} and endpoint.seen.refused == 0


def test_a_method_of_a_users_provider_is_not_taken_for_ours() -> None:
    class Mine:
        def __init__(self) -> None:
            self.wrong = False

        def batch_size(self, request: Request) -> int:
            return 1

        def answer(self, requests: Sequence[Request]) -> list[Answer]:
            return [Answer("paid", None, 10, 10)]

        def pause(self) -> None:
            self.wrong = True

    provider = Mine()
    asker = Asker(provider, Limits(Share(concurrency=1)), max_attempts=1)
    assert [asker.ask([ask("a")])[0].value for _ in range(2)] == ["paid", "paid"]
    assert (asker.limits.under_way, provider.wrong) == (0, False)


def test_a_pause_that_cannot_be_told_loses_no_answer() -> None:
    class Broken(OpenAIProvider):
        def answer(self, requests: Sequence[Request]) -> list[Answer]:
            return [Answer("paid", None, 10, 10)]

        def pause_by_reply(self, under_way: int) -> float:
            raise KeyError("no header")

    asker = Asker(Broken(ProviderSettings()), Limits(Share(concurrency=1)), max_attempts=1)
    assert [asker.ask([ask("a")])[0].value for _ in range(2)] == ["paid", "paid"]
    assert asker.limits.under_way == 0
