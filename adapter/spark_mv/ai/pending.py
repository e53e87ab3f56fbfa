"""Which distinct requests of a round have no answer yet, as SQL over the result table."""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.keys import quote
from spark_mv.query.ai_calls.plan import AiCall


def requests_sql(calls: Sequence[AiCall]) -> str:
    """Every distinct request of the round: result_key, function, request, site (the call's number)."""
    parts = [
        f"SELECT result_key, function, request, {number} AS site FROM ({call.request_sql}) AS __mv_s"
        for number, call in enumerate(calls)
    ]
    if len(parts) == 1:
        return parts[0]
    together = "\nUNION ALL\n".join(parts)
    return (
        "SELECT result_key, min(function) AS function, min(request) AS request, min(site) AS site "
        f"FROM (\n{together}\n) AS __mv_u GROUP BY result_key"
    )


def pending_sql(calls: Sequence[AiCall], results_table: str, settings: AiSettings, at: str) -> str:
    """The requests with their state: `reused` (answered), `blocked` (failed, not to be tried again before `at`, a
    timestamp literal's text) or `missing`; `old_at` is when another model last answered the same arguments.

    Only rows that match a request are aggregated, never the whole result table. What stands before the newest
    `stale` mark of a key does not count.
    """
    functions = ", ".join(quote(f) for f in sorted({c.function for c in calls}))
    known = f"SELECT result_key, status, called_at, next_retry_at FROM {results_table} WHERE function IN ({functions})"
    parts = [
        f"__mv_requests AS ({requests_sql(calls)})",
        "__mv_known AS (SELECT q.result_key, q.function, q.request, q.site,"
        " max(k.called_at) FILTER (WHERE k.status = 'ok') AS ok_at,"
        " max(k.called_at) FILTER (WHERE k.status = 'stale') AS stale_at,"
        " max(k.called_at) FILTER (WHERE k.status = 'error') AS error_at,"
        " max_by(k.next_retry_at, k.called_at) FILTER (WHERE k.status = 'error') AS retry_at"
        f" FROM __mv_requests q LEFT JOIN ({known}) k ON k.result_key = q.result_key GROUP BY ALL)",
    ]
    since = "coalesce(stale_at, timestamp '1970-01-01')"
    state = (
        f"CASE WHEN ok_at > {since} THEN 'reused' "
        f"WHEN error_at > {since} AND retry_at > timestamp '{at}' THEN 'blocked' ELSE 'missing' END"
    )
    old_at, source = "cast(NULL AS timestamp)", "__mv_known"
    if settings.keep_old:
        old = f"SELECT arguments_hash, called_at FROM {results_table} WHERE function IN ({functions}) AND status = 'ok'"
        parts.append(
            "__mv_aged AS (SELECT n.*, max(o.called_at) AS old_at FROM __mv_known n "
            f"LEFT JOIN ({old}) o ON o.arguments_hash = sha2(n.request, 256) GROUP BY ALL)"
        )
        old_at, source = "old_at", "__mv_aged"
        if settings.on_model_change == "keep":
            state = f"if(ok_at IS NULL AND stale_at IS NULL AND old_at IS NOT NULL, 'reused', {state})"
    return (
        f"WITH {', '.join(parts)} SELECT result_key, function, request, site, {state} AS state, {old_at} AS old_at "
        f"FROM {source}"
    )


def counts_sql(calls: Sequence[AiCall], results_table: str, settings: AiSettings, at: str) -> str:
    """Per state: how many requests, and how many tokens their texts are at four bytes each."""
    return (
        "SELECT state, count(*) AS number, sum(ceil(octet_length(request) / 4)) AS tokens "
        f"FROM ({pending_sql(calls, results_table, settings, at)}) AS __mv_p GROUP BY state"
    )
