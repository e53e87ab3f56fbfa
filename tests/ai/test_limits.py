"""Requests and tokens a minute over any sliding window, on a clock of the test's own."""

from __future__ import annotations

import pytest

from spark_mv.ai import limits
from spark_mv.ai.limits import Limits, Share, part
from spark_mv.ai.protocol import ProviderError


class Clock:
    """Stands for the module `time`: sleeping is what moves it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(limits, "time", clock)
    return clock


def most_in_a_minute(events: list[tuple[float, int]]) -> int:
    """The largest sum in any closed window of 60 seconds."""
    return max(sum(n for at, n in events if begin <= at <= begin + 60) for begin, _ in events)


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("per_minute", [7, 90, 600])
def test_requests_of_all_partitions_together(per_minute: int, partitions: int, clock: Clock) -> None:
    events = []
    for number in range(partitions):  # one after the other on this clock, at the same time on their executors
        clock.now = 1_000_000.0
        one = Limits(Share(requests_per_minute=part(per_minute, number, partitions)))
        for _ in range(3 * per_minute // partitions):
            one.acquire(1, None)
            events.append((clock.now, 1))
            one.release(1, (1, 1))
    assert most_in_a_minute(events) <= per_minute


@pytest.mark.parametrize("reserved", [50, 10, 90])
def test_tokens_as_the_provider_counted_them(reserved: int, clock: Clock) -> None:
    """The estimate may be wrong in both directions; what was used counts for the requests that follow."""
    one, events = Limits(Share(tokens_per_minute=600)), []
    for _ in range(60):
        one.acquire(reserved, None)
        events.append((clock.now, 50))
        one.release(reserved, (30, 20))
    assert most_in_a_minute(events) <= 600
    assert clock.now - 1_000_000.0 < 60 * 50 / 600 * 60 * 1.1  # and no slower than it must be


def test_one_cooldown_for_all_threads_of_a_partition(clock: Clock) -> None:
    one = Limits(Share(concurrency=3))
    one.acquire(1, None)
    one.cool_down(30)
    begun = clock.now
    one.acquire(1, None)
    assert clock.now - begun >= 30
    one.cool_down(3_600)
    with pytest.raises(ProviderError, match="asks for a pause of 3600 s"):
        one.acquire(1, None)


def test_a_budget_waits_for_the_first_output(clock: Clock) -> None:
    """What one request costs is not known before its output is: eight at once would spend eight times of what is left."""
    one = Limits(Share(concurrency=8, cost=0.07, input_price=0.001, output_price=0.01))
    one.acquire(1, None)
    answers = iter([True])

    def sleep(seconds: float) -> None:  # the first answer comes while others wait for it
        clock.now += seconds
        if next(answers, False):
            one.release(1, (0, 2000))

    clock.sleep = sleep  # type: ignore[method-assign]
    for _ in range(2):
        one.acquire(1, None)
    assert one.under_way == 2  # 0.02 each: one is spent, and those under way count with what it took
    with pytest.raises(ProviderError, match="budget"):
        one.acquire(1, None)
