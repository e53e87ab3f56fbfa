"""What batches and packed requests are paid for under faults, counted by endpoints on loopback.

    python -m benchmarks.ai_faults

For each kind of fault: how many cases, how many inputs they had in all, how many of these the endpoint answered more than once (was paid
twice), and how many had no answer at the end (lost). Without Spark: the machine of batches over rows in memory, and the layer that asks.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "adapter"), str(ROOT)]

from integration_tests.ai.batch_endpoint import BatchEndpoint as Server  # noqa: E402
from integration_tests.ai.batch_endpoint import BatchFaults  # noqa: E402
from integration_tests.ai.endpoint import Behaviour, Endpoint  # noqa: E402
from tests.ai.test_batches import STEPS, Clock, Dying, Killed, Warehouse, World  # noqa: E402

from spark_mv.ai.asking import Asker  # noqa: E402
from spark_mv.ai.batches.remote import BatchEndpoint  # noqa: E402
from spark_mv.ai.batches.state import LEFT_OUT_FOR, LOST_AFTER  # noqa: E402
from spark_mv.ai.limits import Limits, Share  # noqa: E402
from spark_mv.ai.protocol import ProviderSettings, Request  # noqa: E402
from spark_mv.ai.providers.openai import OpenAIProvider  # noqa: E402
from spark_mv.ai.secret import Secret  # noqa: E402


@dataclass
class Counted:
    """Of one kind of fault."""

    cases: int = 0
    inputs: int = 0
    twice: int = 0
    lost: int = 0

    def add(self, inputs: int, paid: dict[str, int], answered: int) -> None:
        self.cases += 1
        self.inputs += inputs
        self.twice += sum(number > 1 for number in paid.values())
        self.lost += inputs - answered


def worlds(server: Server, remote: BatchEndpoint) -> Callable[..., World]:
    """Makes a world of so many missing inputs, whose endpoint has these faults."""

    def new(inputs: int = 12, **faults: Any) -> World:
        server.forget()
        server.faults = BatchFaults(**faults)
        clock = Clock()
        texts = {hashlib.sha256(str(n).encode()).hexdigest(): f"text {n}" for n in range(inputs)}
        return World(server, Warehouse(texts, clock), clock, remote)

    return new


def ended(world: World, counted: Counted) -> None:
    """Goes on without faults until everything that can be answered is."""
    world.server.faults = BatchFaults()
    for _ in range(4):
        world.one_run()
        world.clock.ahead += LOST_AFTER + LEFT_OUT_FOR + 60
    counted.add(len(world.store.texts), dict(world.server.paid), len(set(world.store.answered())))


def batches(new: Callable[..., World]) -> Iterator[tuple[str, Counted]]:
    """Every kind of fault of a batch."""
    for after in (False, True):
        counted = Counted()
        for n in range(1, STEPS):
            world = new()
            with contextlib.suppress(Killed):
                world.one_run(Dying(n, after).around)
            ended(world, counted)
        yield f"batch: the process dies {'behind' if after else 'before'} a step, each of {STEPS - 1}", counted
    counted = Counted()
    for first in range(1, STEPS, 3):
        for second in range(1, STEPS, 3):
            world = new()
            for n in (first, second):
                with contextlib.suppress(Killed):
                    world.one_run(Dying(n, True).around)
            ended(world, counted)
    yield "batch: two processes die, one after the other", counted
    kinds: tuple[tuple[str, list[dict[str, Any]]], ...] = (
        ("the reply to its creation, or to the upload, is lost", [{"lose_reply_of": "batches", "unlisted": n} for n in range(6)] + [{"lose_reply_of": "files"}]),
        ("it fails, expires or is cancelled, half answered", [{"status": s, "answered": 0.5} for s in ("failed", "expired", "cancelled")]),
        ("lines are missing, doubled or errors", [{"missing": 0.2, "doubled": 0.2, "failed_lines": 0.15}]),
        ("answers are counted and handed over later or never", [{"cut_short": True}]),
    )  # fmt: skip
    for what, cases in kinds:
        counted = Counted()
        for faults in cases:
            world = new(80 if "missing" in faults else 12, **faults)
            world.one_run()
            ended(world, counted)
        yield f"batch: {what}", counted


def packed() -> Iterator[tuple[str, Counted, int]]:
    """Every kind of fault of a request about ten inputs, and how many replies were lost."""
    texts = [f"text {n}" for n in range(600)]
    for what, faults in (
        ("none", {}),
        ("an id is missing or doubled", {"pack_missing": 0.15, "pack_doubled": 0.15}),
        ("429, 500, broken JSON", {"rate_limit": 0.2, "server_error": 0.2, "malformed": 0.2, "retry_after": 0.01}),
        ("the reply does not arrive", {"lost": 0.3}),
    ):
        counted = Counted()
        with Endpoint(Behaviour(**faults)) as endpoint:
            provider = OpenAIProvider(ProviderSettings(endpoint.url, Secret("sk-test"), 5.0, rows_per_request=10))
            asker = Asker(provider, Limits(Share(concurrency=1)), max_attempts=4)
            answered = 0
            for at in range(0, len(texts), 10):
                asked = [
                    Request("ai_classify", {"content": t}, {"labels": ["good", "bad"]}, model="m")
                    for t in texts[at : at + 10]
                ]
                answered += sum(one.error_class is None for one in asker.ask(asked))
            counted.add(len(texts), dict(endpoint.seen.answered), answered)
            lost = sum(number - 1 for number in endpoint.seen.asked.values() if number > 1) if "lost" in faults else 0
        yield f"ten in a request: {what}", counted, lost


def main() -> None:
    """Prints the table of docs/ai.md."""
    print("| fault | cases | inputs | paid twice | lost |\n|---|---|---|---|---|")
    with Server() as server:
        new = worlds(server, BatchEndpoint(ProviderSettings(server.url, Secret("sk-test"), 5.0)))
        for what, found in batches(new):
            print(f"| {what} | {found.cases:,} | {found.inputs:,} | {found.twice:,} | {found.lost:,} |", flush=True)
    for what, found, lost in packed():
        bound = f" ({lost:,} replies × 10)" if lost else ""
        print(f"| {what} | {found.cases:,} | {found.inputs:,} | {found.twice:,}{bound} | {found.lost:,} |", flush=True)


if __name__ == "__main__":
    main()
