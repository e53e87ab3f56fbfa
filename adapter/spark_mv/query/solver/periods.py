"""Starts of periods written by hand: `date_sub(current_date(), day(current_date()) - 1)` is the first of the month."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from spark_mv.query.solver.intervals import literal_int
from spark_mv.query.solver.predicate import call_name

_PARTS = {
    "day": ("MONTH", 1), "dayofmonth": ("MONTH", 1), "dayofyear": ("YEAR", 1), "dayofweek": ("SUNDAY", 1),
    "weekday": ("WEEK", 0),
}  # fmt: skip
"""Function → the period whose days it counts (WEEK begins on Monday, SUNDAY is a week from Sunday on), and its first number."""


def counted_back(node: exp.Expr, clocked: Callable[[exp.Expr], bool]) -> tuple[exp.Expr, str, int] | None:
    """(clock, period, days) of a date less the number of its day: the start of its period plus `days`. None for anything
    else. `clock` stands in it twice, in the same words."""
    found = _moved(node)
    if found is None or not clocked(found[0]):
        return None
    clock, amount, sign = found
    read = _part(amount)
    if read is None:
        return None
    part, factor, plus = read
    # clock + sign * (factor * part + plus), where the part has to be taken away
    period, first = _PARTS[call_name(part)]
    if sign * factor != -1 or part.expressions[0].sql() != clock.sql():
        return None
    return clock, period, sign * plus - first


def _moved(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, int] | None:
    """(date, days, sign) of date_sub(date, days), date_add, + and -."""
    name, arguments = call_name(node), node.expressions
    if name in ("date_add", "dateadd", "date_sub") and len(arguments) == 2:
        return arguments[0], arguments[1], -1 if name == "date_sub" else 1
    if isinstance(node, exp.Add | exp.Sub):
        return node.left, node.right, -1 if isinstance(node, exp.Sub) else 1
    return None


def _part(node: exp.Expr) -> tuple[exp.Expr, int, int] | None:
    """(call, factor, plus): the amount is factor * call + plus."""
    if isinstance(node, exp.Paren):
        return _part(node.this)
    if call_name(node) in _PARTS and len(node.expressions) == 1:
        return node, 1, 0
    if isinstance(node, exp.Neg):
        inner = _part(node.this)
        return None if inner is None else (inner[0], -inner[1], -inner[2])
    if isinstance(node, exp.Add | exp.Sub):
        sign = -1 if isinstance(node, exp.Sub) else 1
        left, right = _part(node.left), _part(node.right)
        if left is not None and (number := literal_int(node.right)) is not None:
            return left[0], left[1], left[2] + sign * number
        if right is not None and (number := literal_int(node.left)) is not None:
            return right[0], sign * right[1], number + sign * right[2]
    return None
