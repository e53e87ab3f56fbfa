"""Which rows `erase` is about: in the model's table, in its state, and whether the query still gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.state import StateFacts
from spark_mv.query.syntax.condition import where_clause
from spark_mv.query.syntax.reserved import VALID_TO
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.forgetting import checked_condition
from spark_mv.spark.run.look_up import query_columns
from spark_mv.spark.run.prepared import Prepared


@dataclass(frozen=True)
class Request:
    """What to erase: rows of the model with these `keys`, or those where a condition on its columns holds."""

    keys: Sequence[Any] = ()
    where: str | None = None
    functions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """How many `rows` of the table and `remembered` ones of the state there are, and the conditions that find them (`of_state` empty:
    there is no state)."""

    condition: str
    rows: int
    of_state: str
    remembered: int


def rows_to_erase(query: Query, seen: Prepared, state: StateFacts, asked: Request) -> Rows:
    """Raises RefusedError for what does not tell rows of the model, and for rows that the query still gives."""
    table, target = seen.invocation.target, seen.facts.target
    if bool(asked.keys) == bool(asked.where):
        raise RefusedError(
            "ERASE_WHAT", _said(seen, "say which rows: keys: [4711] or where: a condition, and one of the two")
        )
    condition = (
        _with_keys(query, seen, asked.keys)
        if asked.keys
        else checked_condition(query, table, seen.invocation.name, str(asked.where), target, asked.functions)
    )
    of_state = _of_state(query, seen, state, condition) if state.exists else ""
    _refuse_given(query, seen, condition, of_state, by_key=bool(asked.keys))
    remembered = _count(query, seen.invocation.state_table, of_state) if of_state else 0
    return Rows(condition, _count(query, table, condition), of_state, remembered)


def _said(seen: Prepared, why: str) -> str:
    return f"model {seen.invocation.name}: {why}. Nothing was changed"


def _count(query: Query, table: str, condition: str) -> int:
    return int(query(f"select count(*) as n from {table} {where_clause(condition)}")[0]["n"])


def _keys(seen: Prepared) -> str:
    return ", ".join(quoted(key) for key in seen.config.unique_key)


def _of_state(query: Query, seen: Prepared, state: StateFacts, condition: str) -> str:
    """The condition for rows of the state: those of the table's rows, and where it has the columns those for which `condition` is true."""
    table, keys = seen.invocation.state_table, _keys(seen)
    by_key = f"({keys}) in (select {keys} from {seen.invocation.target} {where_clause(condition)})"
    try:
        query_columns(query, f"select 1 as one from {table} {where_clause(condition)}")
        return f"(\n{condition}\n) or {by_key}"
    except Exception as error:
        if "UNRESOLVED_COLUMN" not in str(error):
            raise
    lost = query(
        f"select count(*) as n from (select {keys} from {table} except select {keys} from {seen.invocation.target} "
        f"except select {keys} from (\n{_candidates(seen)}\n))"
    )[0]["n"]
    if lost:
        raise RefusedError(
            "ERASE_WHAT",
            _said(
                seen,
                f"{table} remembers {int(lost):,} rows that neither the table nor the query has, and lacks a column of the condition: say the keys",
            ),
        )
    return by_key


def _candidates(seen: Prepared) -> str:
    """The query whose rows may be in the table at some time: those that a random filter judges, and those that wait for their window."""
    rewritten = seen.rewritten
    if rewritten.draw_sql is not None:
        return rewritten.draw_sql
    if rewritten.unclocked_sql is not None:
        return f"select * from (\n{rewritten.unclocked_sql}\n) where {VALID_TO} is null or {VALID_TO} > {rewritten.as_of_literal}"
    return rewritten.sql


def _refuse_given(query: Query, seen: Prepared, condition: str, of_state: str, by_key: bool) -> None:
    candidates = f"(\n{_candidates(seen)}\n) q"
    if by_key:
        given = _count(query, candidates, condition)
    else:
        keys = _keys(seen)
        found = f"select {keys} from {seen.invocation.target} {where_clause(condition)}"
        if of_state:
            found += f" union all select {keys} from {seen.invocation.state_table} where {of_state}"
        same = " and ".join(f"q.{quoted(key)} <=> t.{quoted(key)}" for key in seen.config.unique_key)
        given = int(query(f"select count(*) as n from {candidates} left semi join ({found}) t on {same}")[0]["n"])
    if given:
        named = ", ".join(sorted(source.name for source in seen.facts.sources)) or "the query"
        raise RefusedError(
            "ERASE_IN_SOURCE",
            _said(
                seen,
                f"{given:,} of these rows are what the query still gives: the next run would bring them back. Delete them where they come from "
                f"({named}) and run the model first",
            ),
        )


def _with_keys(query: Query, seen: Prepared, keys: Sequence[Any]) -> str:
    """The condition for keys that the user wrote: a value each, or a list or mapping of them where the key has several columns."""
    types = {c.name.lower(): c.type for c in seen.facts.target.columns}
    names = seen.config.unique_key
    rows = [_values(seen, key) for key in keys]
    for k, name in enumerate(names):
        _check_exact(query, seen, name, types[name.lower()], [row[k] for row in rows])
    return " or ".join(
        "("
        + " and ".join(
            f"{quoted(name)} <=> cast({string_literal(text)} as {types[name.lower()]})"
            for name, text in zip(names, row, strict=True)
        )
        + ")"
        for row in rows
    )


def _values(seen: Prepared, key: Any) -> list[str]:
    """The texts of one key, in the order of its columns."""
    names = [name.lower() for name in seen.config.unique_key]
    named = {str(name).lower(): value for name, value in key.items()} if isinstance(key, Mapping) else None
    values = key if isinstance(key, list) else [key]
    if named is not None:
        values = [named[name] for name in names] if set(named) == set(names) else []
    if len(values) != len(names) or any(value is None or isinstance(value, list | dict) for value in values):
        raise RefusedError(
            "ERASE_KEYS", _said(seen, f"a key of it has {len(names)} columns, none of them NULL: {', '.join(names)}")
        )
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def _check_exact(query: Query, seen: Prepared, name: str, kind: str, texts: Sequence[str]) -> None:
    """A cast that rounds or cuts off would find another row."""
    listed = ", ".join(f"({n}, {string_literal(text)})" for n, text in enumerate(texts))
    try:
        found = query(f"select n, cast(try_cast(text as {kind}) as string) as back from values {listed} as s(n, text)")
    except Exception as error:
        if "DATATYPE_MISMATCH" not in str(error):
            raise
        found = [{"n": 0, "back": None}]
    wrong = sorted(int(row["n"]) + 1 for row in found if not _same(texts[int(row["n"])], row["back"]))
    if wrong:
        numbers = ", ".join(map(str, wrong))
        raise RefusedError(
            "ERASE_KEYS",
            _said(
                seen,
                f"{name} is {kind}, and what is written for it in keys (number {numbers}) is no value of that type as Spark writes it. Write it so, "
                "as a text, or say where",
            ),
        )


def _same(text: str, back: str | None) -> bool:
    """Whether Spark's text of a value says what the user's does.

    >>> _same("1.50", "1.5"), _same("1.7", "1"), _same("2026-01-01", "2026-01-01 00:00:00"), _same("x", None)
    (True, False, True, False)
    """
    if back is None or text == back:
        return back is not None
    try:
        return Decimal(text) == Decimal(back)
    except InvalidOperation:
        pass
    try:
        return datetime.fromisoformat(text) == datetime.fromisoformat(back)
    except ValueError:
        return False
