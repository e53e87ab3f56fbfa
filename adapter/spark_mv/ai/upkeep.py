"""Statements over the result table: asking again, removing what nobody refers to, seeing who answered what."""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.ai.cascade import REQUESTS, STEPS
from spark_mv.ai.paid import paid_sql
from spark_mv.ai.pending import requests_sql
from spark_mv.ai.results import COLUMNS
from spark_mv.ai.retry import FAILED, MARKS, UNDER_WAY, USED
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.syntax.source_text import string_literal as quote

_FAILED = ", ".join(quote(status) for status in FAILED)
_NO_FATE = ", ".join(quote(status) for status in (USED, *UNDER_WAY))


_OF_ANSWER = ("result_key", "function", "arguments_hash", "model", "model_version", "identity_hash", "project")
"""What a mark has of the row that it is about; without the project the answer could never be pruned."""


def recompute_sql(
    results_table: str, invocation_id: str, *, errors_only: bool = False, where: str | None = None
) -> str:
    """Marks answers as stale, so that the next run asks again; until then the old answers stay visible.

    It is the newest row of an input that decides: `where` is a condition over the result table's columns, `errors_only` takes those
    that are errors, also where next_retry_at is not reached. Near duplicates have one answer, so all of them are marked with one. A mark
    is a row: the table is only ever appended to.
    """
    given = {
        **{name: name for name in _OF_ANSWER},
        "status": "'stale'",
        "called_at": "current_timestamp()",
        "invocation_id": quote(invocation_id),
    }
    columns = ", ".join(f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS)
    wanted = f"status IN ({_FAILED})" if errors_only else "status <> 'stale'"
    asked = f" AND (\n{where}\n)" if where else ""  # a comment in it ends with its line
    of_input = "OVER (PARTITION BY result_key"
    alike = ", ".join(f"collect_set({what}) {of_input})" for what in ("near_key", "coalesce(answered_by, result_key)"))
    newest = (
        f"SELECT * FROM (\n  SELECT *, row_number() {of_input} ORDER BY called_at DESC) AS __mv_nth, array_union({alike}) AS __mv_alike\n"
        f"  FROM {results_table} WHERE status NOT IN ({_NO_FATE})\n) WHERE __mv_nth = 1"
    )
    shared = "SELECT explode(__mv_alike) AS a FROM __mv_newest"
    return (
        f"INSERT INTO {results_table}\nWITH __mv_newest AS ({newest})\nSELECT {columns}\nFROM __mv_newest WHERE status <> 'stale' "
        f"AND result_key IN (SELECT result_key FROM (SELECT result_key, explode(__mv_alike) AS a FROM __mv_newest)\n"
        f"WHERE a IN ({shared} WHERE {wanted}{asked}))"
    )


def marked_sql(results_table: str, calls: Sequence[AiCall], invocation_id: str) -> str:
    """How many answers to requests of these calls the operation of that id has marked."""
    return (
        f"SELECT count(*) AS n FROM ({requests_sql(calls)}) AS __mv_q LEFT SEMI JOIN (SELECT result_key FROM {results_table} "
        f"WHERE status = 'stale' AND invocation_id = {quote(invocation_id)}) AS m ON m.result_key = __mv_q.result_key"
    )


def used_sql(calls: Sequence[AiCall]) -> str:
    """The arguments, as hashes (`arguments_hash`), that the requests of these calls refer to."""
    return f"SELECT DISTINCT arguments_hash FROM ({requests_sql(calls)}) AS __mv_q"


def unused_sql(
    results_table: str,
    calls: Sequence[AiCall],
    older_than: str,
    project: str | None,
    unowned: bool = False,
    elsewhere: Sequence[str] = (),
) -> str:
    """The arguments (`gone`, a hash) that no request of these calls refers to any more, of answers that `project` paid or
    claimed before `older_than` (a timestamp's text). `heir` is another project that uses them, NULL where there is none.

    The calls must be those of all models of the project, in all rounds, but those whose used_sql the tables `elsewhere` hold. What carries no project, of earlier releases, stays,
    unless `unowned` says that it is this project's as well. Without a project, the calls are those of all projects.
    """
    owner, project = _owner("project", project, unowned), project or ""
    rows = f"SELECT *, {owner} AS __mv_owner FROM {results_table}"
    hashes = [*([used_sql(calls)] if calls else []), *(f"SELECT arguments_hash FROM {table}" for table in elsewhere)]
    used = (
        f" LEFT ANTI JOIN ({' UNION ALL '.join(hashes)}) AS u ON u.arguments_hash = r.arguments_hash" if hashes else ""
    )
    mine = f"r.__mv_owner <=> {quote(project)}"
    return (
        f"SELECT r.arguments_hash AS gone, max(r.__mv_owner) FILTER (WHERE NOT {mine}) AS heir\n"
        f"FROM ({rows}) AS r{used}\nGROUP BY r.arguments_hash\n"
        f"HAVING bool_or({mine} AND r.called_at < timestamp {quote(older_than)}) AND count_if(r.__mv_owner IS NULL) = 0"
    )


def _owner(column: str, project: str | None, unowned: bool) -> str:
    """SQL of the project that a row belongs to."""
    if project is None:
        return "''"
    return f"coalesce({column}, {quote(project)})" if unowned else column


def prune_sql(
    results_table: str,
    calls: Sequence[AiCall],
    older_than: str,
    project: str | None = None,
    unowned: bool = False,
    elsewhere: Sequence[str] = (),
) -> str:
    """Removes the old answers of `project` that nothing refers to, see unused_sql; those that another project uses become
    its own. A MERGE, because Delta takes no subquery in DELETE."""
    mine = f"{_owner('t.project', project, unowned)} = {quote(project or '')} AND t.called_at < timestamp {quote(older_than)}"
    return (
        f"MERGE INTO {results_table} AS t\nUSING (\n{unused_sql(results_table, calls, older_than, project, unowned, elsewhere)}\n) AS s\n"
        f"ON t.arguments_hash = s.gone AND {mine}\n"
        "WHEN MATCHED AND (s.heir IS NULL OR t.status <> 'ok') THEN DELETE\nWHEN MATCHED THEN UPDATE SET project = s.heir"
    )


def errors_view_sql(view: str, results_table: str) -> str:
    """`errors by class`: inputs whose newest row is an error."""
    return (
        f"CREATE OR REPLACE VIEW {view} AS\nSELECT error_class, function, model, model_version, count(*) AS inputs,\n"
        "  max_by(error, called_at) AS newest_error, max(called_at) AS newest_at, min(next_retry_at) AS next_retry_at\n"
        "FROM (\n  SELECT result_key, function, model, model_version, max(called_at) AS called_at,\n"
        "    max_by(status, called_at) AS status, max_by(error_class, called_at) AS error_class,\n"
        "    max_by(error, called_at) AS error, max_by(next_retry_at, called_at) AS next_retry_at\n"
        f"  FROM {results_table}\n  WHERE status NOT IN ({_NO_FATE})\n  GROUP BY ALL\n)\nWHERE status IN ({_FAILED})\nGROUP BY ALL"
    )


def costs_view_sql(view: str, results_table: str) -> str:
    """`cost by model and run`. What an input took at each model of a cascade stands with that model."""
    alone = (
        "array(named_struct('model', model, 'version', model_version, 'attempts', attempts, 'input_tokens', input_tokens, "
        "'output_tokens', output_tokens, 'cost', cost, 'confidence', confidence, 'declined', cast(NULL AS STRING)))"
    )
    return (
        f"CREATE OR REPLACE VIEW {view} AS\nSELECT invocation_id, function, s.model AS model, s.version AS model_version, count(*) AS calls,\n"
        "  count_if(error_class IS NOT NULL AND place = models - 1) AS errors, sum(s.attempts) AS attempts,\n"
        "  sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens, sum(s.cost) AS cost,\n"
        "  min(called_at) AS first_at, max(called_at) AS last_at,\n"
        "  count_if(s.declined IS NOT NULL) AS declined, avg(s.confidence) AS confidence\n"
        f"FROM (SELECT *, {REQUESTS} AS models, coalesce({STEPS}, {alone}) AS asked\n"
        f"  FROM ({paid_sql(results_table)}) AS p)\n"
        "LATERAL VIEW posexplode(asked) AS place, s\nGROUP BY ALL"
    )


def provenance_sql(calls: Sequence[AiCall], results_table: str) -> str:
    """`which rows are still on the old model`: for every input of a model, who gave the answer that it shows.

    Columns: function, line (of the call), request, result_key, state (`current`, `old model`, `error`, `missing`),
    model, model_version, called_at, confidence (of the model of a cascade that answered), prompts (the prompt files of the call),
    answered_by (under dedupe, the result_key of the question that was asked in its place). Join it to the model's table by the arguments, or count it by state.
    """
    parts = []
    for call in calls:
        mine = f"identity_hash = {quote(call.identity_hash)}"
        silent = ", ".join(quote(status) for status in MARKS if status not in call.answered)
        answered = f"status IN ({', '.join(map(quote, call.answered))})"
        ok = f"SELECT * FROM {results_table} WHERE function = {quote(call.function)} AND status NOT IN ({silent}) AND ({call.earlier})"
        best = f"struct({answered}, {mine}, called_at)"
        parts.append(
            f"SELECT q.function, {call.line} AS line, q.request, q.result_key,\n"
            f"  CASE WHEN max_by(status, {best}) IS NULL THEN 'missing' WHEN NOT max_by({answered}, {best}) THEN 'error'\n"
            f"    WHEN max_by({mine}, {best}) THEN 'current' ELSE 'old model' END AS state,\n"
            f"  max_by(model, {best}) AS model, max_by(model_version, {best}) AS model_version,\n"
            f"  max_by(called_at, {best}) AS called_at, max_by(confidence, {best}) AS confidence,\n"
            f"  {quote(call.prompts) if call.prompts else 'cast(NULL AS STRING)'} AS prompts,\n"
            f"  max_by(answered_by, {best}) AS answered_by\nFROM ({call.request_sql}) AS q\n"
            f"LEFT JOIN ({ok}) AS r ON r.arguments_hash = q.arguments_hash\nGROUP BY q.function, q.request, q.result_key"
        )
    return "\nUNION ALL\n".join(parts)
