"""One partition's share of a round: ask the provider, in threads, within this partition's limits. Raises nothing.

Runs on executors without an installed spark_mv (it is shipped by value), so it imports no module of its own lazily.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.protocol import Request


@dataclass(frozen=True)
class Site:
    """What a partition must know of a call site."""

    function: str
    answer_type: str
    model: str
    model_version: str
    identity_hash: str
    parameters: Mapping[str, Any]
    response_schema: str | None
    prompt: str | None
    embedding: bool


def build_request(site: Site, text: str) -> Request:
    """The request from its canonical JSON."""
    parsed = json.loads(text)
    row = {name: value for entry in parsed["row"] for name, value in entry.items()}
    return Request(
        function=site.function,
        row=row,
        constant=parsed["constant"],
        answer_type=site.answer_type,
        model=site.model,
        parameters=site.parameters,
        response_schema=site.response_schema,
        prompt=site.prompt,
        embedding=site.embedding,
    )


def answer_all(
    pending: Iterable[tuple[str, str, int]], sites: Sequence[Site], asker: Asker, concurrency: int
) -> Iterator[tuple[str, int, str, Outcome]]:
    """(result_key, site number, request, outcome) of every pending request, in the order of completion.

    Batches hold requests of one site only; never more than `concurrency` are under way.
    """
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        running: set[Future[list[tuple[str, int, str, Outcome]]]] = set()
        for batch in _batches(pending, sites, asker):
            running.add(pool.submit(_ask, batch, sites, asker))
            while len(running) >= concurrency:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
        for future in running:
            yield from future.result()


def _batches(
    pending: Iterable[tuple[str, str, int]], sites: Sequence[Site], asker: Asker
) -> Iterator[list[tuple[str, int, str]]]:
    waiting: dict[int, list[tuple[str, int, str]]] = {}
    for key, text, number in pending:
        batch = waiting.setdefault(number, [])
        batch.append((key, number, text))
        if len(batch) >= asker.batch_size(build_request(sites[number], text)):
            yield waiting.pop(number)
    yield from waiting.values()


def _ask(batch: list[tuple[str, int, str]], sites: Sequence[Site], asker: Asker) -> list[tuple[str, int, str, Outcome]]:
    requests = [build_request(sites[number], text) for _, number, text in batch]
    return [(key, number, text, outcome) for (key, number, text), outcome in zip(batch, asker.ask(requests))]


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


Clock = Callable[[], float]
