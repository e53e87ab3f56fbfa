"""Answers that a table holds already, taken into the result table, so that nobody pays them a second time.

An answer belongs to a request. Which request a value of the table answers is told by the query today (query.ai_calls.asked_rows), for rows
whose other columns are what the query gives: of a row that was edited since, the value may answer another text.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_mv.ai.results import COLUMNS
from spark_mv.query.ai_calls.asked_rows import MARK, MarkedCall
from spark_mv.query.ai_calls.keys import stored_sql
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.query.syntax.table_name import quoted


@dataclass(frozen=True)
class HeldColumn:
    """A column whose values are answers. `edited` has, for each of the calls, the condition under which a row of the query (`q`) and of
    the table (`t`) is not the row that was asked about."""

    name: str
    type: str
    edited: tuple[str, ...]


@dataclass(frozen=True)
class Holding:
    """`marked_sql` is the SELECT with marks, `table` what holds answers in its `columns`, found by `keys`."""

    marked_sql: str
    calls: tuple[MarkedCall, ...]
    table: str
    keys: tuple[str, ...]
    columns: tuple[HeldColumn, ...]
    results_table: str


def counts_sql(held: Holding) -> str:
    """Per column: `rows` of which the request is known, and of these: `empty` (NULL, no answer), `edited`, `taken`; `answers`, different
    requests among those taken, of which `known` are in the result table already; `others`, rows that will show the
    answer that most rows with the same request have, `overruled`, those that will show the one that the result table has."""
    usable = "value IS NOT NULL AND NOT edited"
    return (
        f"{_with(held)} SELECT r.name, count(*) AS rows, count_if(value IS NULL) AS empty, "
        f"count_if(value IS NOT NULL AND edited) AS edited, count_if({usable}) AS taken, "
        f"count(DISTINCT r.result_key) FILTER (WHERE {usable}) AS answers, "
        f"count(DISTINCT r.result_key) FILTER (WHERE {usable} AND c.known) AS known, "
        f"count_if({usable} AND NOT value <=> c.answer AND NOT c.known) AS others, "
        f"count_if({usable} AND NOT value <=> c.answer AND c.known) AS overruled "
        "FROM __mv_held r LEFT JOIN __mv_chosen c ON c.result_key = r.result_key GROUP BY r.name"
    )


def insert_sql(held: Holding, invocation_id: str, project: str) -> str:
    """Adds an answer for each request that has none. Of different values for one request, the most frequent one."""
    given = {
        "result_key": "c.result_key",
        "arguments_hash": "c.arguments_hash",
        "function": _of_call(held, "function"),
        "model": _of_call(held, "model"),
        "model_version": _of_call(held, "model_version"),
        "identity_hash": _of_call(held, "identity_hash"),
        "status": "'ok'",
        "value": "c.answer",
        "attempts": "0",
        "called_at": "current_timestamp()",
        "invocation_id": quote(invocation_id),
        "project": quote(project),
    }
    columns = ", ".join(f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS)
    return f"INSERT INTO {held.results_table}\n{_with(held)} SELECT {columns} FROM __mv_chosen c WHERE NOT c.known"


def _of_call(held: Holding, word: str) -> str:
    values = [str(getattr(call, word)) for call in held.calls]
    return f"element_at(array({', '.join(map(quote, values))}), c.site + 1)"


def _with(held: Holding) -> str:
    same = " AND ".join(f"q.{quoted(key)} <=> t.{quoted(key)}" for key in held.keys)
    arms = [
        f"SELECT {quote(column.name)} AS name, {number} AS site, regexp_extract(q.{quoted(column.name)}, {quote(MARK)}, 2) AS result_key, "
        f"regexp_extract(q.{quoted(column.name)}, {quote(MARK)}, 3) AS arguments_hash, {_text(column)} AS value, "
        f"{column.edited[number]} AS edited FROM __mv_marked q JOIN {held.table} t ON {same} "
        f"WHERE q.{quoted(column.name)} RLIKE {quote(MARK)} AND startswith(q.{quoted(column.name)}, 'mvAI:{number}:')"
        for column in held.columns
        for number in range(len(held.calls))
    ]
    functions = ", ".join(sorted({quote(call.function) for call in held.calls}))
    return (
        f"WITH __mv_marked AS (SELECT * FROM (\n{held.marked_sql}\n)),\n"
        f"__mv_held AS ({' UNION ALL '.join(arms)}),\n"
        "__mv_counted AS (SELECT result_key, min(arguments_hash) AS arguments_hash, min(site) AS site, value, count(*) AS n FROM __mv_held "
        "WHERE value IS NOT NULL AND NOT edited GROUP BY result_key, value),\n"
        "__mv_answered AS (SELECT result_key, max_by(value, called_at) AS answer FROM "
        f"{held.results_table} WHERE status = 'ok' AND function IN ({functions}) GROUP BY result_key),\n"
        "__mv_chosen AS (SELECT n.result_key, min(n.arguments_hash) AS arguments_hash, min(n.site) AS site, "
        "bool_or(a.result_key IS NOT NULL) AS known, "
        "if(bool_or(a.result_key IS NOT NULL), max(a.answer), max_by(n.value, struct(n.n, n.value))) AS answer "
        "FROM __mv_counted n LEFT JOIN __mv_answered a ON a.result_key = n.result_key GROUP BY n.result_key)\n"
    )


def _text(column: HeldColumn) -> str:
    """The value as the result table has it."""
    return stored_sql(f"t.{quoted(column.name)}", column.type)
