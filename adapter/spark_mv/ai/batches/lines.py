"""The lines of a batch's files: requests going out, replies coming back, in any order, some missing, some twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_mv.ai.asking import LONGEST_MESSAGE, Outcome
from spark_mv.ai.chat import (
    CHAT,
    EMBEDDINGS,
    chat_answer,
    chat_body,
    embedding_body,
    embedding_text,
    of_the_input,
    read,
    reply_of,
    status_error,
    vectors_of,
)
from spark_mv.ai.protocol import Answer, ProviderError, Request

NOT_DONE = "batch"
"""Error class of an input whose batch failed, expired, was cancelled or came back without it: nothing was answered."""
_NOT_DONE_CODES = frozenset({"batch_expired", "batch_cancelled"})


def path_of(embedding: bool) -> str:
    """The interface that answers."""
    return EMBEDDINGS if embedding else CHAT


@of_the_input
def request_line(key: str, request: Request) -> bytes:
    """One request of a batch, without the line's end; its id is the result key. Raises ProviderError where no request can be made of the input."""
    body = embedding_body(request, [embedding_text(request)]) if request.embedding else chat_body(request)
    line = {"custom_id": key, "method": "POST", "url": path_of(request.embedding), "body": body}
    return json.dumps(line, ensure_ascii=False).encode()


def replies(texts: Iterable[str | None]) -> dict[str, list[Mapping[str, Any]]]:
    """The readable lines of output and error files by the id of their request. A line that is no JSON object with an id (the
    last of a file cut short) is left out."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for text in texts:
        for line in (text or "").split("\n"):  # not splitlines: JSON may hold other line separators of Unicode
            try:
                parsed = json.loads(line) if line.strip() else None
            except ValueError:
                continue
            if isinstance(parsed, dict) and isinstance(parsed.get("custom_id"), str):
                found.setdefault(parsed["custom_id"], []).append(parsed)
    return found


def outcome_of(request: Request, lines: Sequence[Mapping[str, Any]], otherwise: str, at: float) -> Outcome:
    """What became of one input: the first line with a good answer, else the first error; no line is an error of the
    batch, whose text is `otherwise`. Tokens are those of all lines: each of them was paid."""
    found = [_outcome(request, line, otherwise, at) for line in lines]
    if not found:
        return Outcome(None, NOT_DONE, otherwise[:LONGEST_MESSAGE], 1, 0, 0, at)
    best = next((one for one in found if one.error_class is None), found[0])
    tokens = sum(o.input_tokens for o in found), sum(o.output_tokens for o in found)
    return Outcome(
        best.value, best.error_class, best.error, 1, *tokens, at, None, (), sum(o.cached_tokens for o in found)
    )


def _outcome(request: Request, line: Mapping[str, Any], otherwise: str, at: float) -> Outcome:
    try:
        answer = _answer(request, line, otherwise)
    except ProviderError as error:
        return Outcome(None, error.kind, error.message[:LONGEST_MESSAGE], 1, *error.spent, at)
    return Outcome(
        answer.value, None, None, 1, answer.input_tokens, answer.output_tokens, at, None, (), answer.cached_tokens
    )


def _answer(request: Request, line: Mapping[str, Any], otherwise: str) -> Answer:
    response, error = line.get("response"), line.get("error")
    if isinstance(response, Mapping):
        body, status = response.get("body"), response.get("status_code")
        if not isinstance(status, int) or status >= 400:
            raise status_error(status if isinstance(status, int) else 500, f"HTTP {status}: {_said(body)}")
        return _read(request, body if isinstance(body, Mapping) else {})
    code = str((error or {}).get("code") or "") if isinstance(error, Mapping) else ""
    if code in _NOT_DONE_CODES or not isinstance(error, Mapping):
        raise ProviderError(NOT_DONE, f"{otherwise}: {code}" if code else otherwise)
    raise ProviderError("server", f"{code}: {error.get('message')}")


def _read(request: Request, body: Mapping[str, Any]) -> Answer:
    def answer(reply: Any) -> Answer:
        if request.embedding:
            vectors, tokens = vectors_of(reply, 1)
            return Answer(json.dumps(vectors[0]), None, tokens, 0)
        return chat_answer(request, reply)

    return read(reply_of(body), answer)


def _said(body: Any) -> str:
    error = body.get("error") if isinstance(body, Mapping) else None
    return str(error.get("message") if isinstance(error, Mapping) else body)
