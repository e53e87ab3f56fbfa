"""Giving the answers that were asked for to the inputs that share them, see dedupe."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.results import COLUMNS, timestamp
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import NEAR, SIMILAR
from spark_mv.query.syntax.source_text import string_literal as quote

Execute = Callable[[str], Sequence[Sequence[Any]]]


def share_near(
    execute: Execute,
    counts: Mapping[str, int],
    calls: Sequence[AiCall],
    settings: AiSettings,
    results_table: str,
    invocation_id: str,
    project: str,
    at: float | None = None,
) -> AiOutcome:
    """After the asking: inputs that near duplicates were asked for (`near` of the counts) get these answers. Those whose
    near duplicate has none are left for a later run."""
    near = counts.get(NEAR, 0)
    if not near:
        return AiOutcome()
    now = timestamp(time.time() if at is None else at)
    pending = pending_sql(calls, results_table, settings, now, project)
    answered = settings.identity().answered
    execute(share_sql(pending, results_table, invocation_id, project, now, answered))
    mine = f"invocation_id = {quote(invocation_id)} AND called_at = timestamp '{now}'"
    rows = execute(f"SELECT count(*) FROM {results_table} WHERE status IN ('{NEAR}', '{SIMILAR}') AND {mine}")
    shared = min(near, int(rows[0][0]))
    return AiOutcome(reused=shared, near=shared, left_for_later=near - shared)


def share_sql(
    pending: str, results_table: str, invocation_id: str, project: str, at: str, answered: Sequence[str]
) -> str:
    """Gives each input in state `near` (of `pending`, see pending_sql) its leader's answer, where there is one by now: a row of status `near`
    where the two differ in what is folded alone. `at`: a timestamp's text, `answered`: the statuses of answers."""
    names = "value, model, model_version, identity_hash, confidence, prompts, answered_by, result_key, status"
    listed = ", ".join(quote(status) for status in answered)
    leaders = f"SELECT DISTINCT leader FROM ({pending}) AS l WHERE state = '{NEAR}'"
    newest = (
        f"SELECT result_key AS k, max_by(struct({names}), called_at) FILTER (WHERE status IN ({listed})) AS a, collect_set(near_key) AS near_keys "
        f"FROM {results_table} WHERE result_key IN ({leaders}) GROUP BY 1 HAVING a IS NOT NULL"
    )
    answer = ("value", "model", "model_version", "identity_hash", "confidence", "prompts")
    given = {
        "result_key": "p.result_key",
        "function": "p.function",
        "arguments_hash": "p.arguments_hash",
        "status": f"if(n.a.status = '{SIMILAR}' OR NOT array_contains(n.near_keys, p.near_key), '{SIMILAR}', '{NEAR}')",
        "attempts": "0",
        "called_at": f"timestamp '{at}'",
        "invocation_id": quote(invocation_id),
        "project": quote(project) if project else "NULL",
        "near_key": "p.near_key",
        "answered_by": "coalesce(n.a.answered_by, n.a.result_key)",
        **{name: f"n.a.{name}" for name in answer},
    }
    columns = ", ".join(f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS)
    return (
        f"INSERT INTO {results_table}\nSELECT {columns} FROM ({pending}) AS p "
        f"JOIN ({newest}) AS n ON n.k = p.leader WHERE p.state = '{NEAR}'"
    )
