"""Asking a provider until every request has one final outcome: limits before, retries after, halving of failed batches.

The only retry layer. Providers retry nothing, and Spark's task retries meet nothing to retry, because nothing raises:
SDK retries times own retries times task retries has multiplied bills elsewhere.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_mv.ai.files import without_files
from spark_mv.ai.limits import Limits
from spark_mv.ai.pace import Paced
from spark_mv.ai.prompts import checked_value
from spark_mv.ai.protocol import Answer, Provider, ProviderError, Request

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from spark_mv.ai.cascade import Taken

# After so many requests in a row that failed with all their retries the endpoint counts as down.
GIVE_UP_AFTER = 8
# After so many in a row that were refused for a wrong key, address, model or package; a firewall may refuse a single input so.
WRONG_AFTER = 3
LONGEST_MESSAGE = 1000
LONGEST_WAIT = 120.0
"""Seconds: what an endpoint asks for beyond that (Retry-After: a day) waits for a later run, not in this one."""


@dataclass(frozen=True)
class Outcome:
    """The end of one request: a value (None is one) or an error, and what it took.

    `attempts` 0 with an error means that it was never asked (budget, deadline, endpoint down): left for a later run.
    `steps` are the models of a cascade that were asked.
    """

    value: str | None
    error_class: str | None
    error: str | None
    attempts: int
    input_tokens: int
    output_tokens: int
    called_at: float
    confidence: float | None = None
    steps: tuple[Taken, ...] = ()
    cached_tokens: int = 0


def estimate_tokens(request: Request) -> int:
    """A reserve before the provider has counted: four bytes a token."""
    row, files = without_files(request.row)
    size = sum(len(str(v).encode("utf-8", "surrogatepass")) for v in (*row.values(), *request.constant.values()))
    return -(-size // 4) + 1 + files


class Asker:
    """Thread-safe; one per partition. After `deadline` (seconds since the epoch) nothing is sent, after `begin_by` nothing about an input of
    which nothing was sent: that is left to the next chunk, class `chunk`, whose text is when it may be sent. `clean` takes secrets out of a text."""

    def __init__(
        self,
        provider: Provider,
        limits: Limits,
        *,
        max_attempts: int,
        deadline: float | None = None,
        begin_by: float | None = None,
        clean: Callable[[str], str] = str,
    ) -> None:
        self.provider = provider
        self.limits = limits
        self.max_attempts = max_attempts
        self.deadline = deadline
        self.begin_by = begin_by
        self.clean = clean
        self._failed_in_a_row = self._wrong_in_a_row = 0
        self._closed: ProviderError | None = None  # why nothing more is asked
        self._lock = threading.Lock()

    def batch_size(self, request: Request) -> int:
        try:
            return max(1, self.provider.batch_size(request))
        except Exception:  # said again, and kept as an error row, when it is asked
            return 1

    def ask(self, requests: Sequence[Request], *, begun: bool = False) -> list[Outcome]:
        """One outcome per request, order kept. `begun`: something about these inputs was sent before. Never raises."""
        self.limits.together(len(requests))
        return self._ask(requests, begun)

    def _ask(self, requests: Sequence[Request], begun: bool = True) -> list[Outcome]:
        state = _Attempts(begun)
        try:
            answers = self._with_retries(requests, state)
        except ProviderError as error:
            if state.attempts and error.kind in _OF_THE_BATCH and len(requests) > 1:
                if self.limits.again(2):
                    middle = len(requests) // 2
                    halves = self._ask(requests[:middle]) + self._ask(requests[middle:])
                    return [
                        _with(outcome, _part(state.tokens, number, len(requests)), state.attempts)
                        for number, outcome in enumerate(halves)
                    ]
                error = _too_late(error)
            self._note_failure(error, state.attempts)
            shares = [_part(state.tokens, n, len(requests)) for n in range(len(requests))]
            return [self._failed(error, state, s) for s in shares]
        with self._lock:
            self._failed_in_a_row = self._wrong_in_a_row = 0
        return [
            self._alone(request, answer, state, _part(state.tokens, number, len(requests)))
            if answer.error is not None and answer.error.alone and len(requests) > 1
            else self._outcome(request, answer, state, _part(state.tokens, number, len(requests)))
            for number, (request, answer) in enumerate(zip(requests, answers, strict=False))
        ]

    def stop(self, kind: str, why: str) -> None:
        """Nothing more is asked, for this reason."""
        with self._lock:
            self._closed = self._closed or ProviderError(kind, why)

    def _with_retries(self, requests: Sequence[Request], state: _Attempts) -> list[Answer]:
        try:
            from tenacity import Retrying
        except ImportError:
            raise ProviderError(
                "unsupported", "AI functions need tenacity: pip install tenacity on the workers"
            ) from None
        retrying = Retrying(
            retry=self._worth_repeating,
            wait=self._pause,
            reraise=True,
        )
        return retrying(self._once, requests, state)

    def _once(self, requests: Sequence[Request], state: _Attempts) -> list[Answer]:
        if self._closed is not None:
            raise ProviderError(self._closed.kind, self._closed.message)
        asked = [replace(r, complaint=state.complaint) for r in requests] if state.complaint else requests
        reserved = sum(estimate_tokens(r) for r in requests)
        self._acquire(reserved, requests[0].model, state.begun)
        state.attempts, state.begun = state.attempts + 1, True
        used = (0, 0)
        try:
            answers = self.provider.answer(asked)
            used = sum(a.input_tokens for a in answers), sum(a.output_tokens for a in answers)
            if len(answers) != len(requests):
                raise ProviderError("invalid_answer", f"{len(answers)} answers to {len(requests)} requests", spent=used)
            return answers
        except ProviderError as error:
            used = error.spent
            state.add(error.spent)
            if error.kind == "rate_limit":
                self.limits.cool_down(self._wait(error, state.attempts))
            again = state.complaint is None and len(requests) == 1 and not requests[0].declinable
            if error.kind == "invalid_answer" and again:
                state.complaint = error.message
                error.re_ask = True
            raise
        except Exception as error:  # a provider's own mistake must not cost the answers of the others
            raise ProviderError("provider_bug", f"{type(error).__name__}: {error}") from None
        finally:
            try:
                self._keep_pace()  # first: who waits for this place must see the pause
            finally:
                self.limits.release(reserved, used, requests[0].model)

    def _acquire(self, tokens: int, model: str, begun: bool) -> None:
        ends = [at for at in (self.deadline, None if begun else self.begin_by) if at is not None]
        try:
            self.limits.acquire(tokens, min(ends, default=None), model)
        except ProviderError as error:
            if error.kind == "deadline" and self.begin_by in ends and min(ends) == self.begin_by:
                raise ProviderError("chunk", repr(time.time() + (error.retry_after or 0.0))) from None
            raise

    def _keep_pace(self) -> None:
        """Waits as the endpoint's replies ask, before it has to refuse."""
        if not isinstance(self.provider, Paced):
            return
        try:
            seconds = self.provider.pause_by_reply(self.limits.under_way - 1)
        except Exception:  # the answer is there, and paid: a pause is no reason to lose it
            return
        if seconds > 0:
            self.limits.cool_down(min(seconds, LONGEST_WAIT))

    def _worth_repeating(self, made: RetryCallState) -> bool:
        error = made.outcome.exception() if made.outcome else None
        if not isinstance(error, ProviderError) or not (error.transient or error.re_ask):
            return False
        return made.attempt_number < self.max_attempts and self.limits.again()

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if not isinstance(error, ProviderError) or error.kind == "rate_limit" or error.re_ask:
            return 0.0  # the shared cooldown holds everybody back, a re-ask waits for nothing
        pause = self._wait(error, state.attempt_number)
        left = max(0.0, self.deadline - time.time()) if self.deadline is not None else pause
        return min(pause, left)

    def _wait(self, error: ProviderError, attempt: int) -> float:
        """Seconds until the endpoint may be asked again: what it said, within LONGEST_WAIT, else a growing pause."""
        return self._backoff(attempt) if error.retry_after is None else min(error.retry_after, LONGEST_WAIT)

    def _backoff(self, attempt: int) -> float:
        return random.uniform(0.5, 1.0) * min(0.5 * 2.0 ** (attempt - 1), 30.0)

    def _note_failure(self, error: ProviderError, attempts: int) -> None:
        if not attempts:
            return
        with self._lock:
            self._failed_in_a_row = self._failed_in_a_row + 1 if error.transient else 0
            if error.kind in {"auth", "unsupported"}:
                self._wrong_in_a_row += 1
            elif not error.transient:  # it was this input's own fault: the endpoint does answer
                self._wrong_in_a_row = 0
            if self._wrong_in_a_row >= WRONG_AFTER or self._failed_in_a_row >= GIVE_UP_AFTER:
                self._closed = error

    def _failed(self, error: ProviderError, state: _Attempts, tokens: tuple[int, int]) -> Outcome:
        message = self.clean(error.message)[:LONGEST_MESSAGE]
        return Outcome(None, error.kind, message, state.attempts, *tokens, time.time())

    def _alone(self, request: Request, answer: Answer, state: _Attempts, lost: tuple[int, int]) -> Outcome:
        """The outcome of asking once more by itself, with what the first reply took."""
        used = answer.input_tokens + lost[0], answer.output_tokens + lost[1]
        attempts = state.attempts - int(answer.error is not None and not answer.error.sent)
        if answer.error is not None and not self.limits.again():
            return replace(self._failed(_too_late(answer.error), state, used), attempts=attempts)
        (outcome,) = self._ask([request])
        return _with(outcome, used, attempts)

    def _outcome(self, request: Request, answer: Answer, state: _Attempts, lost: tuple[int, int]) -> Outcome:
        tokens = answer.input_tokens + lost[0], answer.output_tokens + lost[1]
        if answer.error is not None:
            return self._failed(answer.error, state, tokens)
        try:
            value = checked_value(request, answer.value)
        except Exception as error:  # a provider of the user's own gives what it likes
            return self._failed(ProviderError("invalid_answer", str(error)), state, tokens)
        return Outcome(
            value, None, None, state.attempts, *tokens, time.time(), answer.confidence, (), answer.cached_tokens
        )


def _too_late(error: ProviderError) -> ProviderError:
    """What is said of an input that failed with others and may not be asked without them in this run: not its own fault, perhaps."""
    return ProviderError("budget", f"the budget of this run is used up; {error.message}", spent=error.spent)


def _with(outcome: Outcome, tokens: tuple[int, int], attempts: int) -> Outcome:
    """The outcome with what was spent on it before."""
    return replace(
        outcome,
        attempts=outcome.attempts + attempts,
        input_tokens=outcome.input_tokens + tokens[0],
        output_tokens=outcome.output_tokens + tokens[1],
    )


# Failures that one bad input can give to its whole batch.
_OF_THE_BATCH = frozenset({"refused", "invalid_answer", "provider_bug", "server", "timeout"})


class _Attempts:
    """What the attempts at one batch have cost so far."""

    def __init__(self, begun: bool) -> None:
        self.begun = begun
        self.attempts = 0
        self.tokens = (0, 0)
        self.complaint: str | None = None

    def add(self, tokens: tuple[int, int]) -> None:
        self.tokens = self.tokens[0] + tokens[0], self.tokens[1] + tokens[1]


def _part(tokens: tuple[int, int], number: int, of: int) -> tuple[int, int]:
    """The share of one request in tokens that a batch spent together; the shares add up to them."""
    a, b = (n * (number + 1) // of - n * number // of for n in tokens)
    return a, b
