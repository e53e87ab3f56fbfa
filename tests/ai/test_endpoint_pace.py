"""An endpoint that says how much room it has is not asked until it has some."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.asking import Asker
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.protocol import ProviderSettings, Request
from spark_mv.ai.providers.openai import OpenAIProvider
from spark_mv.ai.secret import Secret


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
