"""What the solver looks up and passes on: a comparison in progress, column types, the zone, kinds of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.solver.intervals import is_row_interval
from spark_mv.query.solver.periods import counted_back
from spark_mv.query.solver.predicate import PredicateText, call_name, clock_leaf, has_clock, is_stable, special_word
from spark_mv.query.solver.types import interval_steps, literal_int, normal_type, type_of
from spark_mv.query.solver.value import Value
from spark_mv.query.solver.zone import ZoneFacts

AT_LEAST, BELOW = "at least", "below"


class Unsolvable(Exception):
    """The predicate cannot be turned around exactly; the message says at what it failed."""


@dataclass(frozen=True)
class Form:
    """`node at least value` or `node below value`, `node` containing the clock once."""

    node: exp.Expr
    sense: str
    value: Value


def moved_to(form: Form, node: exp.Expr, value: Value) -> Form:
    """The same comparison of another node with another value."""
    return Form(node, form.sense, value)


def mirrored(form: Form, node: exp.Expr, value: Value) -> Form:
    """For `x - node at least v`: node is at most x - v; and the other way round. `value` is x - v."""
    return Form(node, BELOW if form.sense == AT_LEAST else AT_LEAST, value.next())


_UNEVEN_DAYS = (
    "calendar days or months on the clock do not run evenly in a time zone with summer time; count from current_date()"
)


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

    def need_fixed(self, why: str = _UNEVEN_DAYS) -> None:
        if self.zone is None:
            raise Unsolvable("the session time zone is not known")
        if not self.zone.fixed:
            raise Unsolvable(f"{why}, or use the session time zone UTC")


def chain_kind(node: exp.Expr, scene: Scene) -> str:
    """Kind of an expression that contains the clock. Raises Unsolvable for one that no step knows."""
    if isinstance(node, exp.Paren):
        return chain_kind(node.this, scene)
    leaf = clock_leaf(node, scene.columns)
    if leaf:
        return leaf_kind(leaf, node)
    if isinstance(node, exp.Cast):
        kind = normal_type(node.to.sql("spark"))
        if kind in ("date", "timestamp", "timestamp_ntz"):
            return kind
        if kind == "int" and node.to.this == exp.DType.BIGINT and chain_kind(node.this, scene) in ("timestamp", "int"):
            return kind
        raise Unsolvable("a cast of the clock to another type")
    if (period := counted_back(node, scene.clocked)) is not None and chain_kind(period[0], scene) == "date":
        return "date"
    if isinstance(node, (exp.Add, exp.Sub)):
        return _arithmetic_kind(node, scene)
    if isinstance(node, exp.Mul):
        return "int"
    name = call_name(node)
    if (sum_ := tried(node)) is not None:
        return _arithmetic_kind(sum_, scene)
    if period_start(node) is not None:
        return "date"
    if name in ("from_utc_timestamp", "to_utc_timestamp") and len(node.expressions) == 2:
        return "timestamp"
    if is_year(node):
        return "int"
    if name in ("dateadd", "date_add", "timestampadd") and len(node.expressions) == 3:
        return "timestamp"
    kind = _CALL_KINDS.get(name)
    if kind is None:
        raise Unsolvable(f"{name or type(node).__name__.lower()} of the clock cannot be turned around")
    return kind


def leaf_kind(leaf: str, node: exp.Expr) -> str:
    """Kind of a clock function or of a literal such as DATE'today'."""
    word = special_word(node)
    kind = normal_type(word[1]) if word is not None else LEAF_KINDS.get(leaf)
    if kind is None:
        raise Unsolvable(f"{leaf} cannot be solved for the clock; write current_date() or current_timestamp()")
    return kind


def tried(node: exp.Expr) -> exp.Add | exp.Sub | None:
    """try_add(a, b) as a + b, try_subtract(a, b) as a - b: the clock is far from where they would overflow."""
    name = call_name(node)
    if name not in ("try_add", "try_subtract") or len(node.expressions) != 2:
        return None
    left, right = (part.copy() for part in node.expressions)
    return exp.Add(this=left, expression=right) if name == "try_add" else exp.Sub(this=left, expression=right)


def year_of(node: exp.Expr) -> exp.Expr | None:
    """What year(…), extract(YEAR FROM …) and date_part('year', …) are asked about."""
    if isinstance(node, exp.Extract):
        return node.expression if str(node.this.name).upper() in _YEARS else None
    name, arguments = call_name(node), node.expressions
    if name == "year" and len(arguments) == 1:
        return arguments[0]  # type: ignore[no-any-return]
    if name in ("date_part", "datepart") and len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
        return arguments[1] if arguments[0].name.upper() in _YEARS else None
    return None


def is_year(node: exp.Expr) -> bool:
    """Whether the expression is the year of a date."""
    return year_of(node) is not None


_YEARS = ("YEAR", "YEARS", "Y", "YR", "YRS")


def period_start(node: exp.Expr) -> tuple[exp.Expr, str] | None:
    """make_date(year(c), 1, 1) and make_date(year(c), month(c), 1) as (c, unit)."""
    if call_name(node) != "make_date" or len(node.expressions) != 3:
        return None
    first, second, third = node.expressions
    clock = year_of(first)
    if clock is None or literal_int(third) != 1:
        return None
    if literal_int(second) == 1:
        return clock, "YEAR"
    same = call_name(second) == "month" and second.expressions and second.expressions[0].sql() == clock.sql()
    return (clock, "MONTH") if same else None


LEAF_KINDS = {
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
    **dict.fromkeys(["next_day", "date_from_unix_date"], "date"),
    **dict.fromkeys(["timestamp", "to_timestamp", "date_trunc"], "timestamp"),
    **dict.fromkeys(["timestamp_seconds", "timestamp_millis", "timestamp_micros"], "timestamp"),
    **dict.fromkeys(["datediff", "date_diff", "timestampdiff"], "int"),
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
    elif kind == "timestamp" and adds_row_interval(node, other, scene):
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


def adds_row_interval(node: exp.Add | exp.Sub, other: exp.Expr, scene: Scene) -> bool:
    """Whether a sum of the clock and an interval of the row, or the clock less one."""
    if isinstance(node, exp.Sub) and other is node.left:
        return False
    return is_row_interval(other, lambda part: literal_int(part) is not None or type_of(part, scene.types) == "int")


def amount_of(node: exp.Expr, scene: Scene) -> int | str:
    """A whole number: as a literal, or the row's own expression."""
    literal = literal_int(node)
    if literal is not None:
        return literal
    if type_of(node, scene.types) != "int":
        raise Unsolvable("an amount of unknown type")
    return scene.row(node)
