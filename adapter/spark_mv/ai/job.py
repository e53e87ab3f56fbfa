"""The batch job: the missing answers of one round, asked on the executors (or here, where they are few), kept chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from spark_mv.ai import native
from spark_mv.ai.cascade import CUT_SHORT, REQUESTS
from spark_mv.ai.engine_python import WorkersCannot, refuse_repeats, why_workers_cannot
from spark_mv.ai.here import Row, ask_page
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import COUNTS, STATES, counts_sql, pending_sql
from spark_mv.ai.protocol import ERROR_CLASSES
from spark_mv.ai.results import COLUMN_NAMES, DDL, timestamp, used_columns
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.ai.shared import share_near
from spark_mv.ai.work import build_job, endpoint_lock, note_use, partitions, ship_by_value, with_shares
from spark_mv.ai.worker import ASKED_COLUMNS, PartitionJob
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import NEAR, SUBMITTED
from spark_mv.query.syntax.source_text import string_literal

_SLICES = 1 << 20  # the pending requests are numbered 0 … _SLICES - 1; a chunk is a range of these numbers
_FIRST_CHUNK = 64  # requests per unit of concurrency in the first chunk: what it has no time for is left to the next
_FEW, _FEW_BYTES = 500, 16 << 20  # requests, and bytes of them, that are sooner asked than handed to tasks

_BECAME = f"""CASE WHEN error_class = 'chunk' THEN 'late' WHEN attempts = 0 OR {CUT_SHORT} THEN 'left'
  WHEN error_class IS NOT NULL THEN 'failed' ELSE 'answered' END AS became"""
"""SQL of what became of a request: the chunk had no time for it, it is left for a later run, it failed, or it has an answer."""
_COUNTED = (
    "count_if(became IN ('answered', 'failed')) AS calls",
    "count_if(became = 'failed') AS errors",
    "count_if(became = 'answered' AND value IS NULL) AS nulls",
    "count_if(became = 'left') AS left",
    "count_if(became = 'late') AS late",
    "max(if(became = 'late', try_cast(error AS DOUBLE), NULL)) AS next",
    "max(if(became = 'left', error, NULL)) AS reason",
    "max(if(became = 'left' AND error_class = 'worker', error, NULL)) AS lacks",
    f"sum(if(attempts > 0, {REQUESTS}, 0)) AS requests",
    "sum(attempts) AS attempts",
    "max(if(became = 'failed', concat_ws(': ', error_class, error), NULL)) AS example",
    "count_if(became = 'failed' AND next_retry_at IS NULL) AS gave_up",
    "min(if(became = 'failed', unix_micros(next_retry_at), NULL)) AS retry_at",
    *(f"sum({name}) AS {name}" for name in ("input_tokens", "output_tokens", "cost")),
    *(f"count_if(became = 'failed' AND error_class = '{kind}') AS {kind}" for kind in ERROR_CLASSES),
)
"""What is counted of a chunk's rows. Texts: an expression made of Columns is several calls of the JVM for each of its parts."""


@dataclass(frozen=True)
class Progress:
    """State of a running job; `rate` in answers per second, `eta_seconds` None before the first answer."""

    done: int
    total: int
    errors: int
    cost: float
    rate: float
    eta_seconds: float | None

    @classmethod
    def of(cls, done: AiOutcome, total: int, begun: float) -> Progress:
        """Of a job that began then, in seconds since the epoch."""
        rate = done.calls / max(time.time() - begun, 1e-9)
        left = (total - done.calls) / rate if rate else None
        return cls(done.calls, total, done.errors, done.cost, rate, left)

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
    project: str = "",
    as_of: datetime | None = None,
    max_calls: int | None = None,
    spent: AiOutcome | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AiOutcome:
    """Asks for every answer of the round that the result table lacks, and appends what comes.

    Distinct requests → anti-join with the result table → `repartition(P)` → mapInPandas → append, a chunk at a time:
    what a chunk has paid is kept when a later one dies. Budgets of the settings are those of a run: `spent` is what
    its earlier rounds have used. `max_calls` limits this round alone. Under a limit, inputs without any answer come
    first, then those that show an older model's answer, oldest first. `as_of` has no part in it: retry times are
    wall-clock times.

    Where Spark runs in this process alone (`local[n]`), a few requests are asked here: that needs no task and no worker.

    Failures of the provider are rows of the result table. Raises AiConfigError when there is no provider, and
    WorkersCannot when Python on the executors is not up to it: then the driver can (spark_mv.ai.driver_job).
    """
    if not calls:
        return AiOutcome()
    if not settings.configured:
        raise AiConfigError("NO_PROVIDER", no_provider(calls))
    spent = spent or AiOutcome()
    with endpoint_lock(settings):
        alone = _alone(spark)
        pending = pending_sql(calls, results_table, settings, timestamp(time.time()), project, invocation_id)
        frame, found = _checkpoint(spark.sql(pending), alone)
        counts = {state: int(found[state]) for state in STATES}
        if found["unclaimed"]:
            claims = frame.where("unclaimed").selectExpr(*used_columns(invocation_id, project))
            claims.writeTo(results_table).append()
        missing = counts["missing"]

        def shared() -> AiOutcome:
            execute = lambda sql: [tuple(row) for row in spark.sql(sql).collect()]  # noqa: E731
            return share_near(execute, counts, calls, settings, results_table, invocation_id, project)

        budget = None if settings.max_ai_calls is None else max(0, settings.max_ai_calls - spent.charged_calls)
        take = min(n for n in (missing, budget, max_calls) if n is not None)
        outcome = AiOutcome(
            requested=sum(counts.values()),
            reused=counts["reused"],
            left_for_later=missing - take,
            message=call_limit(missing, take, settings),
            under_way=counts[SUBMITTED],
            **failed_before(counts, [found["retry_at"]]),
        )
        if not take:
            return outcome + shared()
        todo = frame.where("state = 'missing'")
        if settings.provider == "native":
            numbered = _numbered(todo, missing, take, settings)
            asked = native.ask(spark, numbered, calls, settings, results_table, invocation_id, project)
            return outcome + asked + shared()
        job = build_job(calls, settings, invocation_id, project)
        few = alone and settings.ask_from == "auto" and missing <= _FEW and found["bytes"] <= _FEW_BYTES
        todo = todo if few else _numbered(todo, missing, take, settings)
        asking = _Asking(spark, take, job, settings, results_table, spent, on_progress)
        asked = asking.here(todo) if few else asking.in_chunks(todo)
        return outcome + asked + shared()


def _alone(spark: Any) -> bool:
    """Whether this process and its JVM are all there is of Spark."""
    return hasattr(spark, "_jsparkSession") and f"{spark.sparkContext.master}[".startswith("local[")


def _checkpoint(frame: Any, observed: bool) -> tuple[Any, Mapping[str, Any]]:
    """The frame, computed once, and its COUNTS. Not a cache: appending to the result table would make Spark compute a cached frame anew.

    `observed` takes the counts from the same job; Spark Connect loses those, and on a cluster a repeated task would count twice."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    counts = [f.expr(text) for text in COUNTS]
    if observed:
        seen = Observation()
        return frame.observe(seen, *counts).localCheckpoint(), seen.get
    kept = frame.localCheckpoint()
    return kept, kept.select(*counts).collect()[0].asDict()


def count_ai_round(
    spark: Any, calls: Sequence[AiCall], *, settings: AiSettings, results_table: str, as_of: datetime | None = None
) -> AiOutcome:
    """What run_ai_round would ask, without asking: `calls` to make, tokens and cost estimated (four bytes a token of
    input; output unknown). A later round counts only what the answers so far let it ask."""
    if not calls:
        return AiOutcome()
    rows = spark.sql(counts_sql(calls, results_table, settings, timestamp(time.time()))).collect()
    return estimate([tuple(row) for row in rows], settings)


def estimate(rows: Sequence[tuple[Any, ...]], settings: AiSettings) -> AiOutcome:
    """The outcome to expect, from rows of counts_sql: state, number, tokens."""
    counts = {str(row[0]): int(row[1]) for row in rows}
    near = counts.get(NEAR, 0)
    tokens = sum(int(row[2] or 0) for row in rows if row[0] == "missing")
    missing = counts.get("missing", 0)
    calls = missing if settings.max_ai_calls is None else min(missing, settings.max_ai_calls)
    tokens = tokens * calls // missing if missing else 0
    return AiOutcome(
        requested=sum(counts.values()),
        reused=counts.get("reused", 0) + near,
        near=near,
        calls=calls,
        **failed_before(counts, [row[3] for row in rows]),
        left_for_later=missing - calls,
        under_way=counts.get(SUBMITTED, 0),
        input_tokens=tokens,
        cost=settings.cost(tokens, 0),
    )


def failed_before(counts: Mapping[str, int], retry_at: Sequence[Any]) -> dict[str, Any]:
    """What an outcome says of inputs that are not asked because they failed before. `retry_at`: microseconds or None."""
    refused, first = counts.get("refused", 0), min((int(at) for at in retry_at if at is not None), default=None)
    return {
        "blocked": counts.get("blocked", 0) + refused,
        "refused": refused,
        "retry_at": None if first is None else first / 1e6,
    }


def no_provider(calls: Sequence[AiCall]) -> str:
    """What to say when a model calls AI functions and the profile has no ai block."""
    names = ", ".join(sorted({c.function for c in calls}))
    return (
        f"The model calls {names}, and no provider is configured. Add an ai block with provider: openai, local, native or "
        "your own class to the target in profiles.yml."
    )


def _append(spark: Any, rows: Sequence[Row], results_table: str) -> None:
    """Not as an INSERT of VALUES: statements are logged, and these are somebody's texts."""
    try:
        frame = _from_arrow(spark, rows)
    except Exception:  # no pyarrow, or a PySpark before 4: slower, and what is paid is kept all the same
        frame = spark.createDataFrame(list(rows), DDL)
    frame.writeTo(results_table).append()


def _from_arrow(spark: Any, rows: Sequence[Row]) -> Any:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema = to_arrow_schema(StructType.fromDDL(DDL))
    columns = [dict(zip(COLUMN_NAMES, row, strict=True)) for row in rows]
    return spark.createDataFrame(pyarrow.Table.from_pylist(columns, schema))


def asked_columns(settings: AiSettings) -> list[str]:
    """Of the requests, what is handed to who asks."""
    return [*ASKED_COLUMNS, *(["near_key"] if settings.dedupe else [])]


def _numbered(todo: Any, missing: int, take: int, settings: AiSettings) -> Any:
    """The requests to ask, with `slice`: by hash, or by age where a budget may end the job before the last."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = ["function", *asked_columns(settings)]
    if not _by_age(missing, take, settings):
        return todo.selectExpr(*columns, f"pmod(xxhash64(result_key), {_SLICES}) AS slice")
    if take < missing:
        todo = todo.orderBy("old_at", "result_key").limit(take)  # NULLs first: no answer at all comes first
    rank = f.row_number().over(Window.orderBy("old_at", "result_key")) - 1
    return todo.select(*columns, f.floor(rank * _SLICES / take).alias("slice")).localCheckpoint()


def _by_age(missing: int, take: int, settings: AiSettings) -> bool:
    several = bool(settings.cascade) and settings.max_ai_calls is not None
    return take < missing or several or settings.max_ai_tokens is not None or settings.max_ai_cost is not None


@dataclass(frozen=True)
class _Asking:
    """What it takes to ask the first `total` of the requests that are missing."""

    spark: Any
    total: int
    job: PartitionJob
    settings: AiSettings
    results_table: str
    spent: AiOutcome
    on_progress: Callable[[Progress], None] | None
    begun: float = field(default_factory=time.time)

    @property
    def deadline(self) -> float | None:
        seconds = self.settings.deadline_seconds
        return self.begun + seconds if seconds else None

    def told(self, done: AiOutcome) -> None:
        if self.on_progress:
            self.on_progress(Progress.of(done, self.total, self.begun))

    def here(self, todo: Any) -> AiOutcome:
        """In this process: they are few."""
        rows = todo.select("old_at", *asked_columns(self.settings)).collect()
        # as _numbered has it: no answer at all comes first, then the oldest
        rows.sort(key=lambda row: (row.old_at is not None, row.old_at or self.begun, row.result_key))
        page = [tuple(row)[1:] for row in rows[: self.total]]
        shared = with_shares(self.job, self.settings, 1, self.spent, self.deadline, self.total)
        keep = lambda rows: _append(self.spark, rows, self.results_table)  # noqa: E731
        done = ask_page(page, shared, self.settings.chunk_seconds, keep, self.told)
        note_use(self.settings)
        self.told(done)
        return replace(done, left_for_later=self.total - done.calls)

    def in_chunks(self, todo: Any) -> AiOutcome:
        """On the executors: `todo` is numbered, and holds no more than these."""
        settings, total = self.settings, self.total
        ship_by_value(settings)
        job = replace(self.job, chunk_seconds=settings.chunk_seconds)
        number = partitions(_cores(self.spark), settings, total)
        barrier = refuse_repeats(self.spark)
        done, at, seen, not_before = AiOutcome(), 0, 0, 0.0
        width = first = max(1, int(_SLICES * min(1.0, _FIRST_CHUNK * settings.concurrency / total)))
        while at < _SLICES:
            end, started = min(_SLICES, at + width), time.time()
            chunk = todo.where(f"slice >= {at} AND slice < {end}")
            if at < seen:  # a chunk before had no time for all of these
                chunk = chunk.join(_asked_by(self.spark, job, self.results_table), "result_key", "left_anti")
            try:
                left = total - done.calls
                shared = with_shares(job, settings, number, self.spent + done, self.deadline, left, not_before)
                outcome, cut, not_before = _ask_chunk(
                    chunk, shared, self.results_table, barrier, ordered=_by_age(total, total, settings)
                )
            except WorkersCannot as found:
                raise WorkersCannot(str(found), done + found.done) from None
            note_use(settings)
            done += outcome
            at, seen = at if cut else end, max(seen, end)
            self.told(done)
            if outcome.left_for_later:
                break
            seconds = max(time.time() - started, 0.05)
            wider = 2 * outcome.calls / (outcome.calls + cut) if cut else min(4.0, settings.chunk_seconds / seconds)
            width = max(first, int(width * wider))
        return replace(done, left_for_later=total - done.calls)


def _asked_by(spark: Any, job: PartitionJob, results_table: str) -> Any:
    """The keys of what this run has asked."""
    rows = spark.table(results_table).where(f"invocation_id = {string_literal(job.invocation_id)} AND attempts > 0")
    return rows.select("result_key").distinct()


def _ask_chunk(
    chunk: Any, job: PartitionJob, results_table: str, barrier: bool, *, ordered: bool
) -> tuple[AiOutcome, int, float]:
    """Asks and appends in one Spark job; the counts come from the same pass, because a second would ask again.
    `ordered`: a budget may end the job within the chunk, so each partition begins with its first requests.

    With the outcome: how many requests the chunk had no time for, and when the next may send its first."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    dealt = chunk.repartition(len(job.shares))
    answers = (
        (dealt.sortWithinPartitions("slice") if ordered else dealt)
        .select(*ASKED_COLUMNS, *(["near_key"] if "near_key" in chunk.columns else []))
        .mapInPandas(job, schema=DDL, barrier=barrier)
        .selectExpr("*", _BECAME)
        .observe(seen, *map(f.expr, _COUNTED))
        .drop("became")
    )
    try:
        answers.where("attempts > 0").writeTo(results_table).append()
    except Exception as error:  # classes differ between Connect and not, and between releases
        if reason := why_workers_cannot(error):
            raise WorkersCannot(reason) from error
        raise
    found = seen.get
    calls, errors, left = int(found["calls"] or 0), int(found["errors"] or 0), int(found["left"] or 0)
    outcome = AiOutcome(
        calls=calls,
        ok=calls - errors,
        null_answers=int(found["nulls"] or 0),
        errors=errors,
        left_for_later=left,
        input_tokens=int(found["input_tokens"] or 0),
        output_tokens=int(found["output_tokens"] or 0),
        cost=float(found["cost"] or 0.0),
        error_classes={kind: int(found[kind]) for kind in ERROR_CLASSES if found[kind]},
        message=str(found["reason"] or "") if left else "",
        error_example=str(found["example"] or ""),
        gave_up=int(found["gave_up"] or 0),
        retry_at=None if found["retry_at"] is None else int(found["retry_at"]) / 1e6,
        further=int(found["requests"] or 0) - calls,
        repeated=int(found["attempts"] or 0) - int(found["requests"] or 0),
    )
    if found["lacks"]:
        raise WorkersCannot(str(found["lacks"]), replace(outcome, left_for_later=0, message=""))
    return outcome, int(found["late"] or 0), float(found["next"] or 0.0)


def call_limit(missing: int, take: int, settings: AiSettings) -> str:
    """Why not all missing answers are asked for, "" when they are."""
    return "" if take == missing or settings.max_ai_calls is None else f"max_ai_calls is {settings.max_ai_calls}"


def _cores(spark: Any) -> int:
    """How many tasks Spark runs at once. A Connect session has no SparkContext to ask: there it is what Spark cuts a range into."""
    if hasattr(spark, "_jsparkSession"):
        return int(spark.sparkContext.defaultParallelism)
    return int(spark.range(1 << 16).selectExpr("spark_partition_id() AS p").distinct().count())
