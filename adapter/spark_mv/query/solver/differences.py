"""datediff and timestampdiff turned around."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spark_mv.query.solver.dates import clamped, on_date, to_date_value
from spark_mv.query.solver.scene import Form, Scene, Unsolvable, chain_kind, mirrored, moved_to
from spark_mv.query.solver.types import DAY_UNITS, MONTH_UNITS, TIME_UNITS, type_of
from spark_mv.query.solver.value import DAY, Value, wide

_MOST_DAYS = 2_800_000


def date_difference(form: Form, end: exp.Expr, start: exp.Expr, scene: Scene) -> Form:
    """datediff(end, start) = days from start to end, on dates."""
    value = form.value
    days = int(value.sql) + value.plus if value.sql.lstrip("-").isdigit() else None
    days = max(-_MOST_DAYS, min(days, _MOST_DAYS)) if days is not None else None
    if scene.clocked(end):
        x = _date_of(start, scene)
        moved = Value(x, "date", days) if days is not None else Value(f"date_add({x}, {_int(value)})", "date")
        return on_date(form, end, moved, scene)
    x = _date_of(end, scene)
    moved = Value(x, "date", -days) if days is not None else Value(f"date_sub({x}, {_int(value)})", "date")
    flipped = mirrored(form, start, moved)
    return on_date(flipped, start, flipped.value, scene)


def _date_of(node: exp.Expr, scene: Scene) -> str:
    text = scene.row(node)
    return text if type_of(node, scene.types) == "date" else f"CAST({text} AS DATE)"


def _int(value: Value) -> str:
    """As a number of days that no two dates of a run exceed, and that leads to no year behind 9999: 2147483647 is how people write `no limit`, and one more is no INT."""
    return f"CAST({clamped(replace(value, sql=wide(value.sql)), -_MOST_DAYS, _MOST_DAYS)} AS INT)"


def unit_difference(form: Form, unit: str, start: exp.Expr, end: exp.Expr, scene: Scene) -> Form:
    """timestampdiff(unit, start, end): end - start in whole units, cut off towards zero, on local time."""
    value = form.value
    forward = scene.clocked(end)
    clock, row = (end, start) if forward else (start, end)
    n = int(value.sql) + value.plus if value.sql.lstrip("-").isdigit() else None
    if n is None:
        raise Unsolvable("a difference compared with something other than a literal")
    dates = chain_kind(clock, scene) == "date" and type_of(row, scene.types) == "date" and unit not in TIME_UNITS
    if not (dates and scene.zone and scene.zone.clear_midnights):
        scene.need_fixed()
    if chain_kind(clock, scene) == "timestamp_ntz":
        raise Unsolvable("a difference of timestamps without time zone")
    x = scene.row(row) if dates else f"CAST({scene.row(row)} AS TIMESTAMP)"
    if unit in MONTH_UNITS:
        if not forward or n < 1:
            raise Unsolvable("a difference in months that cannot be turned around")
        months = n * MONTH_UNITS[unit]
        if dates:
            moved = f"add_months({x}, {months})"
            return moved_to(form, clock, Value(f"date_add({moved}, IF(day({moved}) < day({x}), 1, 0))", "date"))
        moved = f"timestampadd(MONTH, {months}, {x})"
        bound = Value(f"IF(day({moved}) < day({x}), timestampadd(DAY, 1, {moved}), {moved})", "timestamp")
    else:
        size = DAY_UNITS.get(unit) if dates else (DAY_UNITS.get(unit, 0) * DAY or TIME_UNITS.get(unit))
        if not size:
            raise Unsolvable(f"unit {unit} is not known")
        # cut towards zero: n > 0 needs n units, n <= 0 is reached just after n - 1 units
        steps = n * size if n > 0 else (n - 1) * size + 1
        if dates:
            return (
                moved_to(form, clock, Value(x, "date", steps))
                if forward
                else mirrored(form, clock, Value(x, "date", -steps))
            )
        bound = Value(x, "timestamp", steps if forward else -steps)
    result = moved_to(form, clock, bound) if forward else mirrored(form, clock, bound)
    if chain_kind(clock, scene) == "date":
        return moved_to(result, clock, to_date_value(result.value, scene))
    return result
