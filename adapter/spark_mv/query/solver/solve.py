"""Predicates on the clock, solved: from `created_at > current_date() - 30` to the instants at which it holds.

The result is exact to the microsecond or there is none; an unsolved predicate is evaluated at two instants instead.
Assumes spark.sql.timestampType=TIMESTAMP_LTZ, Spark's default.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_mv.query.solver.bounds import Bounds, both, either
from spark_mv.query.solver.chain import unwrap
from spark_mv.query.solver.conditions import choice, condition
from spark_mv.query.solver.formats import equal_text
from spark_mv.query.solver.numbers import days_from_today, whole_threshold
from spark_mv.query.solver.predicate import PredicateText, call_name, is_stable, special_word
from spark_mv.query.solver.scene import AT_LEAST, BELOW, Form, Scene, Unsolvable, chain_kind
from spark_mv.query.solver.types import interval_steps, literal_int, type_of
from spark_mv.query.solver.value import DAY, Value
from spark_mv.query.solver.zone import zone_facts
from spark_mv.query.syntax.clock_words import clock_text, constant_text, is_clock_word
from spark_mv.query.syntax.source_text import SourceTextError

__all__ = ["Bounds", "Unsolvable", "solve", "solve_or_reason"]


def solve(
    predicate: exp.Expr | str, types: Mapping[str, str] | None = None, time_zone: str | None = None
) -> Bounds | None:
    """The bounds of a boolean expression in the as-of instant, or None when there is no exact solution.

    `types`: column as the predicate writes it (`name` or `alias.name`) → Spark type. `time_zone`: the session's;
    without it, whatever depends on local dates is not solved. Prefer text: it comes out as it was written.

    >>> solve("ts > current_timestamp()", {"ts": "timestamp"}).valid_to
    'ts'
    """
    found = solve_or_reason(predicate, types, time_zone)
    return found if isinstance(found, Bounds) else None


def solve_or_reason(
    predicate: exp.Expr | str,
    types: Mapping[str, str] | None = None,
    time_zone: str | None = None,
) -> Bounds | str:
    """As `solve`, with the reason instead of None."""
    text = PredicateText(predicate if isinstance(predicate, str) else predicate.sql("spark", comments=False))
    if text.tree is None:
        return "the predicate could not be read"
    lowered = {name.lower().replace("`", ""): kind for name, kind in (types or {}).items()}
    try:
        if any(literal.is_string and is_clock_word(literal.name) for literal in text.tree.find_all(exp.Literal)):
            text.tree = text.tree.copy()  # the same text may be read beside other types
            _typed_words(text.tree, lowered)
        _check_words(text.tree, lowered)
        scene = Scene(text, lowered, zone_facts(time_zone) if time_zone else None)
        return _boolean(text.tree, False, scene)
    except (Unsolvable, SourceTextError, ValueError) as error:
        return str(error)


def _typed_words(tree: exp.Expr, types: Mapping[str, str]) -> None:
    """Writes `d = 'today'` as `d = CAST('today' AS DATE)`, which is how Spark reads it beside a date or timestamp."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)):
        operands = list(node.iter_expressions())
        kinds = {type_of(operand, types) for operand in operands} & {"date", "timestamp", "timestamp_ntz"}
        literals = [operand for operand in operands if isinstance(operand, exp.Literal)] if len(kinds) == 1 else []
        for literal in literals:
            cast = exp.cast(literal.copy(), str(next(iter(kinds))))
            if special_word(cast) is not None:
                cast.meta.update(literal.meta)
                literal.replace(cast)


def _check_words(tree: exp.Expr, types: Mapping[str, str]) -> None:
    """Raises Unsolvable for a string that may be the clock and is not written as a date or timestamp."""
    for literal in tree.find_all(exp.Literal, exp.RawString):
        text = constant_text(literal)
        parent = literal.parent
        if text is None or clock_text(text, "timestamp") is None or isinstance(parent, exp.Interval):
            continue
        if isinstance(parent, exp.Binary) and "string" in {
            type_of(side, types) for side in (parent.left, parent.right) if side is not literal
        }:
            continue
        if not isinstance(parent, exp.Expr) or special_word(parent) is None:
            raise Unsolvable(f"'{text}' may be the clock; write current_date() or current_timestamp()")


_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LTE, exp.GTE: exp.LT, exp.LT: exp.GTE, exp.LTE: exp.GT}
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}

_SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def _boolean(node: exp.Expr, negated: bool, scene: Scene) -> Bounds:
    if isinstance(node, exp.Paren):
        return _boolean(node.this, negated, scene)
    if not scene.clocked(node):
        if not is_stable(node):
            raise Unsolvable("a condition beside the clock may differ between evaluations, or is a subquery")
        text = scene.text.of(node)
        return Bounds(guard=f"NOT ({text})" if negated else text)
    if isinstance(node, exp.Not):
        return _boolean(node.this, not negated, scene)
    if isinstance(node, (exp.And, exp.Or)):
        return _combine(
            isinstance(node, exp.And) != negated,
            _boolean(node.left, negated, scene),
            _boolean(node.right, negated, scene),
        )
    found = condition(node, negated, scene, _boolean)
    if found is not None:
        return found
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = _comparison(exp.LT if negated else exp.GTE, node.this, node.args["low"], scene)
        high = _comparison(exp.GT if negated else exp.LTE, node.this, node.args["high"], scene)
        return _combine(not negated, low, high)
    if isinstance(node, exp.In) and len(node.expressions) == 1 and not node.args.get("query"):
        return _equal(node.this, node.expressions[0], negated, scene)
    if isinstance(node, exp.In) and not negated and not node.args.get("query"):
        return _one_of(node, scene)
    if isinstance(node, exp.EQ) or (isinstance(node, exp.NullSafeEQ) and not negated):
        if isinstance(node, exp.NullSafeEQ):
            _check_not_null(node.left, node.right, scene)
        if not negated and (bounds := equal_text(node.left, node.right, scene)) is not None:
            return bounds
        return _equal(node.left, node.right, negated, scene)
    if call_name(node) == "equal_null" and len(node.expressions) == 2 and not negated:
        _check_not_null(node.expressions[0], node.expressions[1], scene)
        return _equal(node.expressions[0], node.expressions[1], negated, scene)
    for kind, flipped in _FLIPPED.items():
        if type(node) is kind:
            return _comparison(flipped if negated else kind, node.this, node.expression, scene)
    raise Unsolvable(f"{_NAMES.get(type(node), 'this kind of condition')} on the clock does not give one interval")


_NAMES: dict[type[exp.Expr], str] = {
    exp.NEQ: "<>",
    exp.In: "IN with several values",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Is: "IS",
    exp.Like: "LIKE",
    exp.Case: "CASE",
    exp.If: "IF",
}


def _combine(conjunction: bool, left: Bounds, right: Bounds) -> Bounds:
    if conjunction:
        return both(left, right)
    found = either(left, right)
    if found is None:
        raise Unsolvable("the instants of an OR do not form one interval")
    return found


def _one_of(node: exp.In, scene: Scene) -> Bounds:
    """`d IN (current_date(), current_date() - 1)`: a run of consecutive days, which is a BETWEEN."""
    days = {offset: item for item in node.expressions if (offset := days_from_today(item)) is not None}
    if len(days) != len(node.expressions) or max(days) - min(days) + 1 != len(days):
        raise Unsolvable("the values of an IN on the clock are not consecutive days")
    if type_of(node.this, scene.types) != "date":
        raise Unsolvable("IN with several values on the clock")
    low = _comparison(exp.GTE, node.this, days[min(days)], scene)
    return both(low, _comparison(exp.LTE, node.this, days[max(days)], scene))


def _equal(left: exp.Expr, right: exp.Expr, negated: bool, scene: Scene) -> Bounds:
    if negated:
        raise Unsolvable("<> on the clock does not give one interval")
    return both(_comparison(exp.GTE, left, right, scene), _comparison(exp.LTE, left, right, scene))


def _check_not_null(left: exp.Expr, right: exp.Expr, scene: Scene) -> None:
    """The clock is never NULL, so that <=> is = where it has to hold; what is reckoned from it and a column may be. Raises Unsolvable."""
    if any(scene.clocked(side) and side.find(exp.Column) for side in (left, right)):
        raise Unsolvable("<=> holds where both sides are NULL, as what a column is added to may be")


def _comparison(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr, scene: Scene) -> Bounds:
    for this, other, seen in ((left, right, operator), (right, left, _SWAPPED[operator])):
        if (pair := _clock_default(this, scene)) is not None:
            return _defaulted(seen, pair, other, scene)
    if not scene.clocked(left):
        left, right, operator = right, left, _SWAPPED[operator]
    if call_name(left) == "abs" and len(left.expressions) == 1 and scene.clocked(left):
        return _within(operator, left.expressions[0], right, scene)
    if not scene.clocked(left):
        if not (is_stable(left) and is_stable(right)):
            raise Unsolvable("a condition beside the clock may differ between evaluations")
        sign = _SIGNS[_SWAPPED[operator]]
        return Bounds(guard=f"({scene.text.of(right)}) {sign} ({scene.text.of(left)})")
    strict = operator in (exp.GT, exp.LTE)
    threshold = whole_threshold(left, right, strict)
    if threshold is not None:
        left, value = threshold
        sense, bound = unwrap(Form(left, AT_LEAST if operator in (exp.GT, exp.GTE) else BELOW, value), scene)
        return _bounds(sense, bound, f"{_plain_or_bound(right, bound, left, scene)} IS NOT NULL")
    sense = AT_LEAST if operator in (exp.GT, exp.GTE) else BELOW
    value = _value(left, right, strict, scene)
    # a date compared with a timestamp is compared as its midnight
    if value.kind == "timestamp" and chain_kind(left, scene) == "date":
        value = Value(f"CAST({value.shifted(-1).render()} AS DATE)", "date", 1)
        scene.need_dates()
    if value.kind == "timestamp_ntz" and chain_kind(left, scene) == "date":
        value = Value(f"CAST({value.shifted(-1).render()} AS DATE)", "date", 1)
    sense, bound = unwrap(Form(left, sense, value), scene)
    guard = f"{_plain_or_bound(right, bound, left, scene)} IS NOT NULL"
    return _bounds(sense, bound, guard)


def _bounds(sense: str, bound: str, guard: str) -> Bounds:
    return Bounds(valid_from=bound, guard=guard) if sense == AT_LEAST else Bounds(valid_to=bound, guard=guard)


def _within(operator: type[exp.Expr], inner: exp.Expr, limit: exp.Expr, scene: Scene) -> Bounds:
    """abs(x) <= n is x between -n and n."""
    if operator not in (exp.LT, exp.LTE) or literal_int(limit) is None:
        raise Unsolvable("abs() of the clock does not give one interval")
    low = exp.Neg(this=limit.copy())
    return both(_comparison(operator, inner, limit, scene), _comparison(_SWAPPED[operator], inner, low, scene))


def _clock_default(node: exp.Expr, scene: Scene) -> tuple[exp.Expr, exp.Expr] | None:
    """`coalesce(x, clock)` as (x, clock)."""
    while isinstance(node, exp.Paren):
        node = node.this
    pair = node.expressions if call_name(node) in ("coalesce", "nvl", "ifnull") else []
    if len(pair) == 2 and not scene.clocked(pair[0]) and scene.clocked(pair[1]) and is_stable(pair[0]):
        return pair[0], pair[1]
    return None


def _defaulted(operator: type[exp.Expr], pair: tuple[exp.Expr, exp.Expr], other: exp.Expr, scene: Scene) -> Bounds:
    """`coalesce(x, clock) >= y`: one comparison where x is NULL, another where it is not."""
    row, clock = pair
    if type_of(row, scene.types) != chain_kind(clock, scene):
        raise Unsolvable("coalesce makes one type of two, in which the comparison is another")
    there = _comparison(operator, row, other, scene)
    if scene.clocked(other) and scene.text.of(other).lower() == scene.text.of(clock).lower():
        missing = Bounds(guard="true" if operator in (exp.GTE, exp.LTE) else "false")
    else:
        missing = _comparison(operator, clock, other, scene)
    return choice([f"({scene.text.of(row)}) IS NULL"], [missing, there])


def _plain_or_bound(row: exp.Expr, bound: str, clock: exp.Expr, scene: Scene) -> str:
    """What must not be NULL: the one column the bound is made of, where that is all there is to it."""
    columns = {
        scene.text.of(part)
        for part in (*row.find_all(exp.Column), *clock.find_all(exp.Column))
        if not scene.clocked(part)
    }
    rows = [part for part in (row, *_row_parts(clock, scene)) if list(part.find_all(exp.Column))]
    only = rows[0] if len(columns) == 1 and len(rows) == 1 else None
    if isinstance(only, exp.Column) and type_of(only, scene.types) not in (None, "string"):
        return columns.pop()
    return f"({bound})"


def _row_parts(clock: exp.Expr, scene: Scene) -> list[exp.Expr]:
    """The operands around the clock that do not contain it."""
    parts: list[exp.Expr] = []
    for part in clock.walk(prune=lambda node: not scene.clocked(node)):
        if not scene.clocked(part):
            parts.append(part)
    return parts


def _value(clock: exp.Expr, row: exp.Expr, strict: bool, scene: Scene) -> Value:
    """The row's side, in the type in which Spark compares, one step further when the comparison is strict."""
    kind, other = chain_kind(clock, scene), type_of(row, scene.types)
    step = int(strict)
    if kind in ("days", "duration"):
        return _interval_value(kind, row, step)
    literal = literal_int(row) if kind == "int" else None
    if literal is not None:
        return Value(str(literal), "int", step)
    text = scene.row(row)
    if kind == "timestamp":
        if "timestamp_ntz" in (other, type_of(_uncast(row), scene.types)):
            scene.need_fixed(_LOCAL_TIME)
        cast = text if other == "timestamp" else f"CAST({text} AS TIMESTAMP)"
        return Value(cast, "timestamp", step, midnight=other == "date")
    if kind == "date":
        if other in ("timestamp", "timestamp_ntz"):
            return Value(text, other, step)
        if other == "date":
            return Value(text, "date", step)
        # a string is compared as a date; `D <= x` and `D > x` hold for dates and timestamps alike
        if other == "string" or (other is None and strict):
            return Value(f"CAST({text} AS DATE)", "date", step)
        raise Unsolvable("the type of what is compared with a date is not known")
    if kind == "timestamp_ntz":
        if other in ("date", "timestamp_ntz"):
            return Value(text if other == kind else f"CAST({text} AS TIMESTAMP_NTZ)", kind, step)
        if other == "timestamp":
            scene.need_fixed()
            return Value(f"CAST({text} AS TIMESTAMP_NTZ)", kind, step)
        raise Unsolvable("the type of what is compared with a local timestamp is not known")
    if other == "int":
        return Value(text, "int", step)
    if other == "double":
        return Value(f"floor({text})", "int", 1) if strict else Value(f"ceil({text})", "int")
    raise Unsolvable("a number of unknown type")


_LOCAL_TIME = (
    "Spark compares a timestamp without time zone with an instant by local time, which jumps in a time zone with summer time; "
    "keep the column as TIMESTAMP, compare its date with current_date()"
)


def _uncast(row: exp.Expr) -> exp.Expr:
    """What a cast is of, which Spark takes away where it compares with a literal."""
    while isinstance(row, exp.Paren | exp.Cast | exp.TryCast):
        row = row.this
    return row


def _interval_value(kind: str, row: exp.Expr, step: int) -> Value:
    steps = interval_steps(row)
    if steps is None or steps[0] == "months":
        raise Unsolvable("a difference compared with something other than an interval of days or hours")
    micros = (steps[1] * DAY if steps[0] == "days" else steps[1]) + step
    return Value("", kind, -(-micros // DAY) if kind == "days" else micros)
