"""What the statements that stage or compare rows say of each column: texts that the macros emit as they are.

`q` is a row of the query, `t` one of the table; `q.__mv_n` is NULL where the query has no row, `t.__mv_there` where the table has
none. A row that the query lacks carries the table's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.query.delta.column_types import FLOATING
from spark_mv.query.syntax.literals import json_text
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import quoted

ROUNDING = "1e-9"
"""Of a floating-point value's size: sums that differ by no more count as equal in an audit."""
VALUE_REFUSED = "__mv_value_refused"
"""What a statement raises, with the column's name, for a value of the query that the table's type cannot hold."""


def staging(args: Mapping[str, Any]) -> dict[str, Any]:
    """The texts for `mv_changed_rows`, from the arguments of a step that stages rows."""
    failing = {name.lower() for name in args.get("failing_columns") or ()} if args["target"] else set()
    columns: Sequence[StagedColumn] = [
        replace(c, may_fail=c.in_target and c.name.lower() in failing) for c in args["columns"]
    ]
    keys = [c for c in columns if c.role is Role.KEY]
    identity: Mapping[str, Any] = args.get("identity") or {}
    updated = differs([c for c in columns if c.role is Role.DATA])
    shared = identity.get("by_former")
    stays = bool(args.get("stays"))
    return {
        "key": ", ".join(quoted(c.name) for c in keys),
        "key_as_written": ", ".join(_as_written(c) for c in keys),
        "key_of_query": ", ".join(f"q.{quoted(c.name)}" for c in keys),
        "known_key": " and ".join(f"{quoted(c.name)} is not null" for c in keys),
        "first_key": quoted(keys[0].name) if keys else "",
        "sharing": ", ".join(quoted(pair["query"]) for pair in identity["pairs"]) if shared else "",
        "values": [{"name": quoted(c.name), "new": _new(c), "staged": _staged(c, updated, stays)} for c in columns],
        "differs": differs(columns),
        "changes": differs([c for c in columns if c.in_target and c.role is not Role.PINNED]),
        "found_on": _found_on(keys, identity),
        "preferred": "".join(
            f" cast(q.{quoted(pair['query'])} as string) <=> cast(t.{quoted(pair['table'])} as string) desc, cast(t.{quoted(pair['table'])} as string),"
            for pair in identity.get("former", ())
        ),
        "of_table": _of_table(columns, args.get("images") or {}),
        "affected_on": " and ".join(
            f"r.{quoted(anchor['column'])} {anchor['test']} a.{anchor['affected']}"
            for anchor in args.get("anchors", ())
        ),
        "failing_on": " and ".join(f"q.{quoted(c.name)} = f.{quoted(c.name)}" for c in keys),
        "join": "left" if args["keep_missing"] and not args["all_rows"] else "full outer",
        "missing": "'='" if args["keep_missing"] else "'D'",
    }


def differences(columns: Sequence[StagedColumn]) -> dict[str, Any]:
    """The texts for the statements of an audit: `named`, the columns that may differ by a fault, each with its test;
    `unordered` tells rows that differ only in what depends on an order or a rounding."""
    compared = [c for c in columns if c.role in (Role.DATA, Role.PINNED) or _key_may_differ(c)]
    plain = [c for c in compared if c.in_query and c.in_target]
    return {
        "named": [{"name": string_literal(c.name), "differs": differs([c])} for c in plain],
        "unordered": " or ".join(_unordered(c) for c in columns if c.watched or c.approximate),
    }


def differs(columns: Sequence[StagedColumn]) -> str:
    """Whether the query's row differs from the table's. Kept columns are read back, so they never differ, unless their own
    expression changed."""
    tests = [
        test
        for c in columns
        if c.role is not Role.KEY or _key_may_differ(c)
        for test in (*_waiting(c), *(f"t.{flag}" for flag in c.forget), _differs(c))
    ]
    return f"({' or '.join(test for test in tests if test) or 'false'})"


def _key_may_differ(column: StagedColumn) -> bool:
    """Rows are found by their keys, which then differ only where a collation takes two texts for one, or 0.0 and -0.0 are one."""
    both = column.in_query and column.in_target
    return column.role is Role.KEY and both and (column.as_json or column.type in FLOATING)


def _differs(column: StagedColumn) -> str:
    if column.fresh or (column.in_query and not column.in_target):
        return "true"
    if column.role is Role.KEPT or not column.in_query:
        return ""
    new, old = _new(column), _old(column)
    if column.approximate:
        apart, size = f"abs({new} - {old})", f"greatest(abs({new}), abs({old}))"
        near = f"{apart} < double('infinity') and {apart} <= {ROUNDING} * {size}"
        return f"not coalesce({new} <=> {old} or ({near}), false)"
    if column.as_json:
        new, old = json_text(new, column.type), json_text(old, column.type)
    if column.type in FLOATING:
        # 0.0 and -0.0 are equal, and not the same value. Of a column that is compared itself, Spark puts the constant into the texts
        return f"(not ({new} <=> {old}) or (abs({new}) <=> 0 and cast({new} as string) <> cast({old} as string)))"
    return f"not ({new} <=> {old})"


def _unordered(column: StagedColumn) -> str:
    exactly = differs([replace(column, role=Role.DATA, approximate=False)])
    return exactly if column.watched else f"({exactly} and not {differs([column])})"


def _new(column: StagedColumn) -> str:
    """The value that the query gives, in the type of the table; NULL where only the table has the column."""
    if not column.in_query:
        return f"cast(null as {column.type})"
    new = _fitted(column, f"q.{quoted(column.name)}") if column.cast else f"q.{quoted(column.name)}"
    return (
        f"case when t.__mv_there and f.{quoted(column.name)} then {_old(column)} else {new} end"
        if column.may_fail
        else new
    )


def _fitted(column: StagedColumn, name: str) -> str:
    """A value in another type. It fails for one that would be another one there: Spark itself stores the rest of a division by 2^32, or NULL."""
    fitted = f"try_cast({name} as {column.type})"
    again = f"try_cast({fitted} as {column.given})"
    same = (
        f"{json_text(again, column.given)} <=> {json_text(name, column.given)}"
        if column.as_json
        else f"{again} <=> {name}"
    )
    return f"case when {same} then {fitted} else raise_error({string_literal(f'{VALUE_REFUSED}<{column.name}>')}) end"


def _old(column: StagedColumn, cast: str = "cast") -> str:
    name = f"t.{quoted(column.stands_in or column.name)}"
    if column.retyped and column.role is Role.KEPT and column.given:
        return _fitted(column, name)  # it may be the only copy
    return f"{cast}({name} as {column.type})" if column.retyped else name


def _as_written(key: StagedColumn, row: str = "") -> str:
    name = f"{row}{quoted(key.name)}"
    return f"try_cast({name} as {key.type})" if key.cast else name


def _old_key(column: StagedColumn) -> str:
    """A key whose type changed need not be one of the new type: then no row has it."""
    return _old(column, "try_cast")


def _staged(column: StagedColumn, updated: str, stays: bool = False) -> str:
    if stays and column.in_target and column.role is not Role.KEY:
        return f"case when t.__mv_stays then {_old(column)} else {_staged(column, updated)} end"
    new = _new(column)
    if not column.in_target:
        return new
    if column.role is Role.KEY:
        return f"coalesce({new}, {_old_key(column)})"
    if not column.in_query:
        return f"t.{quoted(column.name)}"
    if column.role is Role.KEPT and not column.fresh:
        anew = [f"(q.__mv_n is not null and {why})" for why in _redrawn(column, updated)]
        return f"case when {' or '.join(['t.__mv_there is null', *anew])} then {new} else {_old(column)} end"
    return f"case when q.__mv_n is null then {_old(column)} else {new} end"


def _redrawn(column: StagedColumn, updated: str) -> list[str]:
    return [*([updated] if column.redraw else []), *(f"t.{flag}" for flag in column.forget), *_waiting(column)]


def _waiting(column: StagedColumn) -> list[str]:
    """The row has been kept without an answer, which has come since."""
    there = column.asked and column.in_query and column.in_target and not column.fresh
    return [f"({_old(column)} is null and {_new(column)} is not null)"] if there else []


def _found_on(keys: Sequence[StagedColumn], identity: Mapping[str, Any]) -> str:
    """How rows of the table are found for those of the query."""
    if not identity:
        return " and ".join(f"{_as_written(c, 'q.')} = {_old_key(c)}" for c in keys)
    pairs = " and ".join(
        f"q.{quoted(pair['query'])} = try_cast(t.{quoted(pair['table'])} as {pair['type']})"
        for pair in identity["pairs"]
    )
    return f"{pairs} and q.__mv_sharing = 1" if identity["by_former"] else pairs


def _of_table(columns: Sequence[StagedColumn], images: Mapping[str, str]) -> list[dict[str, str]]:
    """The table's columns as they are read for affected rows: those that these carry are not read from it."""
    return [
        {"name": quoted(c.name), "value": f"a.{images[c.name]}" if c.name in images else f"r.{quoted(c.name)}"}
        for c in columns
        if c.in_target
    ]
