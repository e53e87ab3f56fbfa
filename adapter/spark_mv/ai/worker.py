"""One partition's share of a round: ask the provider, in threads, within this partition's limits. Raises nothing.

Runs on executors that have no spark_mv installed: it is shipped by value, so nothing here imports spark_mv later on.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.in_parts import ask_in_parts, parts_of
from spark_mv.ai.in_turn import ask_in_turn
from spark_mv.ai.limits import Limits, Share
from spark_mv.ai.prices import Rates
from spark_mv.ai.protocol import ERROR_CLASSES, ProviderSettings, Request
from spark_mv.ai.result_row import result_row
from spark_mv.ai.results import COLUMN_NAMES
from spark_mv.ai.retry import COUNTED_CLASSES, FINAL_CLASSES, Retries
from spark_mv.ai.typed import Digits, Kind
from spark_mv.query.ai_calls.cascade import Steps

assert set(ERROR_CLASSES) > FINAL_CLASSES | COUNTED_CLASSES

ASKED_COLUMNS = ("result_key", "request", "site", "failures", "arguments_hash")
"""Of what is handed to who asks, and behind them, under dedupe, near_key."""
Pending = tuple[str, str, int, int]  # result_key, request, number of the call site, failures so far
Asked = tuple[str, int, str, int, Outcome]  # result_key, number of the call site, request, failures before, outcome


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
    constant: Mapping[str, Any] = field(default_factory=dict)
    cascade: Steps = ()
    prompts: str = ""
    kind: Kind | None = None

    def reading(self) -> dict[str, Any]:
        """What it takes to read a reply, without anything of a row; it can be said as JSON."""
        names = ("answer_type", "response_schema", "type_schema", "kind", "prompt", "embedding", "constant", "prompts")
        return {name: getattr(self, name) for name in names}

    def request(self, text: str) -> Request:
        """The request from its canonical JSON."""
        parsed = json.loads(text, parse_float=Digits)
        return Request(
            function=self.function,
            row={name: value for entry in parsed["row"] for name, value in entry.items()},
            constant=parsed["constant"],
            answer_type=self.answer_type,
            model=self.model,
            parameters=self.parameters,
            response_schema=self.response_schema,
            type_schema=self.type_schema,
            kind=self.kind,
            prompt=self.prompt,
            embedding=self.embedding,
        )


@dataclass(frozen=True)
class PartitionJob:
    """The function that mapInPandas runs in each partition, with all that it needs. Times in seconds. What a partition cannot begin
    within `chunk_seconds` of its own start it gives back, class `chunk`."""

    provider: Any
    provider_settings: ProviderSettings
    sites: tuple[Site, ...]
    shares: tuple[Share, ...]
    invocation_id: str
    max_attempts: int
    retries: Retries
    keep_requests: bool
    prices: Mapping[str, Rates]  # by model
    deadline: float | None = None
    project: str = ""
    split_bytes: int | None = None
    chunk_seconds: float | None = None

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        import pandas
        from pyspark import TaskContext

        context = TaskContext.get()
        share = self.shares[(context.partitionId() if context else 0) % len(self.shares)]
        lacks = self.missing_modules()
        asker = None if lacks else self.asker(share)
        for frame in frames:
            failures = frame["failures"] if "failures" in frame else [0] * len(frame)
            numbers = ((int(n) for n in column) for column in (frame["site"], failures))
            pending = zip(frame["result_key"], frame["request"], *numbers, strict=False)
            found = _unasked(pending, lacks) if asker is None else self.answer_all(pending, asker)
            near = frame["near_key"] if "near_key" in frame else repeat(None)
            beside = dict(zip(frame["result_key"], zip(frame["arguments_hash"], near, strict=False), strict=False))
            rows = [self.row(*one, *beside[one[0]]) for one in found]
            if rows:
                out = pandas.DataFrame(rows, columns=list(COLUMN_NAMES))
                for name in ("attempts", "input_tokens", "output_tokens", "cached_tokens"):
                    out[name] = out[name].astype("int64")
                yield out

    def missing_modules(self) -> list[str]:
        """What this Python lacks of what asking takes."""
        return [name for name in ("tenacity", *getattr(self.provider, "requires", ())) if not _installed(name)]

    def asker(self, share: Share) -> Asker:
        """Asks this job's provider within the share."""
        provider = self.provider(self.provider_settings)
        clean = self.provider_settings.cleaned
        begin_by = None if self.chunk_seconds is None else max(time.time(), share.start_after) + self.chunk_seconds
        return Asker(
            provider,
            Limits(share),
            max_attempts=self.max_attempts,
            deadline=self.deadline,
            begin_by=begin_by,
            clean=clean,
        )

    def answer_all(self, pending: Iterable[Pending], asker: Asker) -> Iterator[Asked]:
        """What became of every pending request, in the order of completion.

        Batches hold requests of one site only; no more are under way than the share's concurrency allows, and as many wait, so that no
        thread waits for this one.
        """
        most = asker.limits.share.concurrency
        with ThreadPoolExecutor(max_workers=most) as pool:
            running: set[Future[list[Asked]]] = set()
            for batch in self._batches(pending, asker):
                running.add(pool.submit(self._ask, batch, asker))
                while len(running) >= 2 * most:
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
                site = self.sites[number]  # how sure a model is, is said of one answer
                sizes[number] = 1 if site.cascade else asker.batch_size(site.request(one[1]))
            waiting.setdefault(number, []).append(one)
            if len(waiting[number]) >= sizes[number]:
                yield waiting.pop(number)
        yield from waiting.values()

    def _ask(self, batch: list[Pending], asker: Asker) -> list[Asked]:
        outcomes = self._outcomes(batch, asker)
        return [
            (key, number, text, failures, outcome)
            for (key, text, number, failures), outcome in zip(batch, outcomes, strict=False)
        ]

    def _outcomes(self, batch: list[Pending], asker: Asker) -> list[Outcome]:
        """Those of inputs of one site, within the budget of calls."""
        steps = self.sites[batch[0][2]].cascade
        requests = [self.sites[number].request(text) for _, text, number, _ in batch]
        most, made = len(steps) or len(batch), 0
        if not asker.limits.begin(most):
            if len(batch) == 1:
                return [Outcome(None, "budget", "the budget of this run is used up", 0, 0, 0, time.time())]
            middle = len(batch) // 2
            return self._outcomes(batch[:middle], asker) + self._outcomes(batch[middle:], asker)
        try:
            found = self._asked(requests, batch[0][2], asker)
            made = sum(len(o.steps) or int(o.attempts > 0) for o in found)
            return found
        finally:
            asker.limits.end(most, made)

    def _asked(self, requests: list[Request], number: int, asker: Asker) -> list[Outcome]:
        site, most = self.sites[number], self.split_bytes
        if site.cascade:
            return [ask_in_turn(asker, one, site.cascade, self.prices) for one in requests]
        if most is None or all(len(parts_of(one, most)) == 1 for one in requests):
            return asker.ask(requests)
        price = self.prices.get(site.model, (0.0, 0.0))
        return [ask_in_parts(asker, one, site.model_version, most, price) for one in requests]

    def row(
        self,
        key: str,
        number: int,
        request: str,
        failures: int,
        outcome: Outcome,
        arguments_hash: str,
        near_key: str | None = None,
    ) -> tuple[Any, ...]:
        """A row of the result table, in the order of its columns."""
        return result_row(
            self.sites[number],
            key,
            arguments_hash,
            failures,
            outcome,
            retries=self.retries,
            prices=self.prices.get(self.sites[number].model, (0.0, 0.0)),
            invocation_id=self.invocation_id,
            project=self.project,
            request=request if self.keep_requests else None,
            near_key=near_key,
        )


def _unasked(pending: Iterable[Pending], lacks: list[str]) -> Iterator[Asked]:
    said = f"the workers' Python ({sys.executable}, {sys.version.split()[0]}) lacks {', '.join(lacks)}"
    for key, request, number, failures in pending:
        yield key, number, request, failures, Outcome(None, "worker", said, 0, 0, 0, time.time())


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
