"""What a chat or embedding request is on the wire, and what a reply amounts to: the same asked directly and in a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeGuard, TypeVar

from spark_mv.ai.cascade import confidence_of
from spark_mv.ai.plain import plain_count
from spark_mv.ai.prompts import answer_text, messages, response_schema
from spark_mv.ai.protocol import Answer, ProviderError, Request
from spark_mv.ai.typed import json_text
from spark_mv.query.ai_calls.signatures import VECTORS

T = TypeVar("T")
P = ParamSpec("P")
CHAT, EMBEDDINGS = "/v1/chat/completions", "/v1/embeddings"
_LARGEST = 3.4028234663852886e38
"""FLOAT."""
_INPUT_REFUSED = frozenset({400, 413, 414, 422})
"""Statuses by which an endpoint refuses an input for good: invalid, too long, against its policy."""


_WRITTEN = ("model", "messages", "input", "response_format", "encoding_format", "stream", "n")
"""Words of a request's body that are not the user's to say."""


def problem_of_parameters(parameters: Mapping[str, Any]) -> str | None:
    """What is wrong with `parameters`, which go into the body of each request as they are."""
    if taken := [word for word in _WRITTEN if word in parameters]:
        return f"parameters may not set {', '.join(taken)}: the request is written with its own. Take that out; a model is named by `model`"
    return None


def of_the_input(how: Callable[P, T]) -> Callable[P, T]:
    """`how` makes something of a request. Data of a shape that it can make nothing of is an error of this input, whoever asks: directly, in a
    batch, or to count tokens. So nothing but ProviderError is raised."""

    @wraps(how)
    def made(*args: P.args, **more: P.kwargs) -> T:
        try:
            return how(*args, **more)
        except ProviderError:
            raise
        except Exception as error:
            raise ProviderError("provider_bug", f"{type(error).__name__}: {error}") from None

    return made


def check_model(request: Request) -> None:
    """Raises ProviderError where a vector is asked for, and the model gives none."""
    if request.function in VECTORS and not request.embedding:
        raise ProviderError(
            "unsupported", f"{request.function} needs an embedding model, {request.model} is none: set embedding_model"
        )


@of_the_input
def chat_body(request: Request) -> dict[str, Any]:
    """The body of a chat completion that asks for this answer. Raises ProviderError."""
    check_model(request)
    schema = response_schema(request)
    body: dict[str, Any] = {"model": request.model, "messages": messages(request), **request.parameters}
    if schema is not None:
        body["response_format"] = structured(request.function, schema)
    if request.declinable:
        body["logprobs"] = True
    return body


def structured(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The word for structured output of this schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


def content_of(reply: Any) -> tuple[str, str]:
    """Text of a chat completion, and what to say of its length. Raises ProviderError where there is none: `refused` where the model or a
    policy kept it back."""
    used = spent(reply)
    choices = getattr(reply, "choices", None)
    choice = choices[0] if isinstance(choices, list) and choices else None
    if choice is None or getattr(choice, "message", None) is None:
        raise ProviderError("invalid_answer", "the endpoint's reply has no choices", spent=used)
    content, end = getattr(choice.message, "content", None), getattr(choice, "finish_reason", None)
    refusal = getattr(choice.message, "refusal", None)
    if end == "content_filter" or (refusal and not content):
        raise ProviderError("refused", f"the model refused: {refusal or end}", spent=used)
    cut = " (cut off at the token limit)" if end == "length" else ""
    if content is None or (cut and not content):
        raise ProviderError("invalid_answer", f"an empty answer{cut or f' (finish_reason: {end})'}", spent=used)
    return _text_of(content, used), cut


def _text_of(content: Any, used: tuple[int, int]) -> str:
    """The text, which some endpoints give as a list of parts."""
    parts = [getattr(part, "text", None) for part in content] if isinstance(content, list) else [content]
    texts = [part for part in parts if isinstance(part, str)]
    if not texts or (isinstance(content, list) and len(texts) < len(parts)):
        raise ProviderError("invalid_answer", "the content of the reply is no text", spent=used)
    return "".join(texts)


def read(reply: Any, how: Callable[[Any], T]) -> T:
    """What `how` makes of a reply. One of another shape is a wrong answer that was paid for. Raises ProviderError."""
    try:
        return how(reply)
    except ProviderError:
        raise
    except Exception as error:
        said = f"unreadable reply: {type(error).__name__}: {error}"
        raise ProviderError("invalid_answer", said, spent=spent(reply)) from None


def chat_answer(request: Request, reply: Any) -> Answer:
    """The answer in a chat completion. Raises ProviderError for a refusal and for what does not fit the schema."""
    schema, used = response_schema(request), spent(reply)
    content, cut = content_of(reply)
    if schema is not None and (problem := misfit(content, schema)):
        raise ProviderError("invalid_answer", problem + cut, spent=used)
    try:
        value = answer_text(request, content)
    except ValueError as error:
        raise ProviderError("invalid_answer", f"{error}{cut}", spent=used) from None
    confidence = confidence_of(reply, schema is not None) if request.declinable else None
    return Answer(value, None, *used, confidence, cached(reply))


@of_the_input
def embedding_text(request: Request) -> str:
    """The text whose vector is asked for. Raises ProviderError."""
    (asked,) = request.row.values()
    return asked if isinstance(asked, str) else json_text(asked)


def embedding_body(request: Request, texts: list[str]) -> dict[str, Any]:
    """The body of an embeddings request for these texts."""
    return {"model": request.model, "input": texts, "encoding_format": "float", **request.parameters}


def vectors_of(reply: Any, number: int) -> tuple[list[list[float]], int]:
    """So many vectors, all of one length, and the tokens that they took. Raises ProviderError where the reply has others."""
    used = spent(reply)
    data = getattr(reply, "data", None)
    found = data if isinstance(data, list) else []
    if len(found) != number:
        raise ProviderError("invalid_answer", f"{len(found)} embeddings for {number} texts", spent=used)
    places = [getattr(one, "index", None) for one in found]
    if any(place is not None for place in places):
        if sorted(map(str, places)) != sorted(map(str, range(number))):
            raise ProviderError("invalid_answer", "the embeddings do not say which text each is of", spent=used)
        found = sorted(found, key=lambda one: int(one.index))
    vectors = [v for v in (getattr(one, "embedding", None) for one in found) if _is_vector(v)]
    if len(vectors) < number or len({len(vector) for vector in vectors}) > 1:
        raise ProviderError("invalid_answer", "an embedding is no list of numbers, or shorter than another", spent=used)
    return vectors, used[0]


def _is_vector(value: Any) -> TypeGuard[list[float]]:
    """Whether Spark can have it as an array of FLOAT."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(n, (int, float)) and not isinstance(n, bool) and abs(n) <= _LARGEST for n in value)
    )


def status_error(status: int, text: str, after: float | None = None) -> ProviderError:
    """What an HTTP status means. `after` are the seconds that the endpoint wants to be left alone."""
    if status == 429:
        return ProviderError("rate_limit", text, retry_after=after)
    if status in {401, 403}:
        return ProviderError("auth", text)
    if status in {408, 409} or status >= 500:
        return ProviderError("server", text, retry_after=after)
    if status in _INPUT_REFUSED:
        return ProviderError("refused", text)
    # a wrong address, a model that is not there, a bill that is not paid: no fault of this input
    return ProviderError("unsupported", text)


def misfit(reply: str, schema: dict[str, Any]) -> str | None:
    """Why a reply is not of the schema, None where it is."""
    import jsonschema  # type: ignore[import-untyped]

    try:
        jsonschema.validate(json.loads(reply), schema)
    except ValueError as error:
        return f"not JSON: {error}"
    except jsonschema.ValidationError as error:
        return f"not of the schema: {error.message[:300]}"
    return None


def cached(reply: Any) -> int:
    """Of the input tokens, those that the endpoint had cached; never more than there are."""
    details = getattr(getattr(reply, "usage", None), "prompt_tokens_details", None)
    return min(plain_count(getattr(details, "cached_tokens", None)), spent(reply)[0])


def reply_of(body: Any) -> Any:
    """A reply from its parsed JSON: objects with attributes, whatever the endpoint put into them.

    >>> reply_of({"choices": [{"message": {"content": "a"}}]}).choices[0].message.content
    'a'
    """
    if isinstance(body, Mapping):
        return SimpleNamespace(**{name: reply_of(value) for name, value in body.items()})
    return [reply_of(one) for one in body] if isinstance(body, list) else body


def spent(reply: Any) -> tuple[int, int]:
    """Input and output tokens as the endpoint counted, 0 where that is no number of tokens."""
    usage = getattr(reply, "usage", None)
    return plain_count(getattr(usage, "prompt_tokens", None)), plain_count(getattr(usage, "completion_tokens", None))
