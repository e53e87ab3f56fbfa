"""How many input tokens a request takes: by the model's own tokenizer where tiktoken has it, else four bytes a token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from spark_mv.ai.chat import chat_body, embedding_text, spent
from spark_mv.ai.files import text_of
from spark_mv.ai.protocol import ProviderError, Request

PER_MESSAGE = 4
"""Tokens around each chat message, as vendors' guides to counting say."""


@lru_cache(maxsize=16)
def tokenizer_of(model: str) -> Callable[[str], int] | None:
    """Counts the tokens of a text as the model does, None where tiktoken is not installed, does not know the model, or cannot fetch
    its table."""
    try:
        import tiktoken  # type: ignore[import-not-found, unused-ignore]

        encoding = tiktoken.encoding_for_model(model)
    except Exception:  # an estimate is no reason to fail
        return None
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def four_bytes(text: str) -> int:
    """The estimate without a tokenizer.

    >>> four_bytes("four byt"), four_bytes("")
    (2, 0)
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def input_tokens(request: Request, count: Callable[[str], int]) -> int:
    """The tokens of everything that is sent: instruction, text, and schema of the answer."""
    if request.function == "ai_similarity":
        return sum(count(str(value)) for value in request.row.values())
    try:
        return count(embedding_text(request)) if request.embedding else body_tokens(chat_body(request), count)
    except ProviderError:  # said by who asks
        return count(json.dumps(dict(request.row), ensure_ascii=False))


def body_tokens(body: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """The tokens of a request's body."""
    if "messages" not in body:
        return sum(count(str(text)) for text in body.get("input", ()))
    messages = body["messages"] if isinstance(body["messages"], list) else [body["messages"]]
    texts = [text_of(m.get("content") if isinstance(m, Mapping) else m) for m in messages]
    said = sum(PER_MESSAGE + count(text) + files for text, files in texts)
    shape = body.get("response_format")
    return said + (count(json.dumps(shape)) if shape else 0)


def with_usage(reply: Any, body: Mapping[str, Any]) -> Any:
    """The reply to this body; where the endpoint has not counted the tokens of one side, with their estimate: budgets and prices are not
    without effect because of that."""
    asked, answered = spent(reply)
    if (asked and answered) or not isinstance(reply, SimpleNamespace):
        return reply
    choices = getattr(reply, "choices", None)
    said = [
        getattr(getattr(c, "message", None), "content", None) for c in (choices if isinstance(choices, list) else ())
    ]
    written = sum(four_bytes(text) for text in said if isinstance(text, str))
    more = vars(reply.usage) if isinstance(getattr(reply, "usage", None), SimpleNamespace) else {}
    counted = {
        "prompt_tokens": asked or body_tokens(body, four_bytes),
        "completion_tokens": answered or written,
    }
    reply.usage = SimpleNamespace(**{**more, **counted})
    return reply
