"""One partition's share of a round: ask the provider, in threads, within this partition's limits. Raises nothing.

Runs on executors that have no spark_mv installed: it is shipped by value, so nothing here imports spark_mv later on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.protocol import ERROR_CLASSES, ProviderSettings, Request
from spark_mv.ai.results import COLUMN_NAMES

# Failures of the input, waiting for next_retry_at. All others are of the moment or of the configuration: next run.
OF_THE_INPUT = frozenset({"refused", "invalid_answer"})
assert set(ERROR_CLASSES) > OF_THE_INPUT

Pending = tuple[str, str, int]  # result_key, request, number of the call site


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
    type_schema: Mapping[str, Any] | None
    prompt: str | None
    embedding: bool

    def request(self, text: str) -> Request:
        """The request from its canonical JSON."""
        parsed = json.loads(text)
        return Request(
            function=self.function,
            row={name: value for entry in parsed["row"] for name, value in entry.items()},
            constant=parsed["constant"],
            answer_type=self.answer_type,
            model=self.model,
            parameters=self.parameters,
            response_schema=self.response_schema,
            type_schema=self.type_schema,
            prompt=self.prompt,
            embedding=self.embedding,
        )


@dataclass(frozen=True)
class PartitionJob:
    """The function that mapInPandas runs in each partition, with all that it needs. Times in seconds."""

    provider: Any
    provider_settings: ProviderSettings
    sites: tuple[Site, ...]
    shares: tuple[Share, ...]
    invocation_id: str
    max_attempts: int
    retry_errors_after: float
    keep_requests: bool
    prices: tuple[float, float]  # per 1,000 input and output tokens
    deadline: float | None = None

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        import pandas
        from pyspark import TaskContext

        context = TaskContext.get()
        share = self.shares[(context.partitionId() if context else 0) % len(self.shares)]
        lacks = self.missing_modules()
        asker = None if lacks else self.asker(share)
        for frame in frames:
            pending = zip(frame["result_key"], frame["request"], (int(s) for s in frame["site"]), strict=False)
            found = _unasked(pending, lacks) if asker is None else self.answer_all(pending, asker)
            rows = [self.row(*one) for one in found]
            if rows:
                out = pandas.DataFrame(rows, columns=list(COLUMN_NAMES))
                for name in ("attempts", "input_tokens", "output_tokens"):
                    out[name] = out[name].astype("int64")
                yield out

    def missing_modules(self) -> list[str]:
        """What this Python lacks of what asking takes."""
        return [name for name in ("tenacity", *getattr(self.provider, "requires", ())) if not _installed(name)]

    def asker(self, share: Share) -> Asker:
        """Asks this job's provider within the share."""
        provider = self.provider(self.provider_settings)
        return Asker(provider, Limits(share), max_attempts=self.max_attempts, deadline=self.deadline)

    def answer_all(self, pending: Iterable[Pending], asker: Asker) -> Iterator[tuple[str, int, str, Outcome]]:
        """(result_key, site number, request, outcome) of every pending request, in the order of completion.

        Batches hold requests of one site only; no more are under way than the share's concurrency allows.
        """
        most = asker.limits.share.concurrency
        with ThreadPoolExecutor(max_workers=most) as pool:
            running: set[Future[list[tuple[str, int, str, Outcome]]]] = set()
            for batch in self._batches(pending, asker):
                running.add(pool.submit(self._ask, batch, asker))
                while len(running) >= most:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield from future.result()
            for future in running:
                yield from future.result()

    def _batches(self, pending: Iterable[Pending], asker: Asker) -> Iterator[list[Pending]]:
        waiting: dict[int, list[Pending]] = {}
        sizes: dict[int, int] = {}
        for one in pending:
            number = one[2]
            if number not in sizes:
                sizes[number] = asker.batch_size(self.sites[number].request(one[1]))
            waiting.setdefault(number, []).append(one)
            if len(waiting[number]) >= sizes[number]:
                yield waiting.pop(number)
        yield from waiting.values()

    def _ask(self, batch: list[Pending], asker: Asker) -> list[tuple[str, int, str, Outcome]]:
        outcomes = asker.ask([self.sites[number].request(text) for _, text, number in batch])
        return [(key, number, text, outcome) for (key, text, number), outcome in zip(batch, outcomes, strict=False)]

    def row(self, key: str, number: int, request: str, outcome: Outcome) -> tuple[Any, ...]:
        """A row of the result table, in the order of its columns."""
        site = self.sites[number]
        retry = None
        if outcome.error_class:
            pause = self.retry_errors_after if outcome.error_class in OF_THE_INPUT else 0.0
            retry = datetime.fromtimestamp(outcome.called_at + pause, timezone.utc)
        cost = (outcome.input_tokens * self.prices[0] + outcome.output_tokens * self.prices[1]) / 1000.0
        return (
            key,
            site.function,
            hashlib.sha256(request.encode()).hexdigest(),
            site.model,
            site.model_version,
            site.identity_hash,
            "error" if outcome.error_class else "ok",
            outcome.value,
            outcome.error_class,
            outcome.error,
            outcome.attempts,
            outcome.input_tokens,
            outcome.output_tokens,
            cost,
            datetime.fromtimestamp(outcome.called_at, timezone.utc),
            retry,
            self.invocation_id,
            request if self.keep_requests else None,
        )


def _unasked(pending: Iterable[Pending], lacks: list[str]) -> Iterator[tuple[str, int, str, Outcome]]:
    said = f"the workers' Python ({sys.executable}, {sys.version.split()[0]}) lacks {', '.join(lacks)}"
    for key, request, number in pending:
        yield key, number, request, Outcome(None, "worker", said, 0, 0, 0, time.time())


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
