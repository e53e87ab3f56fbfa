"""Numbers that the clock is compared with: fractions as whole thresholds, and days counted from today."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from spark_mv.query.solver.intervals import interval_steps, literal_int
from spark_mv.query.solver.predicate import call_name, clock_leaf
from spark_mv.query.solver.value import Value


def whole_threshold(clock: exp.Expr, row: exp.Expr, strict: bool) -> tuple[exp.Expr, Value] | None:
    """(whole number, least value) for `clock / 60 >= 1.5` and the like; None where there is no fraction in it.

    `strict`: the comparison is with the next greater number. Exact because a quotient of doubles below 2^53 and a whole
    divisor never rounds across a whole multiple of it.
    """
    number = _number(row)
    if number is None:
        return None
    divided = False
    while True:
        if isinstance(clock, exp.Paren):
            clock = clock.this
        elif isinstance(clock, exp.Div) and (divisor := literal_int(clock.right) or 0) > 0:
            clock, number, divided = clock.left, number * divisor, True
        else:
            break
    if not divided and number.denominator == 1:
        return None
    return clock, Value(str(floor(number) + 1 if strict else ceil(number)), "int")


def _number(node: exp.Expr) -> Fraction | None:
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return Fraction(node.name)
        except ValueError:
            return None
    return None


def days_from_today(node: exp.Expr) -> int | None:
    """The constant number of days by which a date expression differs from current_date(), None for any other."""
    if isinstance(node, exp.Paren):
        return days_from_today(node.this)
    if clock_leaf(node) in ("current_date", "curdate"):
        return 0
    name, arguments = call_name(node), node.expressions
    if name in ("date_add", "date_sub", "dateadd") and len(arguments) == 2:
        base, amount = days_from_today(arguments[0]), literal_int(arguments[1])
        if base is None or amount is None:
            return None
        return base - amount if name == "date_sub" else base + amount
    if isinstance(node, exp.Add | exp.Sub):
        base, amount, steps = days_from_today(node.left), literal_int(node.right), interval_steps(node.right)
        if steps is not None and steps[0] == "days":
            amount = steps[1]
        if base is None or amount is None:
            return None
        return base - amount if isinstance(node, exp.Sub) else base + amount
    return None
