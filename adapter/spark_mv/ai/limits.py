"""One partition's share of the rate limits: requests and tokens per minute, requests at once, one shared cooldown."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from spark_mv.ai.protocol import ProviderError

_WINDOW = 60.0
# Requests leave here at exact times and arrive a little later or less late: a reserve against arriving too close.
_JITTER = 0.5


@dataclass(frozen=True)
class Share:
    """What one partition may use; None is no limit. `start_after` delays its first request, in seconds since the
    epoch, so that the partitions of one job, and of the job before, do not fire at once."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrency: int
    start_after: float = 0.0


def shares(
    partitions: int,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    concurrency: int,
    start: float = 0.0,
) -> list[Share]:
    """The limits divided so that the sums never exceed the whole; at most one partition per unit of a limit."""

    def part(total: int | None, number: int) -> int | None:
        if total is None:
            return None
        return total // partitions + (1 if number < total % partitions else 0)

    out = []
    for number in range(partitions):
        rpm = part(requests_per_minute, number)
        delay = number * interval(rpm) / partitions if rpm else 0.0
        out.append(
            Share(
                rpm,
                part(tokens_per_minute, number),
                part(concurrency, number) or 1,
                start + delay if start or delay else 0.0,
            )
        )
    return out


def interval(requests_per_minute: int | None) -> float:
    """Seconds between two requests such that any 60 seconds at the server see at most that many."""
    return (_WINDOW + _JITTER) / requests_per_minute if requests_per_minute else 0.0


class Limits:
    """Thread-safe. Requests are paced evenly (no bursts), so that every window keeps the limit, not only some."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.last_slot = 0.0  # when the newest admitted request may leave
        self._gap = interval(share.requests_per_minute)
        self._next = share.start_after
        self._cool_until = 0.0
        self._tokens_at = share.start_after  # when the tokens admitted so far are earned
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(share.concurrency)

    def acquire(self, tokens: int, deadline: float | None) -> None:
        """Waits for a slot. Raises ProviderError("deadline") when none comes in time."""
        self._slots.acquire()
        try:
            while True:
                with self._lock:
                    now = time.time()
                    at = max(now, self._next, self._cool_until)
                    if self.share.tokens_per_minute:
                        at = max(at, self._tokens_at)
                    if deadline is not None and at > deadline:
                        raise ProviderError("deadline", "the time for this run's calls is over")
                    if at <= now:
                        self._next = now + self._gap
                        self.last_slot = now
                        self._spend(now, tokens)
                        return
                time.sleep(min(at - now, 1.0))
        except BaseException:
            self._slots.release()
            raise

    def release(self) -> None:
        self._slots.release()

    def cool_down(self, seconds: float) -> None:
        """Nobody in this partition asks before so many seconds have passed."""
        with self._lock:
            self._cool_until = max(self._cool_until, time.time() + seconds)

    def settle(self, reserved: int, used: int) -> None:
        """Corrects the reserve by what the provider counted."""
        if used:
            with self._lock:
                self._spend(None, used - reserved)

    def _spend(self, now: float | None, tokens: int) -> None:
        if not self.share.tokens_per_minute:
            return
        base = self._tokens_at if now is None else max(now, self._tokens_at)
        self._tokens_at = base + tokens * (_WINDOW + _JITTER) / self.share.tokens_per_minute
