"""Make, withdraw and look again at requests to forget kept values."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.maintenance.facts import TargetFacts
from spark_mv.maintenance.forget import ForgetRequest, request_text, withdrawal_text
from spark_mv.query.rewrite.row_condition import row_condition
from spark_mv.query.syntax.condition import where_clause
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.run.look_up import describe, session_facts, target_facts
from spark_mv.spark.run.operation_arguments import condition_text, texts
from spark_mv.spark.run.pins import run_pins


def ask_to_forget(
    adapter: Any,
    table: str,
    model: str,
    columns: Any,
    where: str | None,
    functions: Mapping[str, Mapping[str, Any]],
) -> str:
    """Ask the next run to draw `columns` anew for the rows where `where` holds; what to tell the user.

    Raises RefusedError for columns that are not kept, and for a condition that a later run could not evaluate.
    """
    where = condition_text(where)
    query = Ask(adapter.query, adapter.mv_spark())
    target = target_facts(query, table, True)
    kept = target.record.kept if target.record else {}
    names = list(dict.fromkeys(texts("columns", columns)))
    strange = [column for column in names if column.lower() not in kept]
    if kept and not names:
        raise RefusedError(
            "NOT_KEPT_HERE",
            f"model {model}: say which columns are to be drawn anew: `columns: [{', '.join(sorted(kept))}]`, or some of these. A `where` "
            "alone says only of which rows",
        )
    if not target.ours or strange or not names:
        raise RefusedError(
            "NOT_KEPT_HERE",
            f"model {model}: {', '.join(strange) or table} is not kept per key here; kept columns are "
            f"{', '.join(sorted(kept)) or 'none'}. (Answers of AI functions: dbt run-operation recompute_ai)",
        )
    condition = checked_condition(query, table, model, where, target, functions) if where else None
    request = ForgetRequest(uuid.uuid4().hex[:12], tuple(name.lower() for name in names), condition)
    rows = rows_of(query, table, request)
    _commit(adapter, table, target.provider, request.id, request_text(request))
    which = f" where {where}" if where else " for all rows"
    others = (
        ""
        if target.intact
        else "; the table has changes of others, which the next run undoes first, so they may be other rows"
    )
    return f"{model}: the next run draws {', '.join(names)} anew{which} ({rows:,} rows now{others})"


def withdraw(adapter: Any, table: str, model: str) -> str:
    """Take back the requests that no run has honoured yet; what to tell the user."""
    query = Ask(adapter.query, adapter.mv_spark())
    try:
        target = target_facts(query, table, True)
        provider, waiting = target.provider, str(len(target.forget))
    except RefusedError as error:
        there = describe(query, table) if error.code == "FORGET_UNREADABLE" else None
        if there is None:
            raise
        provider, waiting = there.provider, "unreadable"
    if waiting != "0":
        _commit(adapter, table, provider, uuid.uuid4().hex[:12], withdrawal_text())
    return f"{model}: {waiting} request{'' if waiting == '1' else 's'} to forget values withdrawn"


def checked_condition(
    query: Query,
    table: str,
    model: str,
    where: str,
    target: TargetFacts,
    functions: Mapping[str, Mapping[str, Any]],
) -> str:
    """The condition as a run can evaluate it at any time: the clock and the user as they are now.

    Raises RefusedError for what is no condition on the rows of the table alone, or draws.
    """

    def refused(why: str) -> RefusedError:
        return RefusedError(
            "FORGET_WHERE",
            f"model {model}: where: {where!r} {why}. It has to be a condition on the columns of {table}: "
            f"{', '.join(c.name for c in target.columns)}. Nothing was changed",
        )

    types = {c.name: c.type for c in target.columns}
    found = row_condition(where, table, types, functions=functions, model=model)
    if isinstance(found, str):
        raise refused(found)
    condition = found.pinned(run_pins(datetime.now(timezone.utc), session_facts(query), {table: types}))
    if condition is None:
        raise refused("reads the clock or the user in words that cannot be given one value; write the value itself")
    try:
        rows_of(query, table, ForgetRequest("", (), condition))
    except Exception as error:
        raise refused(f"cannot be evaluated: {first_line(error)}") from error
    return condition


def still_possible(query: Query, target: TargetFacts, tables: Sequence[str]) -> tuple[TargetFacts, tuple[str, ...]]:
    """The target without the requests whose condition cannot be evaluated over these tables any longer, and a sentence
    about each of those. A model is never stopped by a request."""
    possible, dropped = [], []
    for request in target.forget:
        problem = request.where and next((p for table in tables if (p := _problem(query, table, request))), None)
        if problem:
            dropped.append(
                f"a request to forget {', '.join(request.columns)} where {request.where} cannot be honoured any longer "
                f"and is dropped: {problem}"
            )
        else:
            possible.append(request)
    return (replace(target, forget=tuple(possible)) if dropped else target), tuple(dropped)


def rows_of(query: Query, table: str, request: ForgetRequest) -> int:
    """How many rows of the table a request concerns. Raises what Spark raises for its condition."""
    where = where_clause(request.where) if request.where else ""
    return int(query(f"select count(*) as n from {table} {where}")[0]["n"])


def _problem(query: Query, table: str, request: ForgetRequest) -> str:
    try:
        rows_of(query, table, request)
    except Exception as error:
        query(f"select 1 as n from {table} limit 1")  # raises where it is the table that cannot be read
        return first_line(error)
    return ""


def _commit(adapter: Any, table: str, provider: str, id: str, text: str) -> None:
    table_format = format_of(provider)
    assert table_format is not None, provider  # it has a history
    table_format.say(adapter, Ask(adapter.query, adapter.mv_spark()), table, id, text)
