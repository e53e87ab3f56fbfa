"""The same job without Python on the engine (Thrift server, warehouses): dbt's own process asks, page by page.

Memory is bounded: a page holds at most _PAGE requests of _PAGE_BYTES together, an INSERT the answers of `chunk_seconds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.ai import native
from spark_mv.ai.here import ask_page
from spark_mv.ai.job import Progress, asked_columns, call_limit, estimate, failed_before, no_provider
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import counts_sql, pending_sql
from spark_mv.ai.results import COLUMNS, insert_rows, timestamp, used_columns
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.ai.shared import share_near
from spark_mv.ai.work import build_job, endpoint_lock, note_use, with_shares
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import SUBMITTED
from spark_mv.query.syntax.source_text import string_literal as quote

Execute = Callable[[str], Sequence[Sequence[Any]]]  # runs a statement, gives its rows (none for an INSERT)
_PAGE = 2_000
_PAGE_BYTES = 64 << 20


def run_ai_round_on_driver(
    execute: Execute,
    calls: Sequence[AiCall],
    *,
    settings: AiSettings,
    results_table: str,
    invocation_id: str,
    project: str = "",
    max_calls: int | None = None,
    spent: AiOutcome | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AiOutcome:
    """As run_ai_round, over plain SQL: a page of missing requests, their answers, one INSERT, the next page.

    Answered requests drop out of the next page's look-up, failed ones by their place in the order.
    """
    if not calls:
        return AiOutcome()
    if not settings.configured:
        raise AiConfigError("NO_PROVIDER", no_provider(calls))
    spent = spent or AiOutcome()
    with endpoint_lock(settings):
        begun = time.time()
        rows = execute(counts_sql(calls, results_table, settings, timestamp(begun), project, invocation_id))
        counts = {str(row[0]): int(row[1]) for row in rows}
        before = failed_before(counts, [row[3] for row in rows])
        if any(row[4] for row in rows):
            pending = pending_sql(calls, results_table, settings, timestamp(begun), project)
            claims = ", ".join(used_columns(invocation_id, project))
            execute(f"INSERT INTO {results_table} SELECT {claims} FROM ({pending}) AS p WHERE unclaimed")
        missing = counts.get("missing", 0)
        budget = None if settings.max_ai_calls is None else max(0, settings.max_ai_calls - spent.charged_calls)
        total = min(n for n in (missing, budget, max_calls) if n is not None)
        done, job = AiOutcome(), None
        if settings.provider == "native":
            at = timestamp(begun)
            done = native.ask_by_statements(execute, calls, settings, results_table, at, invocation_id, project, total)
        else:
            job = build_job(calls, settings, invocation_id, project)
        deadline = begun + settings.deadline_seconds if settings.deadline_seconds else None
        order = "old_at NULLS FIRST, result_key"
        columns = ", ".join(asked_columns(settings))
        while job is not None and done.calls < total:
            size = min(_PAGE, total - done.calls)
            pending = pending_sql(calls, results_table, settings, timestamp(begun), invocation_id=invocation_id)
            # what this run has asked is in the table: an error of it must not come back on the next page
            asked = f"SELECT result_key FROM {results_table} WHERE invocation_id = {quote(invocation_id)} AND status <> 'stale'"
            first = (
                f"SELECT {columns}, old_at FROM ({pending}) AS p LEFT ANTI JOIN ({asked} AND "
                f"called_at >= timestamp '{timestamp(begun)}') AS a ON a.result_key = p.result_key "
                f"WHERE p.state = 'missing' ORDER BY p.{order} LIMIT {size}"
            )
            size_before = (
                f"sum(octet_length(request)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - octet_length(request)"
            )
            page = execute(
                f"SELECT {columns} FROM (SELECT *, {size_before} AS before FROM ({first}) AS f) AS b "
                f"WHERE before < {_PAGE_BYTES}"
            )
            if not page:
                break
            shared = with_shares(job, settings, 1, spent + done, deadline, total - done.calls)
            keep = lambda rows: execute(insert_rows(results_table, COLUMNS, rows))  # noqa: E731
            outcome = ask_page(page, shared, settings.chunk_seconds, keep)
            note_use(settings)
            done += outcome
            if on_progress:
                on_progress(Progress.of(done, total, begun))
            if outcome.left_for_later:
                break
        near = share_near(execute, counts, calls, settings, results_table, invocation_id, project)
    found = AiOutcome(
        requested=sum(counts.values()), reused=counts.get("reused", 0), under_way=counts.get(SUBMITTED, 0), **before
    )
    message = done.message or call_limit(missing, total, settings)
    return found + near + replace(done, left_for_later=missing - done.calls, message=message)


def count_ai_round_on_driver(
    execute: Execute, calls: Sequence[AiCall], *, settings: AiSettings, results_table: str
) -> AiOutcome:
    """As count_ai_round, over plain SQL."""
    if not calls:
        return AiOutcome()
    rows = execute(counts_sql(calls, results_table, settings, timestamp(time.time())))
    return estimate([tuple(r) for r in rows], settings)
