"""Turning one side of a comparison around: from `g(T) >= v` to `T >= bound`, one function at a time.

Every function allowed around the clock is monotone on a discrete domain, so `g(T) >= v` holds exactly from the least
T on, and the least T of a composition is found from the outside in (a Galois connection, step by step). A function
that is not monotone in the session's time zone is refused: the caller then evaluates the predicate at two instants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.clock_parse import PredicateText, call_name, clock_leaf, has_clock, is_stable
from spark_mv.query.clock_types import (
    DAY_UNITS,
    MONTH_UNITS,
    TIME_UNITS,
    interval_steps,
    literal_int,
    normal_type,
    type_of,
)
from spark_mv.query.clock_value import DAY, Value, operand
from spark_mv.query.clock_zone import ZoneFacts

AT_LEAST, BELOW = "at least", "below"

# spark_mv keeps T between these; outside them timestamp_seconds would overflow
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300800


class Unsolvable(Exception):
    """The predicate cannot be turned around exactly; the message says at what it failed."""


@dataclass(frozen=True)
class Form:
    """`node at least value` or `node below value`, `node` containing the clock once."""

    node: exp.Expr
    sense: str
    value: Value


@dataclass(frozen=True)
class Scene:
    """What the steps look up: the text, column types, the zone's facts."""

    text: PredicateText
    types: Mapping[str, str]
    zone: ZoneFacts | None

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name.rsplit(".", 1)[-1] for name in self.types)

    def clocked(self, node: exp.Expr) -> bool:
        return has_clock(node, self.columns)

    def row(self, node: exp.Expr) -> str:
        """Text of an expression over the row alone."""
        if self.clocked(node):
            raise Unsolvable("the clock stands on both sides")
        if not is_stable(node):
            raise Unsolvable("an expression beside the clock may differ between evaluations")
        return self.text.of(node)

    def need_dates(self) -> None:
        if self.zone is None:
            raise Unsolvable("the session time zone is not known")
        if not self.zone.monotone_dates:
            raise Unsolvable("the local date of the session time zone goes backwards at times")

    def need_fixed(self) -> None:
        if self.zone is None:
            raise Unsolvable("the session time zone is not known")
        if not self.zone.fixed:
            raise Unsolvable(
                "calendar days or months on the clock do not run evenly in a time zone with summer time; count "
                "from current_date(), or use the session time zone UTC"
            )


def chain_kind(node: exp.Expr, scene: Scene) -> str:
    """Kind of an expression that contains the clock. Raises Unsolvable for one that no step knows."""
    if isinstance(node, exp.Paren):
        return chain_kind(node.this, scene)
    leaf = clock_leaf(node, scene.columns)
    if leaf:
        kind = _LEAF_KINDS.get(leaf)
        if kind is None:
            what = "a literal such as DATE'today'" if leaf == "special" else leaf
            raise Unsolvable(f"{what} cannot be solved for the clock; write current_date() or current_timestamp()")
        return kind
    if isinstance(node, exp.Cast):
        kind = normal_type(node.to.sql("spark"))
        if kind in ("date", "timestamp", "timestamp_ntz"):
            return kind
        raise Unsolvable("a cast of the clock to another type")
    if isinstance(node, (exp.Add, exp.Sub)):
        return _arithmetic_kind(node, scene)
    name = call_name(node)
    if name in ("dateadd", "date_add", "timestampadd") and len(node.expressions) == 3:
        return "timestamp"
    if isinstance(node, exp.Extract) and str(node.this.name).upper() in ("YEAR", "YEARS"):
        return "int"
    kind = _CALL_KINDS.get(name)
    if kind is None:
        raise Unsolvable(f"{name or type(node).__name__.lower()} of the clock cannot be turned around")
    return kind


_LEAF_KINDS = {
    "current_date": "date",
    "curdate": "date",
    "current_timestamp": "timestamp",
    "now": "timestamp",
    "getdate": "timestamp",
    "localtimestamp": "timestamp_ntz",
    "unix_timestamp": "int",
}
_CALL_KINDS = {
    **dict.fromkeys(["date", "to_date", "date_add", "date_sub", "dateadd", "add_months", "last_day", "trunc"], "date"),
    **dict.fromkeys(["timestamp", "to_timestamp", "date_trunc"], "timestamp"),
    **dict.fromkeys(["datediff", "date_diff", "timestampdiff", "year"], "int"),
    **dict.fromkeys(
        ["unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "unix_date"], "int"
    ),
}


def _arithmetic_kind(node: exp.Add | exp.Sub, scene: Scene) -> str:
    clock, other = (node.left, node.right) if scene.clocked(node.left) else (node.right, node.left)
    kind = chain_kind(clock, scene)
    steps = interval_steps(other)
    if steps is not None:
        if kind == "date":
            return "timestamp" if steps[0] == "micros" else "date"
        if kind in ("timestamp", "timestamp_ntz"):
            return kind
    elif kind == "int" and type_of(other, scene.types) == "int":
        return "int"
    elif kind == "date" and type_of(other, scene.types) == "int" and (isinstance(node, exp.Add) or clock is node.left):
        return "date"
    elif isinstance(node, exp.Sub) and kind == "date" and type_of(other, scene.types) == "date":
        return "days"
    elif isinstance(node, exp.Sub) and kind == "timestamp" and type_of(other, scene.types) == "timestamp":
        return "duration"
    raise Unsolvable("arithmetic on the clock with an operand of unknown type")


def unwrap(form: Form, scene: Scene) -> tuple[str, str]:
    """(sense, bound): T at least / below a TIMESTAMP expression. Raises Unsolvable."""
    while True:
        node = form.node
        if isinstance(node, exp.Paren):
            form = Form(node.this, form.sense, form.value)
            continue
        leaf = clock_leaf(node, scene.columns)
        if leaf:
            return form.sense, _leaf_bound(leaf, form.value, scene)
        form = _step(form, scene)


def _leaf_bound(leaf: str, value: Value, scene: Scene) -> str:
    kind = _LEAF_KINDS[leaf]
    if kind == "date":
        scene.need_dates()
        # the first instant of the day; T's local date is at least v from there on
        return f"CAST({value.render()} AS TIMESTAMP)"
    if kind == "timestamp_ntz":
        scene.need_fixed()
        return f"CAST({value.render()} AS TIMESTAMP)"
    if kind == "int":
        return _from_seconds(value)
    return value.render()


def _from_seconds(value: Value) -> str:
    return f"timestamp_seconds({_clamped(value, _FIRST_SECOND, _LAST_SECOND)})"


def _clamped(value: Value, low: int, high: int) -> str:
    """The number kept within limits; NULL stays NULL (greatest and least would skip it)."""
    v = value.render()
    return f"CASE WHEN {v} < {low} THEN {low} WHEN {v} > {high} THEN {high} ELSE {v} END"


def _as(form: Form, node: exp.Expr, value: Value) -> Form:
    return Form(node, form.sense, value)


def _mirrored(form: Form, node: exp.Expr, value: Value) -> Form:
    """For `x - node at least v`: node is at most x - v; and the other way round. `value` is x - v."""
    return Form(node, BELOW if form.sense == AT_LEAST else AT_LEAST, value.next())


def to_date_value(value: Value, scene: Scene) -> Value:
    """The least date whose midnight is at least the given timestamp (or timestamp without zone)."""
    if value.kind == "timestamp":
        scene.need_dates()
    # the day after the date of the instant before: exact for midnights and for everything else
    return Value(f"CAST({value.shifted(-1).render()} AS DATE)", "date", 1)


def midnight_of(value: Value, scene: Scene) -> Value:
    """The first instant of a date."""
    scene.need_dates()
    return Value(f"CAST({value.render()} AS TIMESTAMP)", "timestamp")


def _step(form: Form, scene: Scene) -> Form:
    node = form.node
    if isinstance(node, exp.Cast):
        return _cast(form, node.this, normal_type(node.to.sql("spark")), scene)
    if isinstance(node, (exp.Add, exp.Sub)):
        return _add(form, node, scene)
    if isinstance(node, exp.Extract):
        return _year(form, node.expression, scene)
    name, args = call_name(node), node.expressions
    if name in ("date", "to_date") and len(args) == 1:
        return _cast(form, args[0], "date", scene)
    if name in ("timestamp", "to_timestamp") and len(args) == 1:
        return _cast(form, args[0], "timestamp", scene)
    if name in ("date_add", "dateadd", "date_sub") and len(args) == 2 and scene.clocked(args[0]):
        amount = _amount(args[1], scene)
        return _on_date(form, args[0], _plus_days(form.value, amount, -1 if name != "date_sub" else 1), scene)
    if name == "add_months" and len(args) == 2 and scene.clocked(args[0]):
        return _on_date(form, args[0], _minus_months(form.value, _amount(args[1], scene), scene), scene)
    if name in ("dateadd", "date_add", "timestampadd") and len(args) == 3 and scene.clocked(args[2]):
        return _add_units(form, args[0].name.upper(), args[1], args[2], scene)
    if name in ("datediff", "date_diff") and len(args) == 2:
        return _date_difference(form, args[0], args[1], scene)
    if name in ("datediff", "date_diff", "timestampdiff") and len(args) == 3:
        return _unit_difference(form, args[0].name.upper(), args[1], args[2], scene)
    if name == "date_trunc" and len(args) == 2:
        return _date_trunc(form, _unit(args[0]), args[1], scene)
    if name == "trunc" and len(args) == 2:
        return _on_date(form, args[0], _ceil_date(form.value, _unit(args[1])), scene)
    if name == "last_day" and len(args) == 1:
        return _on_date(form, args[0], Value(f"trunc({form.value.render()}, 'MONTH')", "date"), scene)
    if name == "year" and len(args) == 1:
        return _year(form, args[0], scene)
    if name in _EPOCH and len(args) == 1:
        return _epoch(form, name, args[0], scene)
    if name == "unix_date" and len(args) == 1:
        return _on_date(form, args[0], Value(f"date_from_unix_date(CAST({form.value.render()} AS INT))", "date"), scene)
    raise Unsolvable(f"{name or type(node).__name__.lower()} cannot be turned around")


def _cast(form: Form, inner: exp.Expr, kind: str | None, scene: Scene) -> Form:
    """CAST(inner AS kind): the value moves into inner's domain."""
    inner_kind = chain_kind(inner, scene)
    value = form.value
    if inner_kind == kind:
        return _as(form, inner, value)
    if kind == "date":
        return _on_date(form, inner, value, scene)
    if kind in ("timestamp", "timestamp_ntz") and inner_kind == "date":
        return _as(form, inner, to_date_value(value, scene))
    if {kind, inner_kind} == {"timestamp", "timestamp_ntz"}:
        scene.need_fixed()
        target = str(inner_kind)
        return _as(form, inner, Value(f"CAST({value.render()} AS {target.upper()})", target))
    raise Unsolvable("a cast of the clock that cannot be turned around")


def _on_date(form: Form, inner: exp.Expr, value: Value, scene: Scene) -> Form:
    """The function takes a date; inner may be a timestamp, which Spark casts."""
    kind = chain_kind(inner, scene)
    if kind == "date":
        return _as(form, inner, value)
    if kind == "timestamp":
        return _as(form, inner, midnight_of(value, scene))
    if kind == "timestamp_ntz":
        return _as(form, inner, Value(f"CAST({value.render()} AS TIMESTAMP_NTZ)", "timestamp_ntz"))
    raise Unsolvable("a date function on something else")


def _amount(node: exp.Expr, scene: Scene) -> int | str:
    """A whole number: as a literal, or the row's own expression."""
    literal = literal_int(node)
    if literal is not None:
        return literal
    if type_of(node, scene.types) != "int":
        raise Unsolvable("an amount of unknown type")
    return scene.row(node)


def _plus_days(value: Value, amount: int | str, sign: int) -> Value:
    if isinstance(amount, int):
        return value.shifted(sign * amount)
    return Value(f"{'date_add' if sign > 0 else 'date_sub'}({value.sql}, {amount})", "date", value.plus)


def _minus_months(value: Value, amount: int | str, scene: Scene) -> Value:
    """The least date d with add_months(d, amount) >= value: month ends clamp."""
    if amount == 0:
        return value
    v = value.render()
    back = str(-amount) if isinstance(amount, int) else f"-{operand(amount)}"
    moved = f"add_months({v}, {back})"
    return Value(f"date_add({moved}, IF(day({moved}) < day({v}), 1, 0))", "date")


def _minus_months_timestamp(value: Value, months: int) -> Value:
    """The least timestamp t with t + months >= value, in a zone of fixed offset."""
    if months == 0:
        return value
    v = value.render()
    moved = f"timestampadd(MONTH, {-months}, {v})"
    following = f"CAST(date_add(CAST({moved} AS DATE), 1) AS TIMESTAMP)"
    return Value(f"IF(day({moved}) < day({v}), {following}, {moved})", "timestamp")


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


def _add(form: Form, node: exp.Add | exp.Sub, scene: Scene) -> Form:
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
    if form.value.kind in ("days", "duration"):
        return _from_difference(form, clock, other, kind, scene)
    amount = _amount(other, scene)
    if kind == "date":
        return _as(form, clock, _plus_days(form.value, amount, sign))
    return _as(form, clock, _plus_int(form.value, amount, sign))


def _plus_int(value: Value, amount: int | str, sign: int) -> Value:
    if isinstance(amount, int):
        return value.shifted(sign * amount)
    return Value(f"CAST({value.sql} AS BIGINT) {'+' if sign > 0 else '-'} {operand(amount)}", "int", value.plus)


def _subtracted(form: Form, clock: exp.Expr, other: exp.Expr, scene: Scene) -> Form:
    """x - clock: falls as the clock runs."""
    kind, value = chain_kind(clock, scene), form.value
    x = scene.row(other)
    if value.kind == "days":
        return _mirrored(form, clock, Value(x, "date", -value.plus))
    if value.kind == "duration":
        scene.need_fixed()
        return _mirrored(form, clock, Value(x, "timestamp", -value.plus))
    if kind == "int":
        return _mirrored(form, clock, Value(f"CAST({operand(x)} AS BIGINT) - {operand(value.sql)}", "int", -value.plus))
    raise Unsolvable("a subtraction of the clock that cannot be turned around")


def _from_difference(form: Form, clock: exp.Expr, other: exp.Expr, kind: str, scene: Scene) -> Form:
    """clock - x compared with an interval."""
    x = scene.row(other)
    if form.value.kind == "days":
        return _as(form, clock, Value(x, "date", form.value.plus))
    scene.need_fixed()
    return _as(form, clock, Value(x, "timestamp", form.value.plus))


def _add_interval(form: Form, clock: exp.Expr, what: str, n: int, scene: Scene) -> Form:
    """clock + n months, days or microseconds, the clock being a date or a timestamp."""
    kind, value = chain_kind(clock, scene), form.value
    if kind == "date" and what == "micros":
        if abs(n) >= DAY:
            scene.need_fixed()
        return _as(form, clock, to_date_value(value.shifted(-n), scene))
    if kind == "date":
        return _as(form, clock, value.shifted(-n) if what == "days" else _minus_months(value, n, scene))
    if kind != "timestamp":
        raise Unsolvable("calendar arithmetic on a timestamp without time zone")
    if what == "micros" and abs(n) < DAY:
        return _as(form, clock, value.shifted(-n))
    return _calendar(form, clock, what, n, scene)


def _calendar(form: Form, clock: exp.Expr, what: str, n: int, scene: Scene) -> Form:
    """Calendar days or months on a timestamp: exact where the offset is fixed, and on midnights elsewhere."""
    date = _date_part(clock, scene)
    truncated = call_name(_bare(clock)) == "date_trunc" and _unit(_bare(clock).expressions[0]) in _DATE_UNITS
    if what != "micros" and scene.zone and scene.zone.clear_midnights and (date is not None or truncated):
        # midnight plus n days is the midnight n days on: count in dates instead
        day = to_date_value(form.value, scene)
        moved = day.shifted(-n) if what == "days" else _minus_months(day, n, scene)
        if date is not None:
            return _as(form, date, moved)
        return _as(form, clock, midnight_of(moved, scene))
    scene.need_fixed()
    if what == "months":
        return _as(form, clock, _minus_months_timestamp(form.value, n))
    return _as(form, clock, form.value.shifted(-n * (DAY if what == "days" else 1)))


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _add_units(form: Form, unit: str, amount: exp.Expr, clock: exp.Expr, scene: Scene) -> Form:
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
            return _as(form, clock, to_date_value(value, scene) if kind == "date" else value)
        if kind == "date":
            if not (scene.zone and scene.zone.clear_midnights):
                scene.need_fixed()
            day = to_date_value(form.value, scene)
            return _as(form, clock, day.shifted(-steps) if what == "days" else _minus_months(day, steps, scene))
        return _calendar(form, clock, what, steps, scene)
    raise Unsolvable(f"unit {unit} is not known")


def _date_of(node: exp.Expr, scene: Scene) -> str:
    text = scene.row(node)
    return text if type_of(node, scene.types) == "date" else f"CAST({text} AS DATE)"


def _date_difference(form: Form, end: exp.Expr, start: exp.Expr, scene: Scene) -> Form:
    """datediff(end, start) = days from start to end, on dates."""
    value = form.value
    days = int(value.sql) + value.plus if value.sql.lstrip("-").isdigit() else None
    if scene.clocked(end):
        x = _date_of(start, scene)
        moved = Value(x, "date", days) if days is not None else Value(f"date_add({x}, {_int(value)})", "date")
        return _on_date(form, end, moved, scene)
    x = _date_of(end, scene)
    moved = Value(x, "date", -days) if days is not None else Value(f"date_sub({x}, {_int(value)})", "date")
    mirrored = _mirrored(form, start, moved)
    return _on_date(mirrored, start, mirrored.value, scene)


def _int(value: Value) -> str:
    return f"CAST({value.render()} AS INT)"


def _unit_difference(form: Form, unit: str, start: exp.Expr, end: exp.Expr, scene: Scene) -> Form:
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
            return _as(form, clock, Value(f"date_add({moved}, IF(day({moved}) < day({x}), 1, 0))", "date"))
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
                _as(form, clock, Value(x, "date", steps))
                if forward
                else _mirrored(form, clock, Value(x, "date", -steps))
            )
        bound = Value(x, "timestamp", steps if forward else -steps)
    result = _as(form, clock, bound) if forward else _mirrored(form, clock, bound)
    if chain_kind(clock, scene) == "date":
        return _as(result, clock, to_date_value(result.value, scene))
    return result


_DATE_UNITS = {
    **dict.fromkeys(["YEAR", "YYYY", "YY"], ("YEAR", 12)),
    **dict.fromkeys(["QUARTER"], ("QUARTER", 3)),
    **dict.fromkeys(["MONTH", "MON", "MM"], ("MONTH", 1)),
    **dict.fromkeys(["WEEK"], ("WEEK", 0)),
    **dict.fromkeys(["DAY", "DD"], ("DAY", 0)),
}


def _unit(node: exp.Expr) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise Unsolvable("a unit that is not a literal")
    return str(node.this).upper()


def _ceil_date(value: Value, unit: str) -> Value:
    """The least start of a unit that is on or after the date: the unit after the one of the day before."""
    name, months = _DATE_UNITS.get(unit, ("", 0))
    if name == "DAY" or not name:
        raise Unsolvable(f"trunc to {unit}")
    floor = f"trunc({value.shifted(-1).render()}, '{name}')"
    return Value(f"add_months({floor}, {months})", "date") if months else Value(floor, "date", 7)


def _date_trunc(form: Form, unit: str, clock: exp.Expr, scene: Scene) -> Form:
    """date_trunc: the start of the unit of a timestamp (a date is cast first), in local time."""
    if unit in _DATE_UNITS:
        day = to_date_value(form.value, scene)
        if _DATE_UNITS[unit][0] != "DAY":
            day = _ceil_date(day, unit)
        kind = chain_kind(clock, scene)
        if kind == "timestamp_ntz":
            raise Unsolvable("date_trunc of a timestamp without time zone")
        return _as(form, clock, day if kind == "date" else midnight_of(day, scene))
    if unit not in ("HOUR", "MINUTE", "SECOND") or chain_kind(clock, scene) != "timestamp":
        raise Unsolvable(f"date_trunc to {unit}")
    if scene.zone is None or not (scene.zone.whole_hours or (unit != "HOUR" and scene.zone.fixed)):
        raise Unsolvable("date_trunc below the day in a time zone whose offset is not whole hours")
    floor = f"date_trunc('{unit}', {form.value.shifted(-1).render()})"
    return _as(form, clock, Value(floor, "timestamp", TIME_UNITS[unit]))


def _year(form: Form, clock: exp.Expr, scene: Scene) -> Form:
    first = f"make_date(CAST({_clamped(form.value, 1, 10000)} AS INT), 1, 1)"
    return _on_date(form, clock, Value(first, "date"), scene)


_EPOCH = {"unix_timestamp": 1, "to_unix_timestamp": 1, "unix_seconds": 1, "unix_millis": 1000, "unix_micros": 1_000_000}
_MAKERS = {1: "timestamp_seconds", 1000: "timestamp_millis", 1_000_000: "timestamp_micros"}


def _epoch(form: Form, name: str, clock: exp.Expr, scene: Scene) -> Form:
    """Whole units since 1970, rounded down."""
    scale = _EPOCH[name]
    clamped = _clamped(form.value, _FIRST_SECOND * scale, _LAST_SECOND * scale)
    value = Value(f"{_MAKERS[scale]}({clamped})", "timestamp")
    kind = chain_kind(clock, scene)
    if kind == "date":
        value = to_date_value(value, scene)
    elif kind != "timestamp":
        raise Unsolvable("seconds of something other than a timestamp")
    return _as(form, clock, value)
