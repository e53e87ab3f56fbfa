"""Any OpenAI-compatible endpoint: chat completions and embeddings, through the openai package, its retries off."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Sequence
from typing import Any

from spark_mv.ai.prompts import answer_text, messages, response_schema
from spark_mv.ai.protocol import Answer, ProviderError, Request

_EMBEDDING_BATCH = 64
_INPUT_REFUSED = frozenset({400, 413, 414, 422})
"""Statuses by which an endpoint refuses an input for good: invalid, too long, against its policy."""


class OpenAIProvider:
    """One HTTP request per answer; embeddings go in batches. Retries, limits and re-asks are the caller's."""

    requires = ("openai", "jsonschema")

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self._client: Any = None

    def batch_size(self, request: Request) -> int:
        return _EMBEDDING_BATCH if request.embedding and request.function == "ai_query" else 1

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        first = requests[0]
        if first.function == "ai_similarity":
            if not first.embedding:
                raise ProviderError(
                    "unsupported", f"ai_similarity needs an embedding model, {first.model} is none: set embedding_model"
                )
            return [self._similarity(r) for r in requests]
        if first.embedding:
            return self._embeddings(requests)
        return [self._chat(r) for r in requests]

    def _chat(self, request: Request) -> Answer:
        schema = response_schema(request)
        more: dict[str, Any] = dict(request.parameters)
        if schema is not None:
            shape = {"name": request.function, "schema": schema, "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": shape}
        reply = self._call(lambda c: c.chat.completions.create(model=request.model, messages=messages(request), **more))
        spent = _spent(reply)
        choice = (getattr(reply, "choices", None) or [None])[0]
        if choice is None or getattr(choice, "message", None) is None:
            raise ProviderError("invalid_answer", "the endpoint's reply has no choices", spent=spent)
        if choice.message.content is None:
            refusal = getattr(choice.message, "refusal", None)
            raise ProviderError("refused", f"the model refused: {refusal or choice.finish_reason}", spent=spent)
        if schema is None:
            return Answer(answer_text(request, choice.message.content), None, *spent)
        problem = _misfit(choice.message.content, schema)
        if problem:
            cut = " (cut off at the token limit)" if choice.finish_reason == "length" else ""
            raise ProviderError("invalid_answer", problem + cut, spent=spent)
        return Answer(answer_text(request, choice.message.content), None, *spent)

    def _embeddings(self, requests: Sequence[Request]) -> list[Answer]:
        texts = [_text(r.row["request"]) for r in requests]
        vectors, tokens = self._embed(requests[0].model, texts, dict(requests[0].parameters))
        shares = _divided(tokens, [len(t) for t in texts])
        return [Answer(json.dumps(v), None, share, 0) for v, share in zip(vectors, shares, strict=False)]

    def _similarity(self, request: Request) -> Answer:
        first, second = str(request.row["expr1"]), str(request.row["expr2"])
        if first == second:
            return Answer("1.0")
        (a, b), tokens = self._embed(request.model, [first, second], {})
        size = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
        return Answer(repr(sum(x * y for x, y in zip(a, b, strict=False)) / size if size else 0.0), None, tokens, 0)

    def _embed(self, model: str, texts: list[str], more: dict[str, Any]) -> tuple[list[list[float]], int]:
        reply = self._call(lambda c: c.embeddings.create(model=model, input=texts, encoding_format="float", **more))
        tokens = _spent(reply)[0]
        found = sorted(getattr(reply, "data", None) or [], key=lambda d: d.index)
        if len(found) != len(texts):
            raise ProviderError("invalid_answer", f"{len(found)} embeddings for {len(texts)} texts", spent=(tokens, 0))
        return [list(d.embedding) for d in found], tokens

    def _call(self, what: Any) -> Any:
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
            raise self._status_error(error) from None
        except (openai.OpenAIError, ValueError) as error:  # a reply that is not JSON
            raise ProviderError("server", self.settings.cleaned(f"unreadable reply: {error}")) from None

    def _connected(self, openai: Any) -> Any:
        if self._client is None:
            key = self.settings.api_key.reveal() if self.settings.api_key else "none"
            self._client = openai.OpenAI(
                api_key=key, base_url=self.settings.base_url, max_retries=0, timeout=self.settings.timeout_seconds
            )
        return self._client

    def _status_error(self, error: Any) -> ProviderError:
        status = int(error.status_code)
        text = self.settings.cleaned(f"HTTP {status}: {error.message}")
        if status in {429, 503} or status == 529:
            after = retry_after(error.response.headers.get("retry-after"))
            return ProviderError("rate_limit" if status == 429 else "server", text, retry_after=after)
        if status in {401, 403}:
            return ProviderError("auth", text)
        if status in {408, 409} or status >= 500:
            return ProviderError("server", text, retry_after=retry_after(error.response.headers.get("retry-after")))
        if status in _INPUT_REFUSED:
            return ProviderError("refused", text)
        # a wrong address, a model that is not there, a bill that is not paid: no fault of this input
        return ProviderError("unsupported", text)


def retry_after(value: str | None) -> float | None:
    """Seconds to wait by a Retry-After header: a number of seconds or an HTTP date (RFC 9110, 10.2.3)."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        parsed = email.utils.parsedate_tz(value)
        return max(0.0, email.utils.mktime_tz(parsed) - time.time()) if parsed else None


def _misfit(reply: str, schema: dict[str, Any]) -> str | None:
    import jsonschema  # type: ignore[import-untyped]

    try:
        jsonschema.validate(json.loads(reply), schema)
    except ValueError as error:
        return f"not JSON: {error}"
    except jsonschema.ValidationError as error:
        return f"not of the schema: {error.message[:300]}"
    return None


def _spent(reply: Any) -> tuple[int, int]:
    usage = getattr(reply, "usage", None)
    return int(getattr(usage, "prompt_tokens", 0) or 0), int(getattr(usage, "completion_tokens", 0) or 0)


def _divided(total: int, weights: Sequence[int]) -> list[int]:
    """A whole number divided by weights, its parts adding up to it."""
    whole, given, out, seen = sum(weights) or 1, 0, [], 0
    for weight in weights:
        seen += weight
        part = total * seen // whole - given
        out.append(part)
        given += part
    return out


def _text(request: Any) -> str:
    return request if isinstance(request, str) else json.dumps(request, ensure_ascii=False)
