"""One partition's share of what a job may use: requests and tokens a minute, requests at once, a budget, one cooldown."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_mv.ai.prices import Rates
from spark_mv.ai.protocol import ProviderError

_WINDOW = 60.0
# Requests leave here at exact times and arrive a little later or less late: a reserve against arriving too close.
_JITTER = 0.5
# A cooldown longer than this is not waited for: the rest is left for a later run.
_LONGEST_WAIT = 300.0
_FIRST_ANSWER = 0.02  # seconds between two looks whether it is there


@dataclass(frozen=True)
class Share:
    """What one partition may use; None is no limit. `start_after` delays its first request, in seconds since the
    epoch, so that the partitions of one job, and of the chunk before, do not fire at once. `tokens`, `cost` and `calls` are
    budgets (the last where an input may take several; else `repeats` is what its first requests leave of it), prices per 1,000 tokens: those of a
    model stand in `prices`."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int = 1
    start_after: float = 0.0
    tokens: int | None = None
    cost: float | None = None
    input_price: float = 0.0
    output_price: float = 0.0
    prices: Mapping[str, Rates] = field(default_factory=dict)
    calls: int | None = None
    repeats: int | None = None

    def price_of(self, model: str) -> Rates:
        """Per 1,000 input and output tokens."""
        return self.prices.get(model, (self.input_price, self.output_price))


def part(total: int | None, number: int, of: int) -> int | None:
    """The share of one partition in a whole number; the shares add up to it."""
    return None if total is None else total // of + (1 if number < total % of else 0)


def interval(requests_per_minute: int | None) -> float:
    """Seconds between two requests such that any 60 seconds at the server see at most that many."""
    return (_WINDOW + _JITTER) / requests_per_minute if requests_per_minute else 0.0


class Limits:
    """Thread-safe. Requests are paced evenly, without bursts, so that every window keeps the limit and not only some."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self._gap = interval(share.requests_per_minute)
        self._next = share.start_after
        self._cool_until = 0.0
        self._tokens_at = share.start_after  # when the tokens admitted so far are earned
        self._spent = (0, 0)
        self._reserved = 0
        self._cost = self._reserved_cost = 0.0
        self._calls_left, self._calls_held = share.repeats if share.calls is None else share.calls, 0
        self._answers = 0
        self.under_way = 0
        """Requests that were given leave and are not over."""
        self._lock = threading.Lock()
        self._given_back = threading.Condition(self._lock)
        self._slots = threading.Semaphore(share.concurrency)

    def begin(self, calls: int) -> bool:
        """Whether the budget has room for so many calls, which are held until `end`; where others may give some back, it waits."""
        if self.share.calls is None or self._calls_left is None:
            return True
        with self._given_back:
            while self._calls_left < calls and self._calls_held:
                self._given_back.wait(0.5)
            if self._calls_left < calls:
                return False
            self._calls_left -= calls
            self._calls_held += calls
            return True

    def end(self, calls: int, used: int) -> None:
        """Of the calls held, so many were made."""
        if self.share.calls is None or self._calls_left is None:
            return
        with self._given_back:
            self._calls_left += calls - used
            self._calls_held -= calls
            self._given_back.notify_all()

    def together(self, inputs: int) -> None:
        """One request asks about so many inputs, for each of which the budget has a call: the others may be taken to ask again."""
        with self._lock:
            if self.share.calls is None and self._calls_left is not None:
                self._calls_left += inputs - 1

    def again(self, requests: int = 1) -> bool:
        """Whether the budget of calls has room for so many requests about inputs that were asked already, which it then takes."""
        with self._lock:
            if self._calls_left is None:
                return True
            if self._calls_left < requests:
                return False
            self._calls_left -= requests
            return True

    def acquire(self, tokens: int, deadline: float | None, model: str = "") -> None:
        """Waits for leave to send one request of about so many input tokens.

        Raises ProviderError: `deadline` (`retry_after`: when there would be leave), `budget`, or `rate_limit` when the endpoint wants a longer pause than is waited for.
        """
        self._slots.acquire()
        try:
            while (pause := self._attempt(tokens, deadline, self.share.price_of(model))) > 0:
                time.sleep(min(pause, 0.5))
        except BaseException:
            self._slots.release()
            raise

    def _attempt(self, tokens: int, deadline: float | None, price: Rates) -> float:
        with self._lock:
            now = time.time()
            if self._cool_until - now > _LONGEST_WAIT:
                raise ProviderError("rate_limit", f"the endpoint asks for a pause of {self._cool_until - now:.0f} s")
            at = max(self._next, self._cool_until, self._tokens_at if self.share.tokens_per_minute else 0.0)
            if deadline is not None and max(at, now) > deadline:
                raise ProviderError("deadline", "the time for this run's calls is over", retry_after=max(0.0, at - now))
            if at > now:
                return at - now
            if self._unmeasured():
                return _FIRST_ANSWER
            if self._over_budget(tokens, price):
                raise ProviderError("budget", "the budget of this run is used up")
            self._next = now + self._gap
            self.under_way += 1
            self._reserved += tokens
            self._reserved_cost += tokens * price[0] / 1000.0
            self._earn(max(now, self._tokens_at), tokens)
            return 0.0

    def release(self, reserved: int, used: tuple[int, int], model: str = "") -> None:
        """The request is over and used so many input and output tokens."""
        price = self.share.price_of(model)
        with self._lock:
            self._reserved -= reserved
            self._reserved_cost -= reserved * price[0] / 1000.0
            self._cost += (used[0] * price[0] + used[1] * price[1]) / 1000.0
            self._spent = self._spent[0] + used[0], self._spent[1] + used[1]
            self._answers += 1
            self.under_way -= 1
            if sum(used):
                self._earn(self._tokens_at, sum(used) - reserved)
        self._slots.release()

    def cool_down(self, seconds: float) -> None:
        """Nobody in this partition asks before so many seconds have passed."""
        with self._lock:
            self._cool_until = max(self._cool_until, time.time() + seconds)

    def _over_budget(self, tokens: int, price: Rates) -> bool:
        """Whether this request and those under way, each with an output like the average so far, would pass the budget."""
        share = self.share
        output = self._spent[1] // self._answers if self._answers else 0
        inputs = self._spent[0] + self._reserved + tokens
        outputs = self._spent[1] + output * (self.under_way + 1)
        if share.tokens is not None and inputs + outputs > share.tokens:
            return True
        to_come = tokens * price[0] + output * (self.under_way + 1) * price[1]
        return share.cost is not None and self._cost + max(0.0, self._reserved_cost) + to_come / 1000.0 > share.cost

    def _unmeasured(self) -> bool:
        """Whether a request is under way whose output is the first that there will be: what others would cost is not known before."""
        limited = self.share.tokens is not None or self.share.cost is not None
        return limited and not self._answers and self.under_way > 0

    def _earn(self, base: float, tokens: int) -> None:
        if self.share.tokens_per_minute:
            self._tokens_at = base + tokens * (_WINDOW + _JITTER) / self.share.tokens_per_minute
