"""Spark types of columns, derived when asked: through CTEs and subqueries from the schemas of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from spark_mv.query.analysis.scopes import Scope, find_plain, find_qualified
from spark_mv.query.analysis.taint import Field
from spark_mv.query.functions.catalogue import Mark, is_marked
from spark_mv.query.solver.predicate import PredicateText
from spark_mv.query.solver.types import type_of
from spark_mv.query.syntax.parse import sql_text

Derive = Callable[[], "str | None"]


def field_type(field: Field) -> str | None:
    """The Spark type of a column, None if it is not known."""
    if field.type:
        return field.type
    return field.derive() if field.derive is not None else None


def deriving(node: exp.Expr, scope: Scope) -> Derive:
    """How to find the type of an output column with this expression."""
    done: list[str | None] = []

    def derive() -> str | None:
        if not done:
            done.append(None)  # a recursive CTE asks itself
            done[0] = expression_type(node, scope)
        return done[0]

    return derive


def same_type(left: Field, right: Field) -> Derive:
    """How to find the type of a column of a set operation."""

    def derive() -> str | None:
        kinds = {field_type(left), field_type(right)}
        return kinds.pop() if len(kinds) == 1 else None

    return derive


def expression_type(node: exp.Expr, scope: Scope) -> str | None:
    """The Spark type of an expression, None if it is not known."""
    if isinstance(node, exp.Paren | exp.Alias):
        return expression_type(node.this, scope)
    if isinstance(node, exp.Column):
        return column_type(node, scope)
    call = node.meta.get("call")
    if call is not None and is_marked(call.name, Mark.PICKS):
        inner = node.this
        return expression_type(inner, scope) if isinstance(inner, exp.Expr) else None
    if call is not None and call.name == "split":
        return "array<string>"
    if isinstance(node, exp.Array):
        kinds = {expression_type(part, scope) for part in node.expressions}
        return f"array<{kinds.pop()}>" if len(kinds) == 1 and None not in kinds else None
    if isinstance(node, exp.VarMap | exp.Map):
        parts = [expression_type(node.args[key], scope) if key in node.args else None for key in ("keys", "values")]
        keys, values = (element_type(part) if part else None for part in parts)
        return f"map<{keys},{values}>" if keys and values else None
    if isinstance(node, exp.Window | exp.Filter | exp.IgnoreNulls):
        return expression_type(node.this, scope)
    read = PredicateText(sql_text(node))
    return type_of(read.tree, known_types(node, scope)) if read.tree is not None else None


def column_type(node: exp.Column, scope: Scope) -> str | None:
    """The type of a column reference in a scope."""
    if isinstance(node.this, exp.Star):
        return None
    parts = [part.name for part in node.parts]
    if len(parts) == 1:
        found, sure = find_plain(scope, parts[0])
        return field_type(found) if found is not None and sure else None
    found, field = find_qualified(scope, parts) or (None, ())
    return field_type(found) if found is not None and not field else None


def inner_type(kind: str | None, path: Sequence[str]) -> str | None:
    """The type of a field of a struct, None if it is not known.

    >>> inner_type("struct<a: int, b: struct<c: date>>", ["B", "c"])
    'date'
    """
    for name in path:
        kind = next((inner for own, inner in struct_fields(kind or "") if own.lower() == name.lower()), None)
    return kind


def element_type(kind: str) -> str | None:
    """The type of an array's elements, or of a map's values.

    >>> element_type("array<date>"), element_type("map<decimal(10,2),array<int>>"), element_type("date")
    ('date', 'array<int>', None)
    """
    word = kind.strip()
    if word.lower().startswith("array<"):
        return word[6:-1].strip()
    return map_types(word)[1] if word.lower().startswith("map<") else None


def map_types(kind: str) -> tuple[str, str]:
    """The types of a map's keys and values.

    >>> map_types("map<struct<a: int, b: int>,date>")
    ('struct<a: int, b: int>', 'date')
    """
    key, *values = _apart(kind.strip()[4:-1])
    return key, ",".join(values)


def struct_fields(kind: str) -> list[tuple[str, str]]:
    """(name, type) of the fields of `struct<a:int,b:array<string>>`, in order; empty for any other type."""
    text = kind.strip()
    if not text.lower().startswith("struct<") or not text.endswith(">"):
        return []
    fields = (part.partition(":") for part in _apart(text[7:-1]) if part)
    return [(name.strip().strip("`"), inner.strip()) for name, _, inner in fields]


def _apart(text: str) -> list[str]:
    """What commas stand between that are in no brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if depth == 0 and char == ",":
            parts.append(text[start:i].strip())
            start = i + 1
        depth += (char in "<(") - (char in ">)")
    return [*parts, text[start:].strip()]


def known_types(node: exp.Expr, scope: Scope) -> dict[str, str]:
    """`alias.column` and `column` → type, for the columns that stand in `node`."""
    types: dict[str, str] = {}
    for column in node.find_all(exp.Column):
        if column.args.get("db") or isinstance(column.this, exp.Star):
            continue
        kind = column_type(column, scope)
        if kind:
            types[f"{column.table}.{column.name}".lower() if column.table else column.name.lower()] = kind
    return types
