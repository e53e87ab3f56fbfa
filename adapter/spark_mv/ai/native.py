"""provider: native. The engine's own AI functions answer, in SQL, and the answers still go through the result table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.results import COLUMN_NAMES, COLUMNS
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import canonical, stored_sql
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.query.syntax.table_name import quoted_name

Execute = Callable[[str], Sequence[Sequence[Any]]]


def ask(
    spark: Any,
    todo: Any,
    calls: Sequence[AiCall],
    settings: AiSettings,
    results_table: str,
    invocation_id: str,
    project: str = "",
) -> AiOutcome:
    """One INSERT … SELECT per call site. An engine that cannot answer a row fails the statement: nothing is kept of
    that site, and the error is raised."""
    done = AiOutcome()
    for number, call in enumerate(calls):
        mine = todo.where(f"site = {number}")
        near = "near_key" in todo.columns
        answered = mine.selectExpr(*insert_columns(call, invocation_id, settings, project, near))
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        seen = Observation()
        answered.observe(seen, f.count("*").alias("calls"), f.count_if(f.col("value").isNull()).alias("nulls")).writeTo(
            results_table
        ).append()
        calls_made = int(seen.get["calls"] or 0)
        done += AiOutcome(calls=calls_made, ok=calls_made, null_answers=int(seen.get["nulls"] or 0))
    return done


def ask_by_statements(
    execute: Execute,
    calls: Sequence[AiCall],
    settings: AiSettings,
    results_table: str,
    at: str,
    invocation_id: str,
    project: str,
    most: int,
) -> AiOutcome:
    """As `ask`, over plain SQL: at most so many requests, those of the first call sites first. `at`, see pending_sql."""
    done = AiOutcome()
    pending = pending_sql(calls, results_table, settings, at, project, invocation_id)
    found = execute(f"SELECT site, count(*) FROM ({pending}) AS p WHERE state = 'missing' GROUP BY site")
    missing = {int(row[0]): int(row[1]) for row in found}
    for number, call in enumerate(calls):
        take = min(missing.get(number, 0), most - done.calls)
        if not take:
            continue
        limit = take if take < missing[number] else None
        columns = insert_columns(call, invocation_id, settings, project, near=settings.dedupe is not None)
        execute(insert_sql(number, columns, pending, results_table, limit))
        done += AiOutcome(calls=take, ok=take)
    return done


def insert_sql(number: int, columns: Sequence[str], pending: str, results_table: str, most: int | None = None) -> str:
    """The statement that has the engine answer what is missing of the call site `number`, over pending_sql. `most`: so many
    of them, those first that show no answer, then the oldest."""
    limit = "" if most is None else f" ORDER BY old_at NULLS FIRST, result_key LIMIT {most}"
    todo = f"SELECT * FROM ({pending}) AS p WHERE state = 'missing' AND site = {number}{limit}"
    return (
        f"INSERT INTO {results_table} ({', '.join(COLUMN_NAMES)})\nSELECT {', '.join(columns)}\nFROM (\n{todo}\n) AS q"
    )


def insert_columns(
    call: AiCall, invocation_id: str, settings: AiSettings, project: str = "", near: bool = False
) -> list[str]:
    """The columns of the result table over result_key and request, `value` computed by the engine's function."""
    given = {
        "result_key": "result_key",
        "function": quote(call.function),
        "arguments_hash": "arguments_hash",
        "model": quote(call.model),
        "model_version": quote(call.model_version),
        "identity_hash": quote(call.identity_hash),
        "status": "'ok'",
        "value": _text(call, settings.sql_function(call.function)),
        "attempts": "1",
        "called_at": "current_timestamp()",
        "invocation_id": quote(invocation_id),
        "request": "request" if settings.keep_requests else "NULL",
        "project": quote(project) if project else "NULL",
        "prompts": quote(call.prompts) if call.prompts else "NULL",
        "near_key": "near_key" if near else "NULL",
    }
    return [f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS]


def call_sql(call: AiCall, instead: str = "") -> str:
    """The call in the engine's SQL, its row arguments read back from the request. `instead`: the SQL function that is called in
    the place of the engine's own, with the same arguments; in that of ai_query with endpoint and request. Raises AiConfigError
    for what these two would leave out."""
    name = quoted_name(instead) if instead else call.function
    row = [f"get_json_object(request, '$.row[{n}].{name}')" for n, name in enumerate(call.row_arguments)]
    constant = dict(call.constant)
    if call.function == "ai_query" and instead:
        if call.parameters or call.response_schema or len(row) > 1:
            raise AiConfigError(
                "AI_CONFIG",
                f"ai_query is answered by {instead}, which is given endpoint and request, and the call has parameters, files or a "
                "responseFormat. Take these away, or have the engine's own ai_query answer",
            )
        return f"{name}({quote(call.model)}, {row[0]})"
    if call.function == "ai_query":
        arguments = [f"endpoint => {quote(call.model)}", f"request => {row[0]}"]
        if len(row) > 1:
            arguments.append(f"files => unbase64({row[1]})")
        if call.answer_type.upper() not in {"STRING", "ARRAY<FLOAT>"} and not call.response_schema:
            arguments.append(f"returnType => {quote(call.answer_type)}")
        if call.parameters:
            arguments.append(f"modelParameters => {_literal(dict(call.parameters))}")
        if call.response_schema:
            arguments.append(f"responseFormat => {quote(call.response_schema)}")
        return f"ai_query({', '.join(arguments)})"
    arguments = list(row)
    if "labels" in constant or "schema" in constant:
        labels = constant.get("labels", constant.get("schema"))
        arguments.append(quote(canonical(labels)) if constant.get("v") == 2 else _literal(labels))
        if "options" in constant:
            arguments.append(_map(constant["options"]))
    if "max_words" in constant:
        arguments.append(str(constant["max_words"]))
    return f"{name}({', '.join(arguments)})"


def _text(call: AiCall, instead: str) -> str:
    return stored_sql(call_sql(call, instead), call.answer_type)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return f"named_struct({', '.join(f'{quote(str(k))}, {_literal(v)}' for k, v in value.items())})"
    return f"array({', '.join(_literal(v) for v in value)})"


def _map(value: Mapping[str, Any]) -> str:
    return f"map({', '.join(f'{quote(str(k))}, {_literal(v)}' for k, v in value.items())})"
