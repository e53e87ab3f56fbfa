"""What an expression of a query does, as far as a query about changes cares."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from spark_mv.query.delta.names import is_whole_row
from spark_mv.query.functions.catalogue import Kind, is_kind, level_of
from spark_mv.query.syntax.aggregates import groups_or_windows
from spark_mv.query.syntax.select_tree import OutItem, SelectNode, call_of, calls

_TIME_WINDOWS = frozenset({"window", "session_window", "window_time"})


def own_functions(node: exp.Expr) -> list[str]:
    """The functions called in an expression that are none of Spark's: each may be an aggregate, whatever level it was declared of."""
    return [name for name in calls(node) if level_of(name) is None]


def may_be_of_all(node: SelectNode) -> str | None:
    """A function of a select list that makes one row of all rows, if it is an aggregate: Spark has no such functions of that name, and
    no column is read beside them, which Spark would refuse beside an aggregate."""
    if node.aggregate or any(item.name is None for item in node.items):
        return None
    found: list[str] = []
    stack = [item.node for item in node.items]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Column):
            return None
        name = "" if isinstance(part, exp.Query | exp.Window) else call_of(part)
        if name and level_of(name) is None:
            found.append(name)
        elif not isinstance(part, exp.Query):
            stack += part.iter_expressions()
    return found[0] if found else None


def sees_other_rows(node: exp.Expr) -> bool:
    """Whether a grouping expression depends on more than its row: a session ends where no other event is near."""
    return "session_window" in calls(node)


def where_text(item: OutItem, aliases: Collection[str] = ()) -> str | None:
    """An item of the select list as it may stand in a condition of a subquery in WHERE: None for what only the select list
    can say (generators, windows of time, aggregates, window functions, one of the `aliases` (lower case) of items before
    it), and for a star in a function, which would see the subquery's columns."""
    only = any(name in _TIME_WINDOWS or is_kind(name, Kind.GENERATOR) for name in calls(item.node))
    only = only or groups_or_windows(item.node) or _named(item.node, aliases)
    return None if only or is_whole_row(item.node) or has_query(item.node) else item.text


def where_texts(items: Sequence[OutItem]) -> dict[str, str | None]:
    """`where_text` of the named items of a select list, by their names in lower case."""
    found: dict[str, str | None] = {}
    aliases: set[str] = set()
    for item in items:
        if item.name is not None:
            found[item.name.lower()] = where_text(item, aliases)
            if not isinstance(item.node, exp.Column) or item.node.name.lower() != item.name.lower():
                aliases.add(item.name.lower())
    return found


def _named(node: exp.Expr, names: Collection[str]) -> bool:
    """Whether one of the names stands in the expression without a table before it."""
    return any(c.parts[0].name.lower() in names for c in node.find_all(exp.Column))


def has_query(node: exp.Expr) -> bool:
    """Whether a subquery stands in the expression."""
    return node.find(exp.Query) is not None


def shortened(text: str) -> str:
    """The text in one line, as it stands in a message."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."
