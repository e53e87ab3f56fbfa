"""The protocol between the batch job and a provider of answers.

A user's own provider is a class whose path stands in the profile (`provider: package.module.Class`). It is built once
per partition with the settings and gets batches of requests; it gives one answer for each, in the same order. Limits,
retries, halving of failed batches, cost and storage are the job's affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from spark_mv.ai.plain import plain_count, plain_number, plain_text
from spark_mv.ai.secret import NAMED_SECRET


@dataclass(frozen=True)
class Request:
    """One question. `row` are the arguments of this row, `constant` the literal ones of the call site.

    `answer_type` is the Spark type that the answer must have; `embedding` asks for a vector of numbers.
    """

    function: str
    row: Mapping[str, Any]
    constant: Mapping[str, Any] = field(default_factory=dict)
    answer_type: str = "STRING"
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response_schema: str | None = None  # as written in the SQL
    type_schema: Mapping[str, Any] | None = None  # JSON schema of the answer's type, None for a STRING
    kind: Sequence[Any] | None = None  # the same type as typed.py has it
    prompt: str | None = None
    embedding: bool = False
    complaint: str | None = None  # why the last reply to this very request could not be used
    declinable: bool = (
        False  # another model may be asked instead: says how sure it is, and is not asked again with a complaint
    )


@dataclass(frozen=True)
class Answer:
    """`value` is the text of a STRING answer, JSON for every other type, None for a NULL answer (an answer, too).

    With `error` set it is a failure instead. Tokens are what the provider counted, 0 where it counts none. `confidence` is from 0 to 1, None
    where it is not known. `cached_tokens` are those of the input tokens that the endpoint had seen shortly before and counts for less.

    What is no such value is taken as unknown: a lone surrogate in a text is U+FFFD, a number of tokens that is none is 0, and a `value` that is
    no text is an error of this input. So is one that a column of the call's type would show as NULL (`five` for an INT), or that is none of the labels.
    """

    value: str | None = None
    error: ProviderError | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    confidence: float | None = None
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        value: Any = self.value
        error: Any = self.error
        if value is not None and not isinstance(value, str) and error is None:
            error = f"the answer is {type(value).__name__}, not text"
        if error is not None and not isinstance(error, ProviderError):
            error = ProviderError("provider_bug", error)
        sent = plain_count(self.input_tokens)
        plainly = {
            "value": plain_text(value) if isinstance(value, str) else None,
            "error": error,
            "input_tokens": sent,
            "output_tokens": plain_count(self.output_tokens),
            "confidence": plain_number(self.confidence),
            "cached_tokens": min(plain_count(self.cached_tokens), sent),
        }
        for name, found in plainly.items():
            object.__setattr__(self, name, found)  # frozen


# Every kind of failure that ends up as error_class in the result table.
ERROR_CLASSES = (
    "rate_limit", "server", "timeout", "connection", "auth", "refused", "invalid_answer", "unsupported", "budget",
    "deadline", "provider_bug", "worker", "batch", "chunk",
)  # fmt: skip


class ProviderError(Exception):
    """Why a request (or, raised, a whole batch) has no answer.

    `kind` is one of ERROR_CLASSES: rate_limit, server, timeout, connection are tried again; auth, refused (bad
    request), invalid_answer, unsupported are not in this run. `retry_after` in seconds, where the endpoint said so.
    `spent` is set when the failed attempt was paid for: (input tokens, output tokens).
    """

    TRANSIENT = frozenset({"rate_limit", "server", "timeout", "connection"})

    def __init__(
        self, kind: str, message: str, *, retry_after: float | None = None, spent: tuple[int, int] = (0, 0)
    ) -> None:
        message = plain_text(message)
        super().__init__(message)
        self.kind = plain_text(kind)
        self.message = message
        self.retry_after = plain_number(retry_after)
        self.spent = plain_count(spent[0]), plain_count(spent[1])
        self.alone = False  # set by a provider: the input is to be asked by itself
        self.sent = True  # False, set by a provider: the endpoint has not seen the input yet
        self.re_ask = False  # set by the job: the same question goes out once more, with the complaint

    @property
    def transient(self) -> bool:
        return self.kind in self.TRANSIENT

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.kind, self.message, self.retry_after, self.spent)


def _rebuild(kind: str, message: str, retry_after: float | None, spent: tuple[int, int]) -> ProviderError:
    return ProviderError(kind, message, retry_after=retry_after, spent=spent)


@dataclass(frozen=True)
class ProviderSettings:
    """What a provider gets to know. `api_key` is a spark_mv.ai.secret.Secret or None; `options` are free for own use."""

    base_url: str | None = None
    api_key: Any = field(default=None, repr=False)
    timeout_seconds: float = 60.0
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rows_per_request: int = 1  # 0: as many as are worth it

    def cleaned(self, text: str) -> str:
        """The text without the key and what is named like a secret in the options: errors repeat what was sent."""
        named = [value for name, value in self.options.items() if NAMED_SECRET.search(str(name))]
        found = {str(value) for value in [*named, self.api_key.reveal() if self.api_key else ""] if value}
        for value in sorted(found, key=len, reverse=True):
            text = text.replace(value, "***")
        return text


class Provider(Protocol):
    """What a provider is: built with ProviderSettings, asked in batches, from several threads at once.

    Its module may import what the workers have installed; it is itself shipped to them by value. A class attribute
    `requires`, optional, names the modules that it imports: workers that lack one ask nothing, and dbt's own process
    asks instead.
    """

    def batch_size(self, request: Request) -> int:
        """How many requests like this one it takes at a time (1 where each is a call of its own)."""

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """One answer per request, order kept. Raises ProviderError when the whole batch failed."""
