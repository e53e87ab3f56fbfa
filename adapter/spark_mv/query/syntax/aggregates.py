"""Which calls aggregate, and whether one stands in an expression; which expressions are about one row."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from spark_mv.query.functions.catalogue import Kind, is_kind
from spark_mv.query.syntax.parser import Call


def called(node: exp.Expr) -> str:
    """The function that this very node calls, as written, in lower case; '' for anything else. A node that was parsed
    without the written names gives sqlglot's name of the function, which may be another one of its names."""
    call = node.meta.get("call")
    if isinstance(call, Call):
        return "" if call.keyword else call.name
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether this very node is the call of an aggregate (over a window it is none, which the caller sees)."""
    name = called(node)
    if name:
        return is_kind(name, Kind.AGGREGATE)
    return isinstance(node, exp.AggFunc)


def not_of_one_row(node: exp.Expr) -> bool:
    """Whether the expression reads more than one row, or makes several of it."""
    return generates(node) or groups_or_windows(node) or node.find(exp.Query) is not None


def generates(node: exp.Expr) -> bool:
    """Whether the expression makes rows: explode and its kin."""
    return any(is_kind(called(part), Kind.GENERATOR) for part in node.walk())


def aggregates(node: exp.Expr, but: Collection[str] = ()) -> bool:
    """Whether an aggregate function, other than those named in `but`, stands in `node`, outside windows and subqueries."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, exp.Query):
            continue
        if isinstance(item, exp.Window):
            # arguments of a window function may aggregate: sum(sum(x)) OVER (ORDER BY count(*))
            inner = item.this
            while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                inner = inner.this
            stack += [*inner.iter_expressions(), *(item.args.get("partition_by") or [])]
            if item.args.get("order") is not None:
                stack.append(item.args["order"])
            continue
        if is_aggregate(item) and called(item) not in but:
            return True
        stack += list(item.iter_expressions())
    return False


def groups_or_windows(node: exp.Expr, but: Collection[str] = ()) -> bool:
    """Whether `node` takes more than its own row: an aggregate (none of `but`) or a window stands in it, outside subqueries."""
    return aggregates(node, but) or any(
        isinstance(part, exp.Window) for part in node.walk(prune=lambda part: isinstance(part, exp.Query))
    )


def several_sets(group: exp.Group | None) -> bool:
    """Whether GROUP BY groups the rows more than once: ROLLUP, CUBE and GROUPING SETS, before the keys or behind them. Keys are NULL in some groups."""
    if group is None:
        return False
    behind = any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals"))
    return behind or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def of_rows(node: exp.Expr) -> bool:
    """Whether the node of a HAVING stands in what an aggregate or a window function reads: it has a value for each row of a group."""
    return read_by(node) is not None


def read_by(node: exp.Expr) -> exp.Expr | None:
    """The innermost aggregate, FILTER or window function that reads the node in its own SELECT; None where none does."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Having | exp.Query):
        if isinstance(above, exp.Filter | exp.Window) or is_aggregate(above):
            return above
        above = above.parent
    return None
