"""provider: native. The engine's own AI functions answer, in SQL, and the answers still go through the result table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.results import COLUMNS
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import canonical
from spark_mv.query.syntax.source_text import string_literal as quote


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
        answered = mine.selectExpr(
            *insert_columns(call, invocation_id, settings.keep_requests, project, near="near_key" in todo.columns)
        )
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        seen = Observation()
        answered.observe(seen, f.count("*").alias("calls"), f.count_if(f.col("value").isNull()).alias("nulls")).writeTo(
            results_table
        ).append()
        calls_made = int(seen.get["calls"] or 0)
        done += AiOutcome(calls=calls_made, ok=calls_made, null_answers=int(seen.get["nulls"] or 0))
    return done


def insert_columns(
    call: AiCall, invocation_id: str, keep_requests: bool, project: str = "", near: bool = False
) -> list[str]:
    """The columns of the result table over result_key and request, `value` computed by the engine's function."""
    given = {
        "result_key": "result_key",
        "function": quote(call.function),
        "arguments_hash": "sha2(request, 256)",
        "model": quote(call.model),
        "model_version": quote(call.model_version),
        "identity_hash": quote(call.identity_hash),
        "status": "'ok'",
        "value": _text(call),
        "attempts": "1",
        "called_at": "current_timestamp()",
        "invocation_id": quote(invocation_id),
        "request": "request" if keep_requests else "NULL",
        "project": quote(project) if project else "NULL",
        "prompts": quote(call.prompts) if call.prompts else "NULL",
        "near_key": "near_key" if near else "NULL",
    }
    return [f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS]


def call_sql(call: AiCall) -> str:
    """The call in the engine's SQL, its row arguments read back from the request."""
    row = [f"get_json_object(request, '$.row[{n}].{name}')" for n, name in enumerate(call.row_arguments)]
    constant = dict(call.constant)
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
    return f"{call.function}({', '.join(arguments)})"


def _text(call: AiCall) -> str:
    sql, kind = call_sql(call), call.answer_type.upper()
    return f"to_json({sql})" if re.match(r"VARIANT|STRUCT|ARRAY|MAP", kind) else f"cast({sql} AS STRING)"


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
