"""Grouped queries whose rows can be adjusted: from the table's own row of a group and the query over the rows that came
and went, without reading the rest of the group.

The aggregates are the distributive ones of Gray et al. (Data Cube, 1996): count, sum, min and max, and their conditional
and boolean forms. Which of them survive deletions, and when the stored value does not tell (a maximum that went, a sum
that became zero), is the theory of self-maintainable views (Quass, Gupta, Mumick and Widom 1996).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from sqlglot import exp

from spark_mv.query.delta.expressions import own_functions
from spark_mv.query.delta.names import Columns, FromColumns
from spark_mv.query.syntax.aggregates import aggregates
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.select_tree import Node, NotIncremental, OutItem, SelectNode, calls


class GroupPart(str, Enum):
    """What an output column of a grouped query is made of. ROWS counts the rows of the group, all of them; COUNT those
    with a value or under a condition. PLAIN stands outside aggregates: part of what the query groups by."""

    PLAIN = "plain"
    ROWS = "rows"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


_PARTS = {
    "count": GroupPart.COUNT, "count_if": GroupPart.COUNT, "sum": GroupPart.SUM, "min": GroupPart.MIN, "max": GroupPart.MAX,
    "bool_and": GroupPart.MIN, "every": GroupPart.MIN, "bool_or": GroupPart.MAX, "some": GroupPart.MAX, "any": GroupPart.MAX,
}  # fmt: skip
_EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\((\d+), *(\d+)\)", re.IGNORECASE)
_ORDERED = re.compile(
    r"tinyint|smallint|int|bigint|decimal\(\d+, *\d+\)|boolean|date|timestamp|timestamp_ntz|string", re.IGNORECASE
)


def part_of(name: str) -> GroupPart | None:
    """What a distributive aggregate makes of its group's rows, by its name in lower case; None for every other function."""
    return _PARTS.get(name)


def parts(node: Node, types: Mapping[str, str], tables: Columns) -> dict[str, GroupPart]:
    """Output column → what it is made of. `types`: output column in lower case → its type, for those that count (kept
    ones are left out). Raises NotIncremental where the groups have to be read again."""
    if not isinstance(node, SelectNode) or not node.aggregate or node.distinct or node.windowed:
        raise NotIncremental("NO_PLAIN_GROUPS", "the outermost SELECT is no plain GROUP BY")
    if "session_window" in calls(node.tree):
        raise NotIncremental(
            "SESSION_WINDOW", "session_window: a new row can join two sessions, or move the end of one"
        )
    if node.clauses & {"HAVING", "QUALIFY"}:
        raise NotIncremental("HAVING", "HAVING: the table lacks the groups that it leaves out")
    found: dict[str, GroupPart] = {}
    for item in node.items:
        if item.name is None:
            raise NotIncremental("STAR", "a star in the select list of a GROUP BY")
        type_ = types.get(item.name.lower())
        if type_ is not None:
            found[item.name] = _part(item, type_.strip())
    if not _shows_groups(node, tables):
        raise NotIncremental("HIDDEN_GROUPS", "the query groups by an expression that is no output column")
    return found


def _part(item: OutItem, type_: str) -> GroupPart:
    node, filtered = item.node, False
    if isinstance(node, exp.Filter):
        node, filtered = node.this, True
    call = node.meta.get("call")
    if not aggregates(item.node):
        if own_functions(item.node):
            raise NotIncremental("OWN_FUNCTION", f"{item.name} calls a function that may be an aggregate")
        if not _ORDERED.fullmatch(type_):
            raise NotIncremental("GROUP_TYPE", f"{item.name} is of type {type_}, which groups can differ in unseen")
        return GroupPart.PLAIN
    name = call.name if isinstance(call, Call) else ""
    part = _PARTS.get(name)
    if part is None or node.find(exp.Distinct):
        raise NotIncremental("AGGREGATE", f"{item.name} is no count, sum, min or max by itself")
    if part is GroupPart.SUM and not is_exact(type_):
        raise NotIncremental(
            "INEXACT_SUM", f"{item.name} is a sum of {type_}, whose result depends on the order of rows"
        )
    if not _ORDERED.fullmatch(type_):
        raise NotIncremental("AGGREGATE_TYPE", f"{item.name} is of type {type_}")
    counted = [node.this, *node.expressions] if isinstance(node, exp.Count) else []
    if name == "count" and not filtered and counted and all(isinstance(c, exp.Star | exp.Literal) for c in counted):
        return GroupPart.ROWS
    return part


def is_ordered(type_: str) -> bool:
    """Whether values of the type are equal only where they are the same, and stand in one order."""
    return _ORDERED.fullmatch(type_.strip()) is not None


def is_exact(type_: str) -> bool:
    """Whether sums of the type can be added and subtracted without loss: integers, and decimals whose scale Spark keeps
    when it adds two of them (DecimalPrecision: a scale of 6 is never cut, nor any while 38 digits suffice)."""
    match = _EXACT.fullmatch(type_)
    if match is None:
        return False
    return match[1] is None or int(match[1]) <= 37 or int(match[2]) <= 6


def _shows_groups(node: SelectNode, tables: Columns) -> bool:
    """Whether each expression of GROUP BY is an output column, so that a row of the result is the whole of its group."""
    group = node.tree.args.get("group")
    if group is None or group.args.get("all"):
        return True
    scope = FromColumns.of(node, tables)
    plain = [item.node for item in node.items if not aggregates(item.node)]
    columns = {scope.whole(shown) for shown in plain}
    names = {item.name.lower() for item in node.items if item.name is not None}
    for expression in group.expressions:
        if isinstance(expression, exp.Literal) and not expression.is_string:
            continue  # a position in the select list
        if isinstance(expression, exp.Column):
            place = scope.whole(expression)  # a column of FROM comes before an output column of that name
            named = len(expression.parts) == 1 and expression.name.lower() in names and not node.generators
            if place in columns if place is not None else named:
                continue
        if expression not in plain:
            return False
    return bool(group.expressions)
