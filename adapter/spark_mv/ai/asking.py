"""Asking a provider until every request has one final outcome: limits before, retries after, halving of failed batches."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.limits import Limits
from spark_mv.ai.protocol import Answer, Provider, ProviderError, Request


@dataclass(frozen=True)
class Outcome:
    """The end of one request: a value (None is one) or an error, and what it took."""

    value: str | None
    error_class: str | None
    error: str | None
    attempts: int
    input_tokens: int
    output_tokens: int
    called_at: float


def estimate_tokens(request: Request) -> int:
    """A reserve before the provider has counted: four bytes a token."""
    size = len(str(dict(request.row)).encode()) + len(str(dict(request.constant)).encode())
    return -(-size // 4) + 1


class Asker:
    """The only retry layer: the providers retry nothing, and Spark's own task retries meet nothing to retry."""

    def __init__(self, provider: Provider, limits: Limits, *, max_attempts: int, deadline: float | None = None) -> None:
        self.provider = provider
        self.limits = limits
        self.max_attempts = max_attempts
        self.deadline = deadline  # seconds since the epoch

    def batch_size(self, request: Request) -> int:
        try:
            return max(1, self.provider.batch_size(request))
        except Exception:
            return 1

    def ask(self, requests: Sequence[Request]) -> list[Outcome]:
        """One outcome per request, order kept. Never raises."""
        try:
            answers, attempts = self._ask_with_retries(requests)
        except ProviderError as error:
            attempts = getattr(error, "attempts", 1)
            if len(requests) > 1 and error.kind not in {"auth", "deadline", "unsupported"}:
                middle = len(requests) // 2
                return self.ask(requests[:middle]) + self.ask(requests[middle:])
            return [self._failed(error, attempts) for _ in requests]
        return [self._outcome(a, attempts) for a in answers]

    def _ask_with_retries(self, requests: Sequence[Request]) -> tuple[list[Answer], int]:
        reserved = sum(estimate_tokens(r) for r in requests)
        for attempt in range(1, self.max_attempts + 1):
            try:
                self.limits.acquire(reserved, self.deadline)
                try:
                    answers = self.provider.answer(requests)
                finally:
                    self.limits.release()
                if len(answers) != len(requests):
                    raise ProviderError("invalid_answer", f"{len(answers)} answers to {len(requests)} requests")
                self.limits.settle(reserved, sum(a.input_tokens + a.output_tokens for a in answers))
                return answers, attempt
            except ProviderError as error:
                failure = error
            except Exception as error:  # a provider's own mistake must not cost the answers of the others
                failure = ProviderError("provider_bug", f"{type(error).__name__}: {error}")
            failure.attempts = attempt  # type: ignore[attr-defined]
            pause = failure.retry_after if failure.retry_after is not None else self._backoff(attempt)
            if failure.kind == "rate_limit":
                self.limits.cool_down(pause)
            late = self.deadline is not None and time.time() + pause > self.deadline
            if not failure.transient or attempt == self.max_attempts or late:
                raise failure
            if failure.kind != "rate_limit":
                time.sleep(pause)
        raise AssertionError("max_attempts is at least 1")

    def _backoff(self, attempt: int) -> float:
        return random.uniform(0.5, 1.0) * min(0.5 * 2 ** (attempt - 1), 30.0)

    def _failed(self, error: ProviderError, attempts: int) -> Outcome:
        tokens_in, tokens_out = error.spent
        return Outcome(None, error.kind, error.message, attempts, tokens_in, tokens_out, time.time())

    def _outcome(self, answer: Answer, attempts: int) -> Outcome:
        if answer.error is not None:
            return self._failed(answer.error, attempts)
        return Outcome(answer.value, None, None, attempts, answer.input_tokens, answer.output_tokens, time.time())
