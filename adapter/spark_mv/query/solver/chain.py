"""Turning one side of a comparison around: from `g(T) >= v` to `T >= bound`, one function at a time.

Every function allowed around the clock is monotone on a discrete domain, so `g(T) >= v` holds exactly from the least
T on, and the least T of a composition is found from the outside in (a Galois connection, step by step). A function
that is not monotone in the session's time zone is refused: the caller then evaluates the predicate at two instants.
"""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.solver.arithmetic import add, add_units
from spark_mv.query.solver.dates import (
    DATE_UNITS,
    FIRST_SECOND,
    LAST_SECOND,
    ceil_date,
    clamped,
    midnight_of,
    minus_months,
    on_date,
    plus_days,
    shifted_zone,
    to_date_value,
    unit_of,
)
from spark_mv.query.solver.differences import date_difference, unit_difference
from spark_mv.query.solver.periods import counted_back
from spark_mv.query.solver.predicate import call_name, clock_leaf, special_word
from spark_mv.query.solver.scene import (
    LEAF_KINDS,
    Form,
    Scene,
    Unsolvable,
    amount_of,
    chain_kind,
    moved_to,
    period_start,
    tried,
    year_of,
)
from spark_mv.query.solver.types import TIME_UNITS, literal_int, normal_type
from spark_mv.query.solver.value import Value
from spark_mv.query.syntax.clock_words import CLOCK_WORDS


def unwrap(form: Form, scene: Scene) -> tuple[str, str]:
    """(sense, bound): T at least / below a TIMESTAMP expression. Raises Unsolvable."""
    while True:
        node = form.node
        if isinstance(node, exp.Paren):
            form = Form(node.this, form.sense, form.value)
            continue
        if (word := special_word(node)) is not None:
            return form.sense, _special_bound(word, form.value, scene)
        leaf = clock_leaf(node, scene.columns)
        if leaf:
            return form.sense, _leaf_bound(leaf, form.value, scene)
        form = _step(form, scene)


def _leaf_bound(leaf: str, value: Value, scene: Scene) -> str:
    kind = LEAF_KINDS[leaf]
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


def _special_bound(word: tuple[str, str], value: Value, scene: Scene) -> str:
    """DATE'tomorrow' is the day after the clock's, TIMESTAMP'tomorrow' its midnight, DATE'now' the clock's day."""
    if value.kind == "date":
        return _leaf_bound("current_date", value.shifted(-CLOCK_WORDS[word[0]]), scene)
    if word[0] == "now":
        return _leaf_bound("now" if value.kind == "timestamp" else "localtimestamp", value, scene)
    return _leaf_bound("current_date", to_date_value(value, scene).shifted(-CLOCK_WORDS[word[0]]), scene)


def _from_seconds(value: Value) -> str:
    return f"timestamp_seconds({clamped(value, FIRST_SECOND, LAST_SECOND)})"


def _step(form: Form, scene: Scene) -> Form:
    node = form.node
    if isinstance(node, exp.Cast):
        return _cast(form, node.this, normal_type(node.to.sql("spark")), scene)
    if (period := counted_back(node, scene.clocked)) is not None:
        return _since_start(form, *period, scene)
    if isinstance(node, exp.Mul):
        return _multiplied(form, node, scene)
    if isinstance(node, (exp.Add, exp.Sub)):
        return add(form, node, scene)
    if (clock := year_of(node)) is not None:
        return _year(form, clock, scene)
    if (sum_ := tried(node)) is not None:
        return add(form, sum_, scene)
    if (made := period_start(node)) is not None:
        return on_date(form, made[0], ceil_date(form.value, made[1]), scene)
    name, args = call_name(node), node.expressions
    if name in ("date", "to_date") and len(args) == 1:
        return _cast(form, args[0], "date", scene)
    if name in ("timestamp", "to_timestamp") and len(args) == 1:
        return _cast(form, args[0], "timestamp", scene)
    if name in ("date_add", "dateadd", "date_sub") and len(args) == 2 and scene.clocked(args[0]):
        amount = amount_of(args[1], scene)
        return on_date(form, args[0], plus_days(form.value, amount, -1 if name != "date_sub" else 1), scene)
    if name == "add_months" and len(args) == 2 and scene.clocked(args[0]):
        return on_date(form, args[0], minus_months(form.value, amount_of(args[1], scene), scene), scene)
    if name in ("dateadd", "date_add", "timestampadd") and len(args) == 3 and scene.clocked(args[2]):
        return add_units(form, args[0].name.upper(), args[1], args[2], scene)
    if name in ("datediff", "date_diff") and len(args) == 2:
        return date_difference(form, args[0], args[1], scene)
    if name in ("datediff", "date_diff", "timestampdiff") and len(args) == 3:
        return unit_difference(form, args[0].name.upper(), args[1], args[2], scene)
    if name == "date_trunc" and len(args) == 2:
        return _date_trunc(form, unit_of(args[0]), args[1], scene)
    if name == "trunc" and len(args) == 2:
        return on_date(form, args[0], ceil_date(form.value, unit_of(args[1])), scene)
    if name == "last_day" and len(args) == 1:
        return on_date(form, args[0], Value(f"trunc({form.value.render()}, 'MONTH')", "date"), scene)
    if name == "next_day" and len(args) == 2 and isinstance(args[1], exp.Literal):
        # the first such weekday from the value on comes a week after the one that must have been reached
        found = f"next_day({form.value.shifted(-1).render()}, {scene.text.of(args[1])})"
        return on_date(form, args[0], Value(found, "date", -7), scene)
    if name in ("from_utc_timestamp", "to_utc_timestamp") and len(args) == 2:
        return shifted_zone(form, name, args[0], args[1], scene)
    if name in _EPOCH_MAKERS and len(args) == 1:
        return moved_to(form, args[0], _at_least_units(_EPOCH_MAKERS[name], form.value))
    if name == "date_from_unix_date" and len(args) == 1:
        return moved_to(form, args[0], Value(f"unix_date({form.value.render()})", "int"))
    if name in _EPOCH and len(args) == 1:
        return _epoch(form, name, args[0], scene)
    if name == "unix_date" and len(args) == 1:
        return on_date(form, args[0], Value(f"date_from_unix_date(CAST({form.value.render()} AS INT))", "date"), scene)
    raise Unsolvable(f"{name or type(node).__name__.lower()} cannot be turned around")


def _since_start(form: Form, clock: exp.Expr, period: str, days: int, scene: Scene) -> Form:
    """The start of a period plus some days."""
    value = form.value.shifted(-days)
    if period == "SUNDAY":
        following = f"next_day({value.shifted(-1).render()}, 'SUN')"  # the least Sunday that is not before the value
        return on_date(form, clock, Value(following, "date"), scene)
    return on_date(form, clock, ceil_date(value, period), scene)


def _multiplied(form: Form, node: exp.Mul, scene: Scene) -> Form:
    """clock * n, in whole numbers: at least v from ceil(v / n) on."""
    clock, factor = (node.left, node.right) if scene.clocked(node.left) else (node.right, node.left)
    times = literal_int(factor)
    if times is None or times < 1 or chain_kind(clock, scene) != "int":
        raise Unsolvable("a product of the clock that cannot be turned around")
    v = f"CAST({form.value.render()} AS BIGINT)"
    return moved_to(
        form, clock, Value(f"({v} - pmod({v}, {times})) DIV {times} + IF(pmod({v}, {times}) > 0, 1, 0)", "int")
    )


def _cast(form: Form, inner: exp.Expr, kind: str | None, scene: Scene) -> Form:
    """CAST(inner AS kind): the value moves into inner's domain."""
    inner_kind = chain_kind(inner, scene)
    value = form.value
    if inner_kind == kind:
        return moved_to(form, inner, value)
    if kind == "date":
        return on_date(form, inner, value, scene)
    if kind in ("timestamp", "timestamp_ntz") and inner_kind == "date":
        return moved_to(form, inner, to_date_value(value, scene))
    if kind == "timestamp" and inner_kind == "int":
        return moved_to(form, inner, _at_least_units("unix_seconds", value))
    if kind == "int" and inner_kind == "timestamp":
        return _epoch(form, "unix_seconds", inner, scene)
    if {kind, inner_kind} == {"timestamp", "timestamp_ntz"}:
        scene.need_fixed()
        target = str(inner_kind)
        return moved_to(form, inner, Value(f"CAST({value.render()} AS {target.upper()})", target))
    raise Unsolvable("a cast of the clock that cannot be turned around")


def _date_trunc(form: Form, unit: str, clock: exp.Expr, scene: Scene) -> Form:
    """date_trunc: the start of the unit of a timestamp (a date is cast first), in local time."""
    if unit in DATE_UNITS:
        day = to_date_value(form.value, scene)
        if DATE_UNITS[unit][0] != "DAY":
            day = ceil_date(day, unit)
        kind = chain_kind(clock, scene)
        if kind == "timestamp_ntz":
            raise Unsolvable("date_trunc of a timestamp without time zone")
        return moved_to(form, clock, day if kind == "date" else midnight_of(day, scene))
    if unit not in ("HOUR", "MINUTE", "SECOND") or chain_kind(clock, scene) != "timestamp":
        raise Unsolvable(f"date_trunc to {unit}")
    if scene.zone is None or not (scene.zone.whole_hours or (unit != "HOUR" and scene.zone.fixed)):
        raise Unsolvable("date_trunc below the day in a time zone whose offset is not whole hours")
    floor = f"date_trunc('{unit}', {form.value.shifted(-1).render()})"
    return moved_to(form, clock, Value(floor, "timestamp", TIME_UNITS[unit]))


def _year(form: Form, clock: exp.Expr, scene: Scene) -> Form:
    first = f"make_date(CAST({clamped(form.value, 1, 10000)} AS INT), 1, 1)"
    return on_date(form, clock, Value(first, "date"), scene)


_EPOCH = {"unix_timestamp": 1, "to_unix_timestamp": 1, "unix_seconds": 1, "unix_millis": 1000, "unix_micros": 1_000_000}


_EPOCH_MAKERS = {
    "timestamp_seconds": "unix_seconds", "timestamp_millis": "unix_millis", "timestamp_micros": "unix_micros"
}  # fmt: skip


def _at_least_units(function: str, value: Value) -> Value:
    """The least whole number of units since 1970 whose instant is at least the value."""
    return Value(f"{function}({value.shifted(-1).render()})", "int", 1)


_MAKERS = {1: "timestamp_seconds", 1000: "timestamp_millis", 1_000_000: "timestamp_micros"}


def _epoch(form: Form, name: str, clock: exp.Expr, scene: Scene) -> Form:
    """Whole units since 1970, rounded down."""
    scale = _EPOCH[name]
    limited = clamped(form.value, FIRST_SECOND * scale, LAST_SECOND * scale)
    value = Value(f"{_MAKERS[scale]}({limited})", "timestamp")
    kind = chain_kind(clock, scene)
    if kind == "date":
        value = to_date_value(value, scene)
    elif kind != "timestamp":
        raise Unsolvable("seconds of something other than a timestamp")
    return moved_to(form, clock, value)
