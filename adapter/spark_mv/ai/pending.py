"""Which distinct requests of a round have no answer yet, as SQL over the result table."""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.ai.dedupe import near_parts
from spark_mv.ai.retry import COUNTED_CLASSES, ERROR, FAILED, FINAL_CLASSES, REFUSED
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.similar_table import classes_sql
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import NEAR, SUBMITTED, answered_sql
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.query.syntax.source_text import string_literals

FIRST_RETRY = "min(if(state = 'blocked', unix_micros(retry_at), NULL))"
"""Over the requests with their state: when the first that waits may be asked again (microseconds since the epoch)."""
STATES = ("reused", "refused", "blocked", SUBMITTED, NEAR, "missing")
COUNTS = (
    *(f"count_if(state = '{state}') AS {state}" for state in STATES),
    f"{FIRST_RETRY} AS retry_at",
    "count_if(unclaimed) AS unclaimed",
    "sum(if(state = 'missing', octet_length(request), 0)) AS bytes",
)
"""What is counted of the requests with their state, in one pass."""


def requests_sql(calls: Sequence[AiCall]) -> str:
    """Every distinct request of the round: result_key, function, arguments_hash, request, site (the call's number)."""
    parts = [
        f"SELECT result_key, function, arguments_hash, request, {number} AS site FROM ({call.request_sql}) AS __mv_s"
        for number, call in enumerate(calls)
    ]
    if len(parts) == 1:
        return parts[0]
    together = "\nUNION ALL\n".join(parts)
    return (
        "SELECT result_key, min(function) AS function, min(arguments_hash) AS arguments_hash, min(request) AS request, min(site) AS site "
        f"FROM (\n{together}\n) AS __mv_u GROUP BY result_key"
    )


def pending_sql(
    calls: Sequence[AiCall],
    results_table: str,
    settings: AiSettings,
    at: str,
    project: str = "",
    invocation_id: str = "",
) -> str:
    """The requests with their state: `reused` (answered), `refused` (failed for good), `blocked` (failed, not to be tried
    again before `retry_at`, which is later than `at`, a timestamp literal's text, or by this invocation), `submitted` (an open batch holds it) or
    `missing`; `failures` is how often a missing one has failed, `old_at` when another model last answered the same arguments; `unclaimed`, whether
    `project` reads an answer that nothing in the table says it pays for or uses.

    Under `dedupe` a missing one whose near duplicate is asked, or answered, is `near`, and there are two more columns, see near_parts.

    Only rows that match a request are aggregated, never the whole result table. What stands before the newest
    `stale` mark of a key does not count.
    """
    functions = ", ".join(quote(f) for f in sorted({c.function for c in calls}))
    identity = settings.identity()
    asker = ", invocation_id" if invocation_id else ""
    told = settings.keep_old and any(call.earlier != "true" for call in calls)
    # what another model said of the same question, by the number of the call
    earlier = ", ".join(f"coalesce({call.earlier}, false)" for call in calls)
    said = f", array({earlier}) AS __mv_earlier" if told else ""
    known = (
        f"SELECT result_key, arguments_hash, status, error_class, called_at, next_retry_at, project, batch{asker}{said} FROM {results_table} "
        f"WHERE function IN ({functions})"
    )
    # what another model said of the same arguments is looked up in the same pass: the table is read once
    same, of_any_model = "k.result_key = q.result_key", "k.arguments_hash = q.arguments_hash"
    # by batch, not by time: who submits and who collects may have clocks that differ
    open_ = "array_except({}, {})".format(
        *(f"collect_set(k.batch) FILTER (WHERE {same} AND k.status {is_} '{SUBMITTED}')" for is_ in ("=", "<>"))
    )
    answered = answered_sql("k.status", identity)
    failed = f"{same} AND k.status IN ({string_literals(FAILED)})"
    # rows of earlier releases say `error` of a refusal, too
    failed_as = f"if(k.error_class IN ({string_literals(sorted(FINAL_CLASSES))}), '{REFUSED}', k.status)"
    alike = f"{answered} AND k.__mv_earlier[q.site]" if told else answered
    mine = f"coalesce(bool_or(k.project = {quote(project)} AND ({same} OR {alike})), false)"
    old_at = f"max(k.called_at) FILTER (WHERE {alike})" if settings.keep_old else "cast(NULL AS timestamp)"
    failed_in = f" max_by(k.invocation_id, k.called_at) FILTER (WHERE {failed}) AS failed_in," if invocation_id else ""
    counted = f"k.error_class IN ({string_literals(sorted(COUNTED_CLASSES))})"
    parts = [
        f"__mv_requests AS ({requests_sql(calls)})",
        "__mv_known AS (SELECT q.result_key, q.function, q.arguments_hash, q.request, q.site,"
        f" max(k.called_at) FILTER (WHERE {same} AND {answered}) AS ok_at,"
        f" max(k.called_at) FILTER (WHERE {same} AND k.status = 'stale') AS stale_at,"
        f" max(k.called_at) FILTER (WHERE {failed}) AS error_at,"
        f" max_by({failed_as}, k.called_at) FILTER (WHERE {failed}) AS failed_as,"
        f" collect_list(k.called_at) FILTER (WHERE {failed} AND {counted}) AS failed_at,"
        f" max_by(k.next_retry_at, k.called_at) FILTER (WHERE {failed}) AS retry_at,{failed_in} {mine} AS mine, {old_at} AS old_at, size({open_}) > 0 AS under_way"
        f" FROM __mv_requests q LEFT JOIN ({known}) k ON {of_any_model if settings.keep_old else same} GROUP BY ALL)",
    ]
    since = "coalesce(stale_at, timestamp '1970-01-01')"
    in_this_one = f" OR failed_in = {quote(invocation_id)}" if invocation_id else ""
    state = (
        f"CASE WHEN ok_at > {since} THEN 'reused' WHEN under_way THEN '{SUBMITTED}' "
        f"WHEN error_at > {since} AND failed_as <> '{ERROR}' THEN 'refused' "
        f"WHEN error_at > {since} AND (retry_at > timestamp '{at}'{in_this_one}) THEN 'blocked' ELSE 'missing' END"
    )
    failures = f"size(filter(failed_at, x -> x > {since}))"
    if settings.keep_old and settings.on_model_change == "keep":
        state = f"if(ok_at IS NULL AND stale_at IS NULL AND old_at IS NOT NULL, 'reused', {state})"
    unclaimed = f"NOT mine AND (({state}) = 'reused' OR old_at IS NOT NULL)" if project else "false"
    columns = (
        f"SELECT result_key, function, arguments_hash, request, site, {state} AS state, old_at, "
        f"retry_at, {failures} AS failures, {unclaimed} AS unclaimed FROM __mv_known"
    )
    if settings.dedupe is None:
        return f"WITH {', '.join(parts)} {columns}"
    least = settings.dedupe.semantic
    classes = None if least is None else classes_sql(results_table, least)
    parts += near_parts(calls, results_table, settings.dedupe, columns, classes, identity.salt)
    return f"WITH {', '.join(parts)} SELECT * FROM __mv_near"


def counts_sql(
    calls: Sequence[AiCall],
    results_table: str,
    settings: AiSettings,
    at: str,
    project: str = "",
    invocation_id: str = "",
) -> str:
    """Per state: how many requests, how many tokens their texts are at four bytes each, when the first of them may be
    asked again (microseconds since the epoch), and how many are unclaimed."""
    return (
        f"SELECT state, count(*) AS number, sum(ceil(octet_length(request) / 4)) AS tokens, {FIRST_RETRY} AS retry_at, "
        "count_if(unclaimed) AS unclaimed "
        f"FROM ({pending_sql(calls, results_table, settings, at, project, invocation_id)}) AS __mv_p GROUP BY state"
    )
