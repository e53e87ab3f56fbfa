"""The batch job: the missing answers of one round, asked on the executors, kept chunk by chunk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from spark_mv.ai.asking import Asker
from spark_mv.ai.limits import Limits, Share, interval, shares
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.providers.registry import provider_class
from spark_mv.ai.results import COLUMN_NAMES, DDL
from spark_mv.ai.protocol import ERROR_CLASSES
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.worker import Site, answer_all
from spark_mv.query.ai_calls import AiCall

_SLICES = 1 << 20  # the key space is cut into so many slices; a chunk is a range of them


@dataclass(frozen=True)
class Progress:
    """State of a running job; `rate` in answers per second, `eta_seconds` None before the first chunk is done."""

    done: int
    total: int
    errors: int
    cost: float
    rate: float
    eta_seconds: float | None

    def __str__(self) -> str:
        eta = "" if self.eta_seconds is None else f", {self.eta_seconds:.0f} s left"
        spent = f", {self.cost:.4f} spent" if self.cost else ""
        return f"AI answers {self.done:,} / {self.total:,} ({self.rate:.1f}/s, {self.errors:,} errors{eta}{spent})"


def run_ai_round(
    spark: Any,
    calls: Sequence[AiCall],
    *,
    settings: AiSettings,
    results_table: str,
    invocation_id: str,
    as_of: datetime | None = None,
    max_calls: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AiOutcome:
    """Asks for every answer of the round that the result table lacks, and appends what comes.

    Distinct requests → anti-join with the result table → `repartition(P)` → mapInPandas → append, a chunk at a time:
    what a chunk has paid is kept when a later one dies. `max_calls` (or the settings' budget) limits the calls;
    inputs that still show an older model's answer wait longest, oldest answer first.
    Raises AiConfigError only through the settings; provider failures are rows of the result table.
    """
    if not calls:
        return AiOutcome()
    with endpoint_lock(settings):
        # A checkpoint, not a cache: appending to the result table would make Spark compute a cached frame anew.
        frame = spark.sql(pending_sql(calls, results_table, settings, _timestamp(time.time()))).localCheckpoint()
        counts = {
            row["state"]: int(row["number"])
            for row in frame.groupBy("state").agg({"*": "count"}).toDF("state", "number").collect()
        }
        missing = counts.get("missing", 0)
        todo = frame.where("state = 'missing'")
        budget = _least(max_calls, settings.max_ai_calls)
        take = missing if budget is None else min(missing, budget)
        if take < missing:
            todo = todo.orderBy("old_at", "result_key").limit(take)  # NULLs first: no answer at all comes first
        outcome = AiOutcome(
            requested=sum(counts.values()),
            reused=counts.get("reused", 0),
            blocked=counts.get("blocked", 0),
            left_for_later=missing - take,
        )
        if not take:
            return outcome
        return outcome + _ask_in_chunks(spark, todo, take, calls, settings, results_table, invocation_id, on_progress)


def _ask_in_chunks(
    spark: Any,
    todo: Any,
    total: int,
    calls: Sequence[AiCall],
    settings: AiSettings,
    results_table: str,
    invocation_id: str,
    on_progress: Callable[[Progress], None] | None,
) -> AiOutcome:
    _ship_by_value(settings)
    job = PartitionJob.build(calls, settings, invocation_id, partitions=_partitions(spark, settings, total))
    begun = time.time()
    deadline = begun + settings.deadline_seconds if settings.deadline_seconds else None
    todo = todo.selectExpr("result_key", "request", "site", f"pmod(xxhash64(result_key), {_SLICES}) AS slice")
    if total > 16 * job.concurrency:
        todo = todo.localCheckpoint()  # one look at the limit and the hash for all chunks
    done, at = AiOutcome(), 0
    width = max(1, int(_SLICES * min(1.0, 16 * job.concurrency / total)))
    while at < _SLICES:
        end = min(_SLICES, at + width)
        chunk = todo.where(f"slice >= {at} AND slice < {end}")
        started = time.time()
        done += _ask_chunk(chunk, job.starting(settings, deadline), results_table)
        at = end
        if on_progress:
            rate = done.calls / max(time.time() - begun, 1e-9)
            eta = (total - done.calls) / rate if done.calls else None
            on_progress(Progress(done.calls, total, done.errors, done.cost, rate, eta))
        # towards chunks of chunk_seconds, at most four times the last one
        seconds = max(time.time() - started, 0.05)
        width = max(1, int(width * min(4.0, settings.chunk_seconds / seconds)))
    return done


def _ship_by_value(settings: AiSettings) -> None:
    """Workers need no installed spark_mv: pyspark's pickler sends the code itself (a user's provider, too)."""
    import importlib

    from pyspark import cloudpickle

    names = ["spark_mv"]
    if "." in settings.provider:
        names.append(settings.provider.split(".")[0])
    for name in names:
        cloudpickle.register_pickle_by_value(importlib.import_module(name))


def _ask_chunk(chunk: Any, job: PartitionJob, results_table: str) -> AiOutcome:
    """Asks and appends in one Spark job; the counts come from the same pass, because a second would ask again."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    bad = f.col("status") == "error"
    answers = (
        chunk.repartition(len(job.shares))
        .mapInPandas(job, schema=DDL)
        .observe(
            seen,
            f.count("*").alias("calls"),
            f.count_if(bad).alias("errors"),
            f.count_if(~bad & f.col("value").isNull()).alias("nulls"),
            f.sum("input_tokens").alias("input_tokens"),
            f.sum("output_tokens").alias("output_tokens"),
            f.sum("cost").alias("cost"),
            *(f.count_if(f.col("error_class") == kind).alias(kind) for kind in ERROR_CLASSES),
        )
    )
    answers.writeTo(results_table).append()
    found = seen.get
    calls, errors = int(found["calls"] or 0), int(found["errors"] or 0)
    return AiOutcome(
        calls=calls,
        ok=calls - errors,
        null_answers=int(found["nulls"] or 0),
        errors=errors,
        input_tokens=int(found["input_tokens"] or 0),
        output_tokens=int(found["output_tokens"] or 0),
        cost=float(found["cost"] or 0.0),
        error_classes={kind: int(found[kind]) for kind in ERROR_CLASSES if found[kind]},
    )


@dataclass(frozen=True)
class PartitionJob:
    """The function that mapInPandas runs in each partition, with all that it needs. Shipped by value."""

    provider: Any
    settings: AiSettings
    sites: tuple[Site, ...]
    shares: tuple[Share, ...]
    invocation_id: str
    deadline: float | None = None

    @property
    def concurrency(self) -> int:
        return sum(s.concurrency for s in self.shares)

    def starting(self, settings: AiSettings, deadline: float | None) -> PartitionJob:
        """The same job for the next chunk: its first requests wait until the pace of the last ones allows them."""
        limits = (settings.requests_per_minute, settings.tokens_per_minute)
        parts = shares(len(self.shares), *limits, settings.concurrency, start=time.time() + interval(limits[0]))
        return replace(self, shares=tuple(parts), deadline=deadline)

    @classmethod
    def build(cls, calls: Sequence[AiCall], settings: AiSettings, invocation_id: str, partitions: int) -> PartitionJob:
        sites = tuple(
            Site(
                c.function,
                c.answer_type,
                c.model,
                c.model_version,
                c.identity_hash,
                dict(c.parameters),
                c.response_schema,
                c.prompt,
                c.embedding,
            )
            for c in calls
        )
        parts = shares(partitions, settings.requests_per_minute, settings.tokens_per_minute, settings.concurrency)
        return cls(provider_class(settings.provider), settings, sites, tuple(parts), invocation_id)

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        import pandas
        from pyspark import TaskContext

        context = TaskContext.get()
        share = self.shares[(context.partitionId() if context else 0) % len(self.shares)]
        asker = Asker(
            self.provider(self.settings), Limits(share), max_attempts=self.settings.max_attempts, deadline=self.deadline
        )
        for frame in frames:
            pending = zip(frame["result_key"], frame["request"], (int(s) for s in frame["site"]))
            rows = [self._row(*found) for found in answer_all(pending, self.sites, asker, share.concurrency)]
            if rows:
                yield pandas.DataFrame(rows, columns=list(COLUMN_NAMES))

    def _row(self, key: str, number: int, request: str, outcome: Any) -> tuple[Any, ...]:
        import hashlib

        site, settings = self.sites[number], self.settings
        called = datetime.fromtimestamp(outcome.called_at, timezone.utc)
        retry = None
        if outcome.error_class:
            later = 0.0 if outcome.error_class in _NEXT_RUN else settings.retry_errors_after_hours * 3600
            retry = datetime.fromtimestamp(outcome.called_at + later, timezone.utc)
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
            settings.cost(outcome.input_tokens, outcome.output_tokens),
            called,
            retry,
            self.invocation_id,
            request if settings.keep_requests else None,
        )


# Failures of the moment or of the configuration: asked again by the next run. All others are the input's.
_NEXT_RUN = frozenset(ERROR_CLASSES) - {"refused", "invalid_answer"}
_LOCKS: dict[tuple[str, str | None], threading.Lock] = {}
_LOCKS_GUARD = threading.Lock()


def endpoint_lock(settings: AiSettings) -> threading.Lock:
    """One round at a time per endpoint in this process: dbt's threads share its limits, and never pay a text twice."""
    with _LOCKS_GUARD:
        return _LOCKS.setdefault((settings.provider, settings.base_url), threading.Lock())


def _partitions(spark: Any, settings: AiSettings, total: int) -> int:
    """As many as there are cores to run them, requests to fill them, and units of each limit to share."""
    try:
        cores = int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no SparkContext
        cores = int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or 2)
    most = [cores, settings.concurrency, total]
    most += [n for n in (settings.requests_per_minute, settings.tokens_per_minute) if n]
    return max(1, min(most))


def _least(*limits: int | None) -> int | None:
    return min((n for n in limits if n is not None), default=None)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f") + " UTC"


def count_ai_round(
    spark: Any, calls: Sequence[AiCall], *, settings: AiSettings, results_table: str, as_of: datetime | None = None
) -> AiOutcome:
    """What run_ai_round would ask, without asking: `calls` to make, tokens and cost estimated (four bytes a token for
    the input; nothing is known of the output but that ai_similarity and embeddings have none to pay)."""
    if not calls:
        return AiOutcome()
    sql = pending_sql(calls, results_table, settings, _timestamp(time.time()))
    rows = spark.sql(
        f"SELECT state, count(*) AS number, sum(ceil(octet_length(request) / 4)) AS tokens FROM ({sql}) AS __mv_p GROUP BY state"
    ).collect()
    counts = {row["state"]: int(row["number"]) for row in rows}
    tokens = sum(int(row["tokens"] or 0) for row in rows if row["state"] == "missing")
    missing = counts.get("missing", 0)
    calls_now = missing if settings.max_ai_calls is None else min(missing, settings.max_ai_calls)
    tokens = tokens * calls_now // missing if missing else 0
    return AiOutcome(
        requested=sum(counts.values()),
        reused=counts.get("reused", 0),
        blocked=counts.get("blocked", 0),
        calls=calls_now,
        left_for_later=missing - calls_now,
        input_tokens=tokens,
        cost=settings.cost(tokens, 0),
    )
