"""When the order of rows matters: windows, ordered aggregates, LIMIT.

An order is total when rows cannot tie in it: it covers columns that are unique together. Unique are the keys of a
GROUP BY or DISTINCT underneath, as long as nothing multiplies its rows, and the model's `unique_key` (the author's word), when
the ORDER BY names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from spark_mv.query.analysis.fingerprint import fingerprint
from spark_mv.query.analysis.rules import forbid_per_row, rows_key
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import CLEAN, TaintedValue, digest, union
from spark_mv.query.analysis.verdict import ClauseVerdict
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.catalogue import Kind, Mark, is_kind, is_marked
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parse import sql_text
from spark_mv.query.syntax.parser import Call

Evaluate = Callable[[Walk, exp.Expr, Scope], TaintedValue]

_COLLECTS = frozenset({"collect_list", "collect_set", "array_agg"})


def call_of(node: exp.Expr | None) -> tuple[exp.Expr, Call] | None:
    """The call under wrappers (FILTER, WITHIN GROUP, IGNORE NULLS), and how it was written."""
    while node is not None:
        call = node.meta.get("call")
        if isinstance(call, Call):
            return node, call
        if not isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            return None
        node = node.this
    return None


def covers_unique(walk: Walk, scope: Scope, partition: Iterable[str], order: Iterable[str]) -> bool:
    """Whether rows with equal `partition` fingerprints cannot tie in `order`."""
    return _covers(walk, scope.row_unique, scope.single, frozenset(partition), frozenset(order))


def _covers(
    walk: Walk, unique: tuple[frozenset[str], ...], single: bool, fixed: frozenset[str], ordered: frozenset[str]
) -> bool:
    """The author's word that `unique_key` is unique is said of the model's rows. It is taken for those of one table too, but
    not for rows that a join, a union or explode may have made several of, nor for groups."""
    if any(keys <= fixed | ordered for keys in unique):
        return True
    walk.ties.add(fixed | ordered)
    key = walk.key_fingerprints
    return single and bool(key) and key <= fixed | ordered and bool(ordered & (key - fixed))


def _covers_inputs(walk: Walk, node: exp.Expr, scope: Scope, order: Iterable[str]) -> bool:
    """Whether the rows that an aggregate takes together cannot tie in `order`: those of its group, which share its keys, or
    those of its window."""
    outer = node.parent
    while isinstance(outer, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        outer = outer.parent
    if scope.below is None or isinstance(outer, exp.Window):
        return covers_unique(walk, scope, (), order)
    return _covers(walk, scope.below.unique, scope.below.single, scope.below.grouped, frozenset(order))


def order_values(walk: Walk, order: exp.Expr | None, scope: Scope, value: Evaluate) -> list[TaintedValue]:
    """The values of an ORDER BY after a query, where a whole number names an output column."""
    found = []
    for item in order.expressions if order is not None else []:
        inner = item.this if isinstance(item, exp.Ordered) else item
        at = int(inner.name) if isinstance(inner, exp.Literal) and inner.is_int else 0
        found.append(scope.ordinals[at - 1] if 0 < at <= len(scope.ordinals) else value(walk, inner, scope))
    return found


def fingerprints(walk: Walk, nodes: Iterable[exp.Expr], scope: Scope, value: Evaluate) -> list[str]:
    """Fingerprints of order expressions; a struct or array orders by its parts too."""
    found: list[str] = []
    for node in nodes:
        inner = node.this if isinstance(node, exp.Ordered | exp.Paren) else node
        found.append(value(walk, inner, scope).fingerprint)
        if isinstance(inner, exp.Struct | exp.Tuple):
            found += fingerprints(walk, inner.expressions, scope, value)
        elif isinstance(inner, exp.PropertyEQ):
            found += fingerprints(walk, [inner.expression], scope, value)
        elif isinstance(inner, exp.Alias):
            found += fingerprints(walk, [inner.this], scope, value)
    return found


def window_value(walk: Walk, node: exp.Expr, scope: Scope, value: Evaluate) -> TaintedValue:
    """`f(…) OVER (…)`: its level, and the findings about its PARTITION BY and ORDER BY."""
    partition_nodes, order, spec = _definition(walk, node, scope)
    partition = [value(walk, item, scope) for item in partition_nodes]
    ordered = [value(walk, item.this, scope) for item in order.expressions] if order is not None else []
    for facts in partition:
        forbid_per_row(walk, "PARTITION BY", facts.taint, keys=rows_key(scope, walk))
    for facts in ordered:
        forbid_per_row(walk, "window ORDER BY", facts.taint, keys=rows_key(scope, walk))
    walk.flag("window")
    if not partition:
        walk.flag("unpartitioned_window")
    scope.partitions.append([facts.fingerprint for facts in partition])

    prints = fingerprints(walk, order.expressions if order else [], scope, value)
    total = covers_unique(walk, scope, [facts.fingerprint for facts in partition], prints)
    found = call_of(node.this)
    before, walk.total_window = walk.total_window, (id(found[0]) if found and total and ordered else None)
    try:
        inner = value(walk, node.this, scope)
    finally:
        walk.total_window = before
    own = CLEAN
    if found is not None and not (total and (ordered or scope.row_unique)) and not _only_numbers(walk, node):
        name, place = found[1].name, walk.at(found[1].start)
        if is_marked(name, Mark.BY_POSITION) or (
            _by_rows(spec) and walk.level(name) == Level.DETERMINISTIC and not _ranks(name)
        ):
            own = walk.origin(name, Level.ORDER_DEPENDENT, place)
    taint = union([own, inner.taint, *(v.taint for v in partition), *(v.taint for v in ordered)])
    origin = taint.worst() if taint else None
    line, column = walk.place(node)
    walk.clauses[("WINDOW", line, column)] = ClauseVerdict(
        "WINDOW", sql_text(node), scope.label, line, column, taint.level, origin.cause("WINDOW") if origin else None
    )
    clauses = [*(v.fingerprint for v in partition), "order", *([fingerprint(walk, order)] if order is not None else [])]
    frame = fingerprint(walk, spec) if spec is not None else ""
    return TaintedValue(taint, digest("window", inner.fingerprint, *clauses, frame, _over(node)), False)


def _only_numbers(walk: Walk, node: exp.Expr) -> bool:
    """`row_number()` over all rows of a SELECT that shows nothing else of them, as dbt_utils.date_spine does: there are the same numbers in
    whatever order the rows come."""
    found, select = call_of(node.this), node.find_ancestor(exp.Select)
    if (
        found is None
        or found[1].name != "row_number"
        or node.args.get("partition_by")
        or node.args.get("alias")
        or select is None
    ):
        return False
    if any(select.args.get(clause) for clause in ("qualify", "limit", "offset")):
        return False
    shown = [part for item in select.expressions for part in item.walk()]
    numbers = [part for part in shown if isinstance(part, exp.Window)]
    if not any(part is node for part in numbers) or len({sql_text(part) for part in numbers}) > 1:
        return False
    inside = {id(part) for number in numbers for part in number.walk()}
    levels = [walk.level(call.name) for part in shown if isinstance(call := part.meta.get("call"), Call)]
    if any(level is None or level > Level.COMMAND for level in levels):
        return False
    return not any(isinstance(part, exp.Column | exp.Star | exp.Query) and id(part) not in inside for part in shown)


def _over(node: exp.Expr) -> str:
    """The words of the window itself that are not taken apart above."""
    known = ("this", "partition_by", "order", "spec", "alias")
    return " ".join(f"{key} {part}" for key, part in sorted(node.args.items()) if part and key not in known)


def _definition(walk: Walk, node: exp.Expr, scope: Scope) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
    """PARTITION BY, ORDER BY and frame, with named windows looked up."""
    partition = list(node.args.get("partition_by") or [])
    order, spec = node.args.get("order"), node.args.get("spec")
    base = node.args.get("alias")
    seen: set[str] = set()
    while isinstance(base, exp.Expr) and base.name.lower() not in seen:
        seen.add(base.name.lower())
        named = scope.windows.get(base.name.lower())
        if named is None:
            walk.error("UNRESOLVED_WINDOW", f"window {base.name} is not defined in a WINDOW clause", walk.place(base))
            break
        partition = partition or list(named.args.get("partition_by") or [])
        order, spec = order or named.args.get("order"), spec or named.args.get("spec")
        base = named.args.get("alias")
    return partition, order, spec


def _ranks(name: str) -> bool:
    """rank, dense_rank, percent_rank and cume_dist give tied rows one value, so ties do not matter to them."""
    return is_kind(name, Kind.WINDOW) and not is_marked(name, Mark.BY_POSITION)


def _by_rows(spec: exp.Expr | None) -> bool:
    """Whether a frame counts rows, so that tied rows get different frames."""
    if spec is None or str(spec.args.get("kind") or "").upper() != "ROWS":
        return False
    whole = str(spec.args.get("start")).upper() == "UNBOUNDED" and str(spec.args.get("end")).upper() == "UNBOUNDED"
    return not whole


def is_ordered_aggregate(walk: Walk, node: exp.Expr, name: str, scope: Scope, value: Evaluate) -> bool:
    """Whether the order-dependent function `name` is deterministic here after all: over a window with a total order,
    WITHIN GROUP by its own argument or a total order, or inside a function that forgets the order of an array."""
    if walk.total_window == id(node) and is_marked(name, Mark.FOLLOWS_ORDER):
        return True
    if name in _COLLECTS:
        outer: exp.Expr | None = node.parent
        while isinstance(outer, exp.Filter | exp.Paren):
            outer = outer.parent
        call = outer.meta.get("call") if outer is not None else None
        if outer is None or not isinstance(call, Call):
            return False
        by_itself = not any(isinstance(child, exp.Lambda) for child in outer.iter_expressions())
        return is_marked(call.name, Mark.FORGETS_ORDER) or (call.name == "array_sort" and by_itself)
    if name in ("max_by", "min_by"):
        by = node.args.get("expression")
        return isinstance(by, exp.Expr) and _covers_inputs(walk, node, scope, fingerprints(walk, [by], scope, value))
    order = _within_group(node)
    if name == "mode":
        second = node.args.get("deterministic") or next(iter(node.expressions[1:]), None)
        return order is not None or (isinstance(second, exp.Boolean) and bool(second.this))
    if name in ("listagg", "string_agg") and order is not None:
        prints = fingerprints(walk, order.expressions, scope, value)
        subject = node.this
        while isinstance(subject, exp.Order | exp.Distinct | exp.Paren):
            subject = subject.expressions[0] if isinstance(subject, exp.Distinct) else subject.this
        argument = value(walk, subject, scope).fingerprint if isinstance(subject, exp.Expr) else ""
        return argument in prints or _covers_inputs(walk, node, scope, prints)
    return False


def _within_group(node: exp.Expr) -> exp.Expr | None:
    outer: exp.Expr | None = node
    while outer is not None:
        if isinstance(outer, exp.WithinGroup):
            order = outer.args.get("expression")
            return order if isinstance(order, exp.Order) else None
        outer = outer.parent if isinstance(outer.parent, exp.Filter | exp.WithinGroup) else None
    return node.this if isinstance(node.this, exp.Order) else None
