"""Which distinct requests of a round have no answer yet, as SQL over the result table."""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls import AiCall
from spark_mv.query.ai_calls_keys import quote


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
    """The requests with their state: `old_at` when another model last answered the same arguments (NULL: never).

    `state` is `reused` (answered), `blocked` (failed, not to be tried again before `at`, a timestamp literal's text)
    or `missing`. No aggregate over the whole result table: rows are only looked for, by key.
    """
    functions = ", ".join(quote(f) for f in sorted({c.function for c in calls}))
    of_these = f"FROM {results_table} WHERE function IN ({functions})"
    answered = f"SELECT result_key AS __mv_k, 2 AS __mv_s {of_these} AND status = 'ok'"
    blocked = (
        f"SELECT result_key AS __mv_k, 1 AS __mv_s {of_these} AND status = 'error' AND next_retry_at > timestamp '{at}'"
    )
    known = (
        f"SELECT q.result_key, q.function, q.request, q.site, max(k.__mv_s) AS __mv_s FROM __mv_requests q "
        f"LEFT JOIN ({answered} UNION ALL {blocked}) k ON k.__mv_k = q.result_key GROUP BY ALL"
    )
    state = "CASE __mv_s WHEN 2 THEN 'reused' WHEN 1 THEN 'blocked' ELSE 'missing' END"
    if not settings.keep_old:
        return (
            f"WITH __mv_requests AS ({requests_sql(calls)}), __mv_known AS ({known}) "
            f"SELECT result_key, function, request, site, {state} AS state, cast(NULL AS timestamp) AS old_at FROM __mv_known"
        )
    old = f"SELECT arguments_hash AS __mv_a, called_at AS __mv_t {of_these} AND status = 'ok'"
    if settings.on_model_change == "keep":
        state = f"if(__mv_s IS NULL AND old_at IS NOT NULL, 'reused', {state})"
    return (
        f"WITH __mv_requests AS ({requests_sql(calls)}), __mv_known AS ({known}), __mv_aged AS ("
        f"SELECT n.result_key, n.function, n.request, n.site, n.__mv_s, max(o.__mv_t) AS old_at FROM __mv_known n "
        f"LEFT JOIN ({old}) o ON o.__mv_a = sha2(n.request, 256) GROUP BY ALL) "
        f"SELECT result_key, function, request, site, {state} AS state, old_at FROM __mv_aged"
    )
