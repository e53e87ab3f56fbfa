"""What an endpoint or a user's provider says beyond the rules costs its own input alone, and no answer that was paid."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from integration_tests.ai.endpoint import Endpoint

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.batches.lines import request_line
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.protocol import Answer, ProviderError, ProviderSettings, Request
from spark_mv.ai.providers.openai import OpenAIProvider
from spark_mv.ai.result_row import result_row
from spark_mv.ai.results import COLUMN_NAMES
from spark_mv.ai.retry import Retries
from spark_mv.ai.secret import Secret
from spark_mv.ai.worker import Site

pytestmark = pytest.mark.unit
FREE = Request("ai_gen", {"prompt": "?"}, model="m")
LABEL = Request("ai_classify", {"content": "?"}, {"labels": ["good", "bad"]}, model="m")


class Canned(Endpoint):
    """Says the same whatever it is asked."""

    reply: tuple[int, dict[str, str], bytes]

    def respond(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
        self.seen.asked[path] += 1
        return self.reply

    def says(self, content: str | None, finish: str = "stop", usage: Any = None, **message: Any) -> None:
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        self.reply = 200, {"Content-Type": "application/json"}, json.dumps(body).encode()

    def asked(self, request: Request, attempts: int = 1) -> Outcome:
        provider = OpenAIProvider(ProviderSettings(self.url, Secret("sk-test"), 5.0))
        (outcome,) = Asker(provider, Limits(Share()), max_attempts=attempts).ask([request])
        return outcome


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Canned]:
    with Canned() as served:
        yield served


def row(outcome: Outcome, model: str = "m") -> dict[str, Any]:
    site = Site("ai_gen", "STRING", model, model, "i", {}, None, None, None, False)
    given = {"retries": Retries(1, 1.0), "prices": (1.0, 2.0), "invocation_id": "i", "project": "p"}
    return dict(zip(COLUMN_NAMES, result_row(site, "k", "a", 0, outcome, **given), strict=True))  # type: ignore[arg-type]


def test_a_lone_surrogate_is_replaced_wherever_it_comes_from(endpoint: Canned) -> None:
    endpoint.says("a\ud800b", usage={"prompt_tokens": 5, "completion_tokens": 1})
    assert row(endpoint.asked(FREE), "m\udfff") | {"called_at": 0} == row(
        Outcome("a\ufffdb", None, None, 1, 5, 1, 0.0), "m\ufffd"
    ) | {"called_at": 0}
    endpoint.reply = 400, {"Content-Type": "application/json"}, b'{"error": {"message": "not \\udc00 this"}}'
    assert "not \ufffd this" in row(endpoint.asked(FREE))["error"]


@pytest.mark.parametrize("said", ["many", -5, 10**30, 1.5, True, None, [1], "7"])
def test_an_answer_is_kept_whatever_its_usage_says(endpoint: Canned, said: Any) -> None:
    usage = {"prompt_tokens": said, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": said}}
    endpoint.says("yes", usage=usage)
    found = row(endpoint.asked(FREE))
    assert (found["status"], found["value"], found["output_tokens"]) == ("ok", "yes", 3)
    # what is no number of tokens is estimated, whatever the other one is
    assert found["input_tokens"] > 0 and found["cached_tokens"] == 0
    assert found["cost"] == (found["input_tokens"] + 2 * 3) / 1000


def test_tokens_of_the_answer_alone_are_estimated(endpoint: Canned) -> None:
    endpoint.says("twelve bytes", usage={"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}})
    found = row(endpoint.asked(FREE))
    assert (found["input_tokens"], found["output_tokens"], found["cached_tokens"]) == (7, 3, 5)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_tokens_that_no_endpoint_counts_are_estimated(endpoint: Canned, usage: Any) -> None:
    for content, tokens in (("twelve bytes", 3), ("a\ud800b", 2)):
        endpoint.says(content, usage=usage)
        found = row(endpoint.asked(FREE))
        assert (found["status"], found["output_tokens"]) == ("ok", tokens) and found["input_tokens"] > 0
        assert found["cost"] == (found["input_tokens"] + 2 * tokens) / 1000


DEEP = json.loads("[" * 200 + "]" * 200)


@pytest.mark.parametrize("choices", [{"0": 1}, 7, "text", [], [7], [{"message": None}], [{"message": {}}], DEEP])
def test_a_reply_of_another_shape_is_a_wrong_answer_that_was_paid(endpoint: Canned, choices: Any) -> None:
    body = {"id": "x", "choices": choices, "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    endpoint.reply = 200, {"Content-Type": "application/json"}, json.dumps(body).encode()
    for request in (FREE, LABEL):
        found = row(endpoint.asked(request))
        assert (found["error_class"], found["input_tokens"], found["output_tokens"]) == ("invalid_answer", 5, 2)


@pytest.mark.parametrize("content", [7, {"a": 1}, [], ["a"], [{"text": 1}], [{"text": "a"}, {"image": "b"}], True])
def test_content_that_is_no_text(endpoint: Canned, content: Any) -> None:
    for request in (FREE, LABEL):
        endpoint.says(content, usage={"prompt_tokens": 5, "completion_tokens": 2})
        found = row(endpoint.asked(request))
        assert (found["error_class"], found["input_tokens"]) == ("invalid_answer", 5)


def test_content_in_parts_is_their_text(endpoint: Canned) -> None:
    endpoint.says([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])  # type: ignore[arg-type]
    assert row(endpoint.asked(FREE))["value"] == "ab"


def test_a_reply_nested_without_end_is_an_error(endpoint: Canned) -> None:
    endpoint.says("[" * 100_000, usage={"prompt_tokens": 5, "completion_tokens": 2})
    assert row(endpoint.asked(LABEL))["error_class"] == "invalid_answer"
    endpoint.reply = 200, {"Content-Type": "application/json"}, b'{"choices": ' + b"[" * 100_000
    assert row(endpoint.asked(FREE))["error_class"] == "server"


EMBED = Request("ai_embed", {"content": "?"}, model="m", answer_type="ARRAY<FLOAT>", embedding=True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([[0.5, 1], [1, 0]], None),
        ([["0.5"], ["1"]], "no list of numbers"),
        (["AAAA", "AAAA"], "no list of numbers"),
        ([[], []], "no list of numbers"),
        ([[0.5, float("nan")], [1, 0]], "no list of numbers"),
        ([[1e300, 1], [1, 0]], "no list of numbers"),
        ([[True, 1], [1, 0]], "no list of numbers"),
        ([None, [1]], "no list of numbers"),
        ([[1, 2], [1, 2, 3]], "shorter than another"),
        ([[1, 2]], "1 embeddings for 2 texts"),
    ],
)
def test_an_embedding_is_a_list_of_numbers(endpoint: Canned, data: list[Any], said: str | None) -> None:
    listed = [{"index": number, "embedding": one} for number, one in enumerate(data)]
    for entries, problem in (
        (listed, said),
        (listed[::-1], said),
        ([{**one, "index": 0} for one in listed], said or "which text"),
    ):
        body = {"data": entries, "usage": {"prompt_tokens": 5}}
        endpoint.reply = 200, {"Content-Type": "application/json"}, json.dumps(body).encode()
        provider = OpenAIProvider(ProviderSettings(endpoint.url, Secret("sk-test"), 5.0))
        if problem is None:
            assert [a.value for a in provider.answer([EMBED, EMBED])] == [json.dumps(one) for one in data]
            continue
        with pytest.raises(ProviderError) as found:
            provider.answer([EMBED, EMBED])
        assert found.value.kind == "invalid_answer" and found.value.spent == (5, 0)


def test_what_a_users_provider_gives_is_made_plain() -> None:
    import numpy

    class Word(str):
        def __str__(self) -> str:
            return "another"

    odd: Any = float("nan")
    answers: list[Any] = [
        Answer(Word("word"), None, numpy.int64(4), Decimal(2), confidence=odd, cached_tokens=9),
        Answer(b"bytes"),  # type: ignore[arg-type]
        Answer(odd, None, odd, odd),
        Answer(None, "no \ud800"),  # type: ignore[arg-type]
        Answer(None, ProviderError("odd", "text", retry_after=odd, spent=("many", 10**30))),  # type: ignore[arg-type]
    ]

    class Mine:
        def batch_size(self, request: Request) -> int:
            return len(answers)

        def answer(self, requests: Sequence[Request]) -> list[Answer]:
            return answers

    found = [row(one) for one in Asker(Mine(), Limits(Share()), max_attempts=1).ask([FREE] * len(answers))]
    assert [(one["value"], one["error_class"], one["error"]) for one in found] == [
        ("word", None, None),
        (None, "provider_bug", "the answer is bytes, not text"),
        (None, "provider_bug", "the answer is float, not text"),
        (None, "provider_bug", "no \ufffd"),
        (None, "odd", "text"),
    ]
    first = found[0]
    assert {type(value) for value in (first["value"], first["input_tokens"], first["cost"])} == {str, int, float}
    assert (first["input_tokens"], first["output_tokens"], first["cached_tokens"], first["confidence"]) == (
        4,
        2,
        4,
        None,
    )
    assert [one["input_tokens"] for one in found[1:]] == [0] * 4
    json.dumps([{**one, "called_at": None, "next_retry_at": None} for one in found], ensure_ascii=False).encode()


@pytest.mark.parametrize("request_", [FREE, LABEL], ids=["free text", "label"])
@pytest.mark.parametrize(
    ("content", "finish", "refusal", "kind", "said"),
    [
        ("", "content_filter", None, "refused", "the model refused: content_filter"),
        ("the begin", "content_filter", None, "refused", "the model refused: content_filter"),
        (None, "stop", "I cannot", "refused", "the model refused: I cannot"),
        (None, "stop", None, "invalid_answer", "an empty answer (finish_reason: stop)"),
        (None, "length", None, "invalid_answer", "an empty answer (cut off at the token limit)"),
        ("", "length", None, "invalid_answer", "an empty answer (cut off at the token limit)"),
    ],
)
def test_why_there_is_no_answer(
    endpoint: Canned, request_: Request, content: str | None, finish: str, refusal: str | None, kind: str, said: str
) -> None:
    endpoint.says(content, finish, {"prompt_tokens": 5, "completion_tokens": 1}, refusal=refusal)
    found = endpoint.asked(request_)
    assert (found.error_class, found.error, found.value, found.input_tokens) == (kind, said, None, 5)


def test_a_free_text_that_is_cut_or_empty_is_an_answer(endpoint: Canned) -> None:
    for content, finish in (("the begin", "length"), ("", "stop")):
        endpoint.says(content, finish)
        assert endpoint.asked(FREE).value == content


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(endpoint: Canned, status: int) -> None:
    with Canned() as other:
        other.says("yes")
        endpoint.reply = status, {"Location": f"{other.url}/chat/completions"}, b""
        found = endpoint.asked(FREE, attempts=3)
        assert (found.error_class, found.attempts, sum(other.seen.asked.values())) == ("unsupported", 1, 0)
        assert f"if it is yours, write base_url: {other.url} there" in (found.error or "")


@pytest.mark.parametrize("request_", [{"messages": ["hello"]}, {"messages": [5]}, {"messages": []}])
def test_a_request_that_cannot_be_made_is_the_same_error_wherever_it_is_made(endpoint: Canned, request_: Any) -> None:
    odd = Request("ai_query", {"request": request_, "files": "url:a"}, model="m")
    outcome = endpoint.asked(odd)
    with pytest.raises(ProviderError) as raised:
        request_line("k", odd)
    assert (outcome.error_class, outcome.error) == ("provider_bug", raised.value.message)
    assert raised.value.kind == "provider_bug"


def test_a_request_with_a_lone_surrogate_is_an_error(endpoint: Canned) -> None:
    odd = Request("ai_gen", {"prompt": "a\ud800b"}, model="m")
    assert endpoint.asked(odd).error_class is not None
    with pytest.raises(ProviderError):
        request_line("k", odd)
