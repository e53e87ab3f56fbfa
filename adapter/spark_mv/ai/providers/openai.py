"""Any OpenAI-compatible endpoint: chat completions and embeddings, through the openai package, its retries off."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Callable, Sequence
from threading import Lock, local
from typing import Any
from urllib.parse import urljoin

from spark_mv.ai.chat import (
    CHAT,
    EMBEDDINGS,
    chat_answer,
    chat_body,
    check_model,
    embedding_body,
    embedding_text,
    read,
    reply_of,
    spent,
    status_error,
    vectors_of,
)
from spark_mv.ai.endless import bounded_client, http_package
from spark_mv.ai.pace import Paced, pause
from spark_mv.ai.packing import alone, divided, packable, packed_answers, packed_body, packs, worthwhile
from spark_mv.ai.protocol import Answer, ProviderError, ProviderSettings, Request
from spark_mv.ai.tokens import with_usage

_EMBEDDING_BATCH = 64
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class OpenAIProvider(Paced):
    """One HTTP request per answer; embeddings go in batches. Retries, limits and re-asks are the caller's."""

    requires = ("openai", "jsonschema")

    def __init__(self, settings: ProviderSettings) -> None:
        self._connection = Connection(settings)
        self._said = local()  # by the thread's last reply: headers, and its tokens
        self._together = settings.rows_per_request

    def batch_size(self, request: Request) -> int:
        if self._together != 1 and packable(request):
            return self._together or worthwhile(request)
        return _EMBEDDING_BATCH if request.embedding and request.function != "ai_similarity" else 1

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        first = requests[0]
        check_model(first)
        if first.function == "ai_similarity":
            return [self._similarity(r) for r in requests]
        if first.embedding:
            return self._embeddings(requests)
        if len(requests) > 1:
            return self._together_asked(requests)
        return [self._chat(first)]

    def _together_asked(self, requests: Sequence[Request]) -> list[Answer]:
        """One request for all; what of them is too long to go along is asked alone by the caller."""
        pack, *others = packs(requests)
        left = [
            Answer(None, alone("too long to be asked with others", (0, 0), sent=False)) for more in others for _ in more
        ]
        if len(pack) == 1:
            return [self._chat(pack[0]), *left]
        body = packed_body(pack)
        return [*read(self._call(CHAT, body), lambda reply: packed_answers(pack, reply)), *left]

    def _chat(self, request: Request) -> Answer:
        body = chat_body(request)
        return read(self._call(CHAT, body), lambda reply: chat_answer(request, reply))

    def _embeddings(self, requests: Sequence[Request]) -> list[Answer]:
        texts = [embedding_text(r) for r in requests]
        vectors, tokens = self._embed(embedding_body(requests[0], texts))
        shares = divided(tokens, [len(t) for t in texts])
        return [Answer(json.dumps(v), None, share, 0) for v, share in zip(vectors, shares, strict=False)]

    def _similarity(self, request: Request) -> Answer:
        first, second = str(request.row["expr1"]), str(request.row["expr2"])
        if first == second:
            return Answer("1.0")
        body = {"model": request.model, "input": [first, second], "encoding_format": "float"}
        (a, b), tokens = self._embed(body)
        size = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
        return Answer(repr(sum(x * y for x, y in zip(a, b, strict=False)) / size if size else 0.0), None, tokens, 0)

    def _embed(self, body: dict[str, Any]) -> tuple[list[list[float]], int]:
        return read(self._call(EMBEDDINGS, body), lambda reply: vectors_of(reply, len(body["input"])))

    def pause_by_reply(self, under_way: int) -> float:
        """See Paced."""
        headers, tokens = self._said.__dict__.pop("reply", ({}, 0))
        return pause(headers, tokens, under_way)

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        """The endpoint's reply. By the package's way for whatever endpoint: walking a body and a reply by the types of its chat completions
        takes it 40 % of a request's CPU."""

        def replied(client: Any) -> Any:
            from openai import DefaultHttpxClient

            of_type = http_package(DefaultHttpxClient).Response
            response = client.post(path.removeprefix("/v1"), cast_to=of_type, body=body)
            reply = with_usage(reply_of(response.json()), body)
            self._said.reply = response.headers, sum(spent(reply))
            return reply

        return self._connection.call(replied)


class Connection:
    """The openai client of an endpoint, its retries off; what goes wrong is a ProviderError."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._client: Any = None
        self._making = Lock()

    def call(self, what: Callable[[Any], Any]) -> Any:
        """The result of `what` over the client. Raises ProviderError."""
        try:
            import openai
        except ImportError:
            raise ProviderError(
                "unsupported",
                "provider openai needs openai and jsonschema: pip install 'dbt-spark-mv[openai]'",
            ) from None
        try:
            return what(self._connected(openai))
        except openai.APITimeoutError:
            raise ProviderError("timeout", f"no reply within {self.settings.timeout_seconds:g} s") from None
        except openai.APIConnectionError as error:
            raise ProviderError("connection", self.settings.cleaned(f"{error}: {error.__cause__}")) from None
        except openai.APIStatusError as error:
            headers = error.response.headers
            said = (
                redirected(str(error.response.url), headers.get("location", ""))
                if error.status_code in _REDIRECTS
                else error.message
            )
            text = self.settings.cleaned(f"HTTP {error.status_code}: {said}")
            after = retry_after(headers.get("retry-after"))
            raise status_error(int(error.status_code), text, after) from None
        except (
            openai.OpenAIError,
            ValueError,
            RecursionError,
        ) as error:  # a reply that is not JSON, or nested too deeply
            raise ProviderError("server", self.settings.cleaned(f"unreadable reply: {error}")) from None

    def _connected(self, openai: Any) -> Any:
        with self._making:  # one for all threads, which begin at the same time
            if self._client is None:
                key = self.settings.api_key.reveal() if self.settings.api_key else "none"
                self._client = openai.OpenAI(
                    api_key=key,
                    base_url=self.settings.base_url,
                    max_retries=0,
                    timeout=self.settings.timeout_seconds,
                    http_client=bounded_client(openai, self.settings.timeout_seconds),
                )
            return self._client


def redirected(url: str, location: str) -> str:
    """What to say of a redirect, which is not followed.

    >>> redirected("https://example/v1/chat/completions", "//eu.example/v1/chat/completions?key=1")
    "the endpoint sends its callers to https://eu.example/v1, and rows go to no other address than the profile's: if it is yours, write base_url: https://eu.example/v1 there"
    """
    path, _, _ = urljoin(url, location).partition("?")
    for end in (CHAT, EMBEDDINGS):
        path = path.removesuffix(end.removeprefix("/v1"))
    return (
        f"the endpoint sends its callers to {path}, and rows go to no other address than the profile's: if it is yours, "
        f"write base_url: {path} there"
    )


def retry_after(value: str | None) -> float | None:
    """Seconds to wait by a Retry-After header: a number of seconds or an HTTP date (RFC 9110, 10.2.3)."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        parsed = email.utils.parsedate_tz(value)
        return max(0.0, email.utils.mktime_tz(parsed) - time.time()) if parsed else None
    except (ValueError, OverflowError):  # a year that no calendar has
        return None
