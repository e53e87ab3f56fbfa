"""Intervals that do not depend on the row, in all their spellings, as months, days or microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from spark_mv.query.solver.predicate import call_name

DAY_UNITS = {"DAY": 1, "DAYS": 1, "WEEK": 7, "WEEKS": 7}
MONTH_UNITS = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12, "QUARTER": 3}
_TIME_UNITS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
TIME_UNITS = _TIME_UNITS | {unit + "S": size for unit, size in _TIME_UNITS.items()}
_DAY = 86_400_000_000
_PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)


@dataclass(frozen=True)
class _Steps:
    """`fine`: the interval has fields below the day, so that a date plus it is a timestamp. `calendar`: made by
    make_interval, whose days and months Spark adds one after the other."""

    months: int = 0
    days: int = 0
    micros: int = 0
    fine: bool = False
    calendar: bool = False

    def times(self, n: int) -> _Steps:
        return _Steps(self.months * n, self.days * n, self.micros * n, self.fine, self.calendar)

    def plus(self, other: _Steps) -> _Steps | None:
        if bool(self.months) != bool(other.months) or self.calendar != other.calendar:
            return None  # Spark adds intervals of one kind only
        return _Steps(
            self.months + other.months, self.days + other.days, self.micros + other.micros, self.fine or other.fine,
            self.calendar,
        )  # fmt: skip


def interval_steps(node: exp.Expr) -> tuple[str, int] | None:
    """('months' | 'days' | 'micros', n) of an interval without columns, sign included; None for anything else, and for
    one of months and days together.

    Days with hours are microseconds: Spark adds the days of a day-time interval as calendar days, which is the same
    in a time zone of fixed offset, and only there does the solver turn a day or more of microseconds around.
    """
    steps = _steps(node)
    if steps is None:
        return None
    if steps.months:
        return None if steps.days or steps.micros else ("months", steps.months)
    if steps.fine:
        # a date plus an interval made by make_interval stays a date
        return None if steps.calendar else ("micros", steps.days * _DAY + steps.micros)
    return "days", steps.days


def _steps(node: exp.Expr | None) -> _Steps | None:
    if isinstance(node, exp.Paren):
        return _steps(node.this)
    if isinstance(node, exp.Neg):
        inner = _steps(node.this)
        return inner.times(-1) if inner else None
    if isinstance(node, exp.Mul):
        for interval, factor in ((node.left, node.right), (node.right, node.left)):
            inner, n = _steps(interval), literal_int(factor)
            if inner is not None and n is not None:
                return inner.times(n)
        return None
    if isinstance(node, exp.Add | exp.Sub):
        left, right = _steps(node.left), _steps(node.right)
        if left is None or right is None:
            return None
        return left.plus(right.times(-1) if isinstance(node, exp.Sub) else right)
    if isinstance(node, exp.Interval):
        return _literal(node)
    return _made(node) if node is not None else None


def _literal(node: exp.Interval) -> _Steps | None:
    unit, amount = node.args.get("unit"), node.this
    if isinstance(unit, exp.IntervalSpan):
        text = amount.name if isinstance(amount, exp.Literal) else ""
        return _span(text, unit.this.name.upper(), unit.expression.name.upper())
    while isinstance(amount, exp.Paren):
        amount = amount.this
    sign = 1
    if isinstance(amount, exp.Neg):
        sign, amount = -1, amount.this
    if not isinstance(amount, exp.Literal):
        return None
    if unit is None:
        found = _parts(amount.name)
    elif isinstance(unit, exp.Var):
        found = _part(amount.name.strip(), str(unit.this).upper())
    else:
        return None
    return found.times(sign) if found else None


def _parts(text: str) -> _Steps | None:
    """`7 days 3 hours`, the text of INTERVAL '…' without a unit."""
    text = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    found: _Steps | None = None
    at = 0
    while at < len(text.rstrip()):
        match = _PART.match(text, at)
        part = _part(match[1].replace(" ", ""), match[2].upper()) if match else None
        if match is None or part is None:
            return None
        found = part if found is None else found.plus(part)
        if found is None:
            return None
        at = match.end()
    return found


def _part(number: str, unit: str) -> _Steps | None:
    """One amount of one unit; only seconds may have a fraction."""
    if not re.fullmatch(r"[+-]?\d+(\.\d+)?", number):
        return None
    if "." in number:
        micros = Decimal(number) * 1_000_000
        return _Steps(micros=int(micros), fine=True) if unit in ("SECOND", "SECONDS") and micros % 1 == 0 else None
    n = int(number)
    if unit in MONTH_UNITS or unit == "QUARTERS":
        return _Steps(months=n * MONTH_UNITS.get(unit, 3))
    if unit in DAY_UNITS:
        return _Steps(days=n * DAY_UNITS[unit])
    return _Steps(micros=n * TIME_UNITS[unit], fine=True) if unit in TIME_UNITS else None


_FIELDS = {"DAY": r"(\d+)", "HOUR": r"(\d+)", "MINUTE": r"(\d+)", "SECOND": r"(\d+(?:\.\d{1,6})?)"}
_SEPARATOR = {"HOUR": r"\s+", "MINUTE": ":", "SECOND": ":"}


def _span(text: str, first: str, last: str) -> _Steps | None:
    """`'1-2' YEAR TO MONTH`, `'3 04:05:06.789' DAY TO SECOND` and their like."""
    if (first, last) == ("YEAR", "MONTH"):
        match = re.fullmatch(r"\s*([+-]?)(\d+)-(\d+)\s*", text)
        if not match:
            return None
        months = int(match[2]) * 12 + int(match[3])
        return _Steps(months=-months if match[1] == "-" else months)
    names = list(_FIELDS)
    if first not in names or last not in names or names.index(first) >= names.index(last):
        return None
    fields = names[names.index(first) : names.index(last) + 1]
    pattern = _FIELDS[first] + "".join(_SEPARATOR[field] + _FIELDS[field] for field in fields[1:])
    match = re.fullmatch(r"\s*([+-]?)" + pattern + r"\s*", text)
    if not match:
        return None
    sizes = {"DAY": _DAY, **_TIME_UNITS}
    micros = sum(int(Decimal(part) * sizes[field]) for field, part in zip(fields, match.groups()[1:], strict=True))
    return _Steps(micros=-micros if match[1] == "-" else micros, fine=True)


def _made(node: exp.Expr) -> _Steps | None:
    """make_interval(years, months, weeks, days, hours, mins, secs), make_dt_interval and make_ym_interval of literals."""
    name = call_name(node)
    names = {
        "make_interval": ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
        "try_make_interval": ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
        "make_dt_interval": ("DAY", "HOUR", "MINUTE", "SECOND"),
        "make_ym_interval": ("YEAR", "MONTH"),
    }.get(name)
    if names is None or len(node.expressions) > len(names):
        return None
    total = _Steps()
    for unit, amount in zip(names, node.expressions, strict=False):
        sign, literal = (-1, amount.this) if isinstance(amount, exp.Neg) else (1, amount)
        if not isinstance(literal, exp.Literal) or literal.is_string:
            return None
        part = _part(literal.name, unit)
        if part is None:
            return None
        total = _Steps(
            total.months + sign * part.months, total.days + sign * part.days, total.micros + sign * part.micros
        )
    if name == "make_dt_interval":
        # always with seconds: a date plus it is a timestamp
        return _Steps(days=total.days, micros=total.micros, fine=True)
    calendar = name.endswith("make_interval")
    return _Steps(total.months, total.days, total.micros, bool(total.micros), calendar)


def is_row_interval(node: exp.Expr, whole: Callable[[exp.Expr], bool]) -> bool:
    """Whether an interval of days or less whose length the row tells: `INTERVAL 1 DAY * n`, make_dt_interval(n),
    make_interval(0, 0, 0, n). `whole` tells which expressions are whole numbers."""
    if isinstance(node, exp.Paren):
        return is_row_interval(node.this, whole)
    if isinstance(node, exp.Mul):
        sides = ((node.left, node.right), (node.right, node.left))
        return any((interval_steps(a) or ("months",))[0] != "months" and whole(b) for a, b in sides)
    arguments = node.expressions
    if call_name(node) == "make_interval":
        days = len(arguments) > 2 and all(literal_int(part) == 0 for part in arguments[:2])
        return days and all(map(whole, arguments))
    return call_name(node) == "make_dt_interval" and bool(arguments) and all(map(whole, arguments))


def literal_int(node: exp.Expr) -> int | None:
    """The value of a whole-number literal, sign, parentheses and arithmetic of literals included."""
    if isinstance(node, exp.Paren):
        return literal_int(node.this)
    if isinstance(node, exp.Neg):
        inner = literal_int(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Mul | exp.Add | exp.Sub):
        left, right = literal_int(node.left), literal_int(node.right)
        if left is None or right is None:
            return None
        return (
            left * right if isinstance(node, exp.Mul) else left + right if isinstance(node, exp.Add) else left - right
        )
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    return None
