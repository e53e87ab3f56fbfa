"""`clock + x`, `clock - x`, `x - clock` and timestampadd turned around."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.solver.dates import (
    DATE_UNITS,
    midnight_of,
    minus_months,
    plus_days,
    to_date_value,
    unit_of,
)
from spark_mv.query.solver.predicate import call_name
from spark_mv.query.solver.scene import (
    Form,
    Scene,
    Unsolvable,
    adds_row_interval,
    amount_of,
    chain_kind,
    mirrored,
    moved_to,
)
from spark_mv.query.solver.types import DAY_UNITS, MONTH_UNITS, TIME_UNITS, interval_steps, literal_int, normal_type
from spark_mv.query.solver.value import DAY, Value, operand, wide


def add(form: Form, node: exp.Add | exp.Sub, scene: Scene) -> Form:
    """`clock + x` or `x - clock` at least (or below) a value: the clock alone, and the value moved. Raises Unsolvable."""
    left_clock = scene.clocked(node.left)
    if left_clock and scene.clocked(node.right):
        raise Unsolvable("the clock stands on both sides")
    clock, other = (node.left, node.right) if left_clock else (node.right, node.left)
    minus = isinstance(node, exp.Sub)
    if minus and not left_clock:
        return _subtracted(form, clock, other, scene)
    sign = 1 if minus else -1
    kind = chain_kind(clock, scene)
    steps = interval_steps(other)
    if steps is not None:
        return _add_interval(form, clock, steps[0], -sign * steps[1], scene)
    if kind == "timestamp" and form.value.kind == "timestamp" and adds_row_interval(node, other, scene):
        scene.need_fixed()
        moved = f"{operand(form.value.render())} {'+' if minus else '-'} {operand(scene.row(other))}"
        return moved_to(form, clock, Value(moved, "timestamp"))
    if form.value.kind in ("days", "duration"):
        return _from_difference(form, clock, other, kind, scene)
    amount = amount_of(other, scene)
    if kind == "date":
        return moved_to(form, clock, plus_days(form.value, amount, sign))
    return moved_to(form, clock, _plus_int(form.value, amount, sign))


def _plus_int(value: Value, amount: int | str, sign: int) -> Value:
    if isinstance(amount, int):
        return value.shifted(sign * amount)
    return Value(f"{wide(value.sql)} {'+' if sign > 0 else '-'} {operand(amount)}", "int", value.plus)


def _subtracted(form: Form, clock: exp.Expr, other: exp.Expr, scene: Scene) -> Form:
    """x - clock: falls as the clock runs."""
    kind, value = chain_kind(clock, scene), form.value
    x = scene.row(other)
    if value.kind == "days":
        return mirrored(form, clock, Value(x, "date", -value.plus))
    if value.kind == "duration":
        scene.need_fixed()
        return mirrored(form, clock, Value(x, "timestamp", -value.plus))
    if kind == "int":
        return mirrored(form, clock, Value(f"{wide(operand(x))} - {operand(value.sql)}", "int", -value.plus))
    raise Unsolvable("a subtraction of the clock that cannot be turned around")


def _from_difference(form: Form, clock: exp.Expr, other: exp.Expr, kind: str, scene: Scene) -> Form:
    """clock - x compared with an interval."""
    x = scene.row(other)
    if form.value.kind == "days":
        return moved_to(form, clock, Value(x, "date", form.value.plus))
    scene.need_fixed()
    return moved_to(form, clock, Value(x, "timestamp", form.value.plus))


def _add_interval(form: Form, clock: exp.Expr, what: str, n: int, scene: Scene) -> Form:
    """clock + n months, days or microseconds, the clock being a date or a timestamp."""
    kind, value = chain_kind(clock, scene), form.value
    if kind == "date" and what == "micros":
        if abs(n) >= DAY:
            scene.need_fixed()
        return moved_to(form, clock, to_date_value(value.shifted(-n), scene))
    if kind == "date":
        return moved_to(form, clock, value.shifted(-n) if what == "days" else minus_months(value, n, scene))
    if kind == "timestamp_ntz":
        # local time knows no gaps: a day is 24 hours there
        if what == "months":
            raise Unsolvable(_UNEVEN_MONTHS)
        return moved_to(form, clock, value.shifted(-n * (DAY if what == "days" else 1)))
    if kind != "timestamp":
        raise Unsolvable("an interval added to something other than a date or timestamp")
    if what == "micros" and abs(n) < DAY:
        return moved_to(form, clock, value.shifted(-n))
    return _calendar(form, clock, what, n, scene)


# March 28, 23:00 and March 29, 01:00 minus a month are February 28, 23:00 and 01:00: the later instant is the earlier one
_UNEVEN_MONTHS = (
    "a month before an instant jumps back at month ends, where the days that the shorter month lacks become its last day "
    "at an earlier time; count months from current_date()"
)


def _calendar(form: Form, clock: exp.Expr, what: str, n: int, scene: Scene) -> Form:
    """Calendar days or months on a timestamp: exact where the offset is fixed, and on midnights elsewhere."""
    date = _date_part(clock, scene)
    truncated = call_name(_bare(clock)) == "date_trunc" and unit_of(_bare(clock).expressions[0]) in DATE_UNITS
    if what != "micros" and scene.zone and scene.zone.clear_midnights and (date is not None or truncated):
        # midnight plus n days is the midnight n days on: count in dates instead
        day = to_date_value(form.value, scene)
        moved = day.shifted(-n) if what == "days" else minus_months(day, n, scene)
        if date is not None:
            return moved_to(form, date, moved)
        return moved_to(form, clock, midnight_of(moved, scene))
    scene.need_fixed()
    if what == "months":
        # a midnight is reached with its day, whatever the time of day
        if not (form.value.midnight and form.value.plus == 0):
            raise Unsolvable(_UNEVEN_MONTHS)
        return moved_to(form, clock, midnight_of(minus_months(to_date_value(form.value, scene), n, scene), scene))
    return moved_to(form, clock, form.value.shifted(-n * (DAY if what == "days" else 1)))


def _date_part(node: exp.Expr, scene: Scene) -> exp.Expr | None:
    """For an expression that is always a local midnight, the date expression whose midnight it is."""
    while isinstance(node, exp.Paren):
        node = node.this
    name = call_name(node)
    if isinstance(node, exp.Cast) and normal_type(node.to.sql("spark")) == "timestamp":
        return node.this if chain_kind(node.this, scene) == "date" else None
    if name in ("timestamp", "to_timestamp") and len(node.expressions) == 1:
        return node.expressions[0] if chain_kind(node.expressions[0], scene) == "date" else None
    return None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def add_units(form: Form, unit: str, amount: exp.Expr, clock: exp.Expr, scene: Scene) -> Form:
    """timestampadd(unit, n, clock): a timestamp; hours and less count elapsed time."""
    n = literal_int(amount)
    if n is None:
        raise Unsolvable("an amount that is not a literal")
    kind = chain_kind(clock, scene)
    if kind == "timestamp_ntz":
        raise Unsolvable("calendar arithmetic on a timestamp without time zone")
    for units, what in ((TIME_UNITS, "micros"), (DAY_UNITS, "days"), (MONTH_UNITS, "months")):
        if unit not in units:
            continue
        steps = n * units[unit]
        if what == "micros":
            value = form.value.shifted(-steps)
            return moved_to(form, clock, to_date_value(value, scene) if kind == "date" else value)
        if kind == "date":
            if not (scene.zone and scene.zone.clear_midnights):
                scene.need_fixed()
            day = to_date_value(form.value, scene)
            return moved_to(form, clock, day.shifted(-steps) if what == "days" else minus_months(day, steps, scene))
        return _calendar(form, clock, what, steps, scene)
    raise Unsolvable(f"unit {unit} is not known")
