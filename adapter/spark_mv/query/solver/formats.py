"""The clock as text: `date_format(now(), 'yyyy-MM') = date_format(ts, 'yyyy-MM')`, `ds = date_format(now(), 'yyyyMMdd')`.

Only equality is solved: strings that are no dates have their place in the order of strings too, but equal none.
"""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.solver.bounds import Bounds, conjunction
from spark_mv.query.solver.chain import unwrap
from spark_mv.query.solver.predicate import call_name
from spark_mv.query.solver.scene import AT_LEAST, BELOW, Form, Scene
from spark_mv.query.solver.types import type_of
from spark_mv.query.solver.value import Value

_UNITS = {frozenset({"yyyy"}): "YEAR", frozenset({"yyyy", "MM"}): "MONTH", frozenset({"yyyy", "MM", "dd"}): "DAY"}


def equal_text(left: exp.Expr, right: exp.Expr, scene: Scene) -> Bounds | None:
    """The bounds of `left = right`, one of them being the clock as text; None for anything else."""
    for clock, row in ((left, right), (right, left)):
        written = _formatted(clock)
        if written is None or not scene.clocked(written[0]) or scene.clocked(row):
            continue
        unit = _unit(written[1])
        if unit is None:
            return None
        node = _period(written[0], unit)
        other = _formatted(row)
        if other is not None and type_of(other[0], scene.types) in ("date", "timestamp", "timestamp_ntz"):
            if other[1] != written[1]:
                return None
            start, guard = _start(scene.row(other[0]), unit), None
        elif type_of(row, scene.types) == "string":
            read = f"try_to_timestamp({scene.row(row)}, '{written[1]}')"
            # '2024-1-5' may be read as a date, and is not how the clock is written
            start, guard = _start(read, unit), f"date_format({read}, '{written[1]}') = {scene.row(row)}"
        else:
            return None
        value = Value(start, "date")
        lower = unwrap(Form(node, AT_LEAST, value), scene)[1]
        upper = unwrap(Form(node, BELOW, value.next()), scene)[1]
        return Bounds(lower, upper, conjunction(guard, None if guard else f"({start}) IS NOT NULL"))
    return None


def _formatted(node: exp.Expr) -> tuple[exp.Expr, str] | None:
    """(what, format) of date_format(what, 'format')."""
    while isinstance(node, exp.Paren):
        node = node.this
    arguments = node.expressions
    if call_name(node) == "date_format" and len(arguments) == 2 and isinstance(arguments[1], exp.Literal):
        return arguments[0], str(arguments[1].name)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.TEXT and call_name(node.this) != "":
        inner = call_name(node.this)
        return (node.this, "yyyy-MM-dd") if inner in ("current_date", "curdate", "to_date", "date") else None
    return None


def _unit(pattern: str) -> str | None:
    """The period that all dates with the same text share."""
    parts: list[str] = []
    for char in pattern:
        if char.isalpha() and parts and parts[-1][0] == char:
            parts[-1] += char
        else:
            parts.append(char)
    if any(not part[0].isalpha() and part not in "-/._ " for part in parts):
        return None
    letters = [part for part in parts if part[0].isalpha()]
    return _UNITS.get(frozenset(letters)) if len(letters) == len(set(letters)) else None


def _period(clock: exp.Expr, unit: str) -> exp.Expr:
    if unit == "DAY":
        return exp.Anonymous(this="to_date", expressions=[clock.copy()])
    return exp.Anonymous(this="trunc", expressions=[clock.copy(), exp.Literal.string(unit)])


def _start(text: str, unit: str) -> str:
    return f"CAST({text} AS DATE)" if unit == "DAY" else f"trunc({text}, '{unit}')"
