"""Dates and timestamps turned around: midnights, month ends, starts of units, clamped numbers."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spark_mv.query.solver.scene import Form, Scene, Unsolvable, chain_kind, moved_to
from spark_mv.query.solver.value import Value, operand, wide
from spark_mv.query.solver.zone import zone_facts

# spark_mv keeps T between these; outside them timestamp_seconds would overflow
FIRST_SECOND, LAST_SECOND = -62135596800, 253402300800


def clamped(value: Value, low: int, high: int) -> str:
    """The number kept within limits; NULL stays NULL (greatest and least would skip it)."""
    far = abs(high) > 2**31
    v = (replace(value, sql=wide(value.sql)) if value.plus and far else value).render()
    between = f"CAST({v} AS BIGINT)" if "DECIMAL" in v else v
    return f"CASE WHEN {v} < {low} THEN {low} WHEN {v} > {high} THEN {high} ELSE {between} END"


def to_date_value(value: Value, scene: Scene) -> Value:
    """The least date whose midnight is at least the given timestamp (or timestamp without zone)."""
    if value.kind == "timestamp":
        scene.need_dates()
    # the day after the date of the instant before: exact for midnights and for everything else
    return Value(f"CAST({value.shifted(-1).render()} AS DATE)", "date", 1)


def midnight_of(value: Value, scene: Scene) -> Value:
    """The first instant of a date."""
    scene.need_dates()
    return Value(f"CAST({value.render()} AS TIMESTAMP)", "timestamp", midnight=True)


def on_date(form: Form, inner: exp.Expr, value: Value, scene: Scene) -> Form:
    """The function takes a date; inner may be a timestamp, which Spark casts."""
    kind = chain_kind(inner, scene)
    if kind == "date":
        return moved_to(form, inner, value)
    if kind == "timestamp":
        return moved_to(form, inner, midnight_of(value, scene))
    if kind == "timestamp_ntz":
        return moved_to(form, inner, Value(f"CAST({value.render()} AS TIMESTAMP_NTZ)", "timestamp_ntz"))
    raise Unsolvable("a date function on something else")


def shifted_zone(form: Form, name: str, clock: exp.Expr, zone: exp.Expr, scene: Scene) -> Form:
    """from_utc_timestamp and to_utc_timestamp: the clock moved by another zone's offset.

    That offset jumps with summer time, so only midnights are turned around then: with the session on UTC they are the
    other zone's midnights, and its local date never goes back.
    """
    if not isinstance(zone, exp.Literal) or not zone.is_string:
        raise Unsolvable("a time zone that is not a literal")
    if chain_kind(clock, scene) not in ("timestamp", "date"):
        raise Unsolvable(f"{name} of something other than a timestamp")
    facts, value = zone_facts(zone.name), form.value
    midnight = value.midnight and value.plus == 0 and name == "from_utc_timestamp" and scene.zone and scene.zone.utc
    if not (facts.fixed or (midnight and facts.monotone_dates and facts.clear_midnights)):
        raise Unsolvable(f"the local time of {zone.name} does not run evenly")
    back = "to_utc_timestamp" if name == "from_utc_timestamp" else "from_utc_timestamp"
    moved = Value(f"{back}({value.render()}, {scene.text.of(zone)})", "timestamp")
    return moved_to(form, clock, to_date_value(moved, scene) if chain_kind(clock, scene) == "date" else moved)


def plus_days(value: Value, amount: int | str, sign: int) -> Value:
    """The date so many days later (`sign` 1) or earlier (-1)."""
    if isinstance(amount, int):
        return value.shifted(sign * amount)
    return Value(f"{'date_add' if sign > 0 else 'date_sub'}({value.sql}, {amount})", "date", value.plus)


def minus_months(value: Value, amount: int | str, scene: Scene) -> Value:
    """The least date d with add_months(d, amount) >= value: month ends clamp."""
    if amount == 0:
        return value
    v = value.render()
    back = str(-amount) if isinstance(amount, int) else f"-{operand(amount)}"
    moved = f"add_months({v}, {back})"
    return Value(f"date_add({moved}, IF(day({moved}) < day({v}), 1, 0))", "date")


DATE_UNITS = {
    **dict.fromkeys(["YEAR", "YYYY", "YY"], ("YEAR", 12)),
    **dict.fromkeys(["QUARTER"], ("QUARTER", 3)),
    **dict.fromkeys(["MONTH", "MON", "MM"], ("MONTH", 1)),
    **dict.fromkeys(["WEEK"], ("WEEK", 0)),
    **dict.fromkeys(["DAY", "DD"], ("DAY", 0)),
}


def unit_of(node: exp.Expr) -> str:
    """The unit that a string literal names, in capitals. Raises Unsolvable."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise Unsolvable("a unit that is not a literal")
    return str(node.this).upper()


def ceil_date(value: Value, unit: str) -> Value:
    """The least start of a unit that is on or after the date: the unit after the one of the day before."""
    name, months = DATE_UNITS.get(unit, ("", 0))
    if name == "DAY" or not name:
        raise Unsolvable(f"trunc to {unit}")
    floor = f"trunc({value.shifted(-1).render()}, '{name}')"
    return Value(f"add_months({floor}, {months})", "date") if months else Value(floor, "date", 7)
