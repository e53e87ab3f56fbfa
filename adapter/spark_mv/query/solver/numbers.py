"""Numbers that the clock is compared with: fractions as whole thresholds, and days counted from today."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, prod

from sqlglot import exp

from spark_mv.query.solver.intervals import interval_steps, literal_int
from spark_mv.query.solver.predicate import call_name, clock_leaf
from spark_mv.query.solver.value import Value


def whole_threshold(clock: exp.Expr, row: exp.Expr, strict: bool) -> tuple[exp.Expr, Value] | None:
    """(whole number, least value) for `clock / 60 >= 1.5` and the like; None where there is no fraction in it.

    `strict`: the comparison is with the next greater number. Spark divides whole numbers as doubles and compares doubles, so
    that 1 / 3 is not greater than 0.3333333333333333: the threshold is found by the same arithmetic.
    """
    number = _number(row)
    if number is None:
        return None
    divisors: list[int] = []
    while True:
        if isinstance(clock, exp.Paren):
            clock = clock.this
        elif isinstance(clock, exp.Div) and (divisor := literal_int(clock.right) or 0) > 0:
            clock = clock.left
            divisors.insert(0, divisor)
        else:
            break
    if not divisors:
        if number.denominator == 1:
            return None
        return clock, Value(str(floor(number) + 1 if strict else ceil(number)), "int")
    least = _least(number, divisors, strict)
    return None if least is None else (clock, Value(str(least), "int"))


def _least(number: Fraction, divisors: list[int], strict: bool) -> int | None:
    """The least whole number that, divided as doubles, is at least (`strict`: greater than) the number; None beyond the
    whole numbers that doubles hold."""
    product = prod(divisors)
    if abs(number * product) > 2**50 or product > 2**50:
        return None
    wanted = float(number)

    def reaches(whole: int) -> bool:
        quotient = float(whole)
        for divisor in divisors:
            quotient /= divisor
        return quotient > wanted if strict else quotient >= wanted

    start = floor(number * product) - 2
    if reaches(start):
        return None
    return next((whole for whole in range(start, start + 6) if reaches(whole)), None)


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
