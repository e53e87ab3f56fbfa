"""Columns that hide the clock: `age` in `WHERE age < 30`, where a CTE or subquery underneath computes `age` from it.

A predicate over such a column is solved with the column's expression in its place, written over columns that the
predicate sees: those with the same value (fingerprint) as the ones the expression was written over.
"""

from __future__ import annotations

import re

from sqlglot import exp

from spark_mv.query.analysis.field_types import expression_type
from spark_mv.query.analysis.scopes import Scope, find_plain, find_qualified
from spark_mv.query.analysis.taint import CLEAN, Field
from spark_mv.query.functions.level import Level
from spark_mv.query.solver.predicate import PredicateText
from spark_mv.query.syntax.parse import Call, sql_text

_PLAIN = re.compile(r"[A-Za-z_]\w*")
_MAX_DEPTH = 20
_CLAUSES = ("with_", "where", "group", "having", "qualify", "joins", "laterals", "limit", "offset", "distinct")


class _Hidden(Exception):
    """The column's expression cannot be written where the predicate stands."""


def opened(text: str, node: exp.Expr, scope: Scope, clause: str) -> str | None:
    """The predicate `text` (parsed as `node` in `scope`) without columns that depend on the clock: the text itself if it
    has none, None if one cannot be replaced by its expression."""
    hidden = {}
    aliases = _aliases(node, clause)
    for column in node.find_all(exp.Column):
        if isinstance(column.meta.get("call"), Call) or isinstance(column.this, exp.Star):
            continue
        name = column.name.lower()
        key = f"{column.table}.{name}".lower() if column.table else name
        if not column.table and name in aliases and name in scope.aliases:
            if Level.COMMAND in scope.aliases[name].taint.levels:
                hidden[key] = f"({sql_text(aliases[name])})"
            continue
        found = _find(column, scope)
        if found is None and _clocked_outside(column, scope):
            return None
        if found is not None and Level.COMMAND in found.taint.levels:
            if _fills(node):
                return None
            try:
                hidden[key] = f"({_written(found, scope, 0)})"
            except _Hidden:
                return None
    queries = [_value_of(query, scope) for query in node.find_all(exp.Subquery)]
    return _replaced(text, hidden, queries) if hidden or any(queries) else text


def _value_of(query: exp.Subquery, scope: Scope) -> str:
    """The expression that a scalar subquery without rows of its own stands for: `(SELECT current_date() - 7)`, or
    `(SELECT since FROM params)` from a CTE of one row; '' for any other."""
    select = query.this
    if not _is_one_row(select, scope):
        return ""
    sources = {}
    if (source := select.args.get("from_")) is not None:
        cte = scope.ctes[source.this.name.lower()]
        if cte.relation is None:
            return ""
        sources = {(source.this.alias or source.this.name).lower(): cte.relation}
    made = Field("", CLEAN, "", node=select.expressions[0], scope=Scope(sources=sources))
    try:
        return f"({_written(made, Scope(), 0)})"
    except _Hidden:
        return ""


def _is_one_row(node: exp.Expr | None, scope: Scope) -> bool:
    """Whether a SELECT without clauses reads nothing, or one CTE of that kind."""
    if not isinstance(node, exp.Select) or any(value for key, value in node.args.items() if key in _CLAUSES):
        return False
    source = node.args.get("from_")
    if source is None:
        return True
    table = source.this
    if not isinstance(table, exp.Table) or table.args.get("db") or table.args.get("joins"):
        return False
    cte = scope.ctes.get(table.name.lower())
    return cte is not None and cte.node.this is not node and _is_one_row(cte.node.this, Scope(ctes=cte.env.ctes))


def alias_types(node: exp.Expr, scope: Scope, clause: str) -> dict[str, str]:
    """The types of the select aliases that `node` names, as only HAVING and QUALIFY may."""
    found: dict[str, str] = {}
    for name, item in _aliases(node, clause).items():
        if any(column.name.lower() == name and not column.table for column in node.find_all(exp.Column)):
            kind = expression_type(item, scope)
            if kind:
                found[name] = kind
    return found


def _aliases(node: exp.Expr, clause: str) -> dict[str, exp.Expr]:
    """The select list around a HAVING or QUALIFY, by alias."""
    if clause not in ("HAVING", "QUALIFY"):
        return {}
    select = node.find_ancestor(exp.Select)
    items = select.expressions if select is not None else []
    return {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}


def _find(column: exp.Column, scope: Scope) -> Field | None:
    parts = [part.name for part in column.parts]
    if len(parts) > 1:
        return find_qualified(Scope(sources=scope.sources), parts)
    return find_plain(scope, parts[0])[0]


def _clocked_outside(column: exp.Column, scope: Scope) -> bool:
    """Whether a scope around a subquery offers the column, and it depends on the clock."""
    here = scope.parent
    while here is not None:
        found = _find(column, here)
        if found is not None:
            return Level.COMMAND in found.taint.levels
        here = here.parent
    return False


def _written(field: Field, scope: Scope, depth: int) -> str:
    """The expression of a column over the columns that `scope` sees. Raises _Hidden."""
    node, inner = field.node, field.scope
    if node is None or not isinstance(inner, Scope) or depth > _MAX_DEPTH:
        raise _Hidden
    if any(isinstance(part, exp.Query | exp.Window) for part in node.walk()) or _fills(node):
        raise _Hidden
    copy = node.copy()
    pairs = list(zip(node.find_all(exp.Column), copy.find_all(exp.Column), strict=True))
    for original, place in pairs:
        if isinstance(original.meta.get("call"), Call):
            continue
        found = _find(original, inner)
        if found is None or (not original.table and original.name.lower() in inner.aliases and field.node is not None):
            raise _Hidden
        text = _written(found, scope, depth + 1) if Level.COMMAND in found.taint.levels else _seen(found, scope)
        made: exp.Expr = exp.Var(this=text)
        if place is copy:
            return text
        place.replace(made)
    copy.meta.pop("text", None)
    for part in copy.walk():
        part.meta.pop("text", None)
    return sql_text(copy)


def _fills(node: exp.Expr) -> bool:
    """Whether an outer join around the expression or the predicate may put NULL in its place."""
    select = node.find_ancestor(exp.Select)
    return select is None or any(join.args.get("side") for join in select.args.get("joins") or [])


def _seen(field: Field, scope: Scope) -> str:
    """The name under which `scope` sees the value of a column. Raises _Hidden."""
    visible = scope.visible()
    for alias, relation in visible:
        for item in relation.fields:
            if item.fingerprint == field.fingerprint:
                name = item.name if _PLAIN.fullmatch(item.name) else f"`{item.name.replace('`', '``')}`"
                return name if len(visible) == 1 else f"{alias}.{name}"
    raise _Hidden


def _replaced(text: str, hidden: dict[str, str], queries: list[str]) -> str | None:
    """The text with the named columns, and those subqueries that have a text, replaced."""
    read = PredicateText(text)
    if read.tree is None:
        return None
    spans = []
    for column in read.tree.find_all(exp.Column):
        key = f"{column.table}.{column.name}".lower() if column.table else column.name.lower()
        if key in hidden:
            span = column.meta.get("span")
            if span is None:
                return None
            spans.append((span, hidden[key]))
    found = list(read.tree.find_all(exp.Subquery))
    if any(queries) and len(found) != len(queries):
        return None
    for query, made in zip(found, queries, strict=False):
        if made and "span" not in query.meta:
            return None
        if made:
            spans.append((query.meta["span"], made))
    for (start, end), made in sorted(spans, reverse=True):
        text = text[:start] + made + text[end:]
    return text
