"""The predicates on the clock, each with the instants at which it holds, as far as it can be solved."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.clock_columns import alias_types, opened
from spark_mv.query.analysis.field_types import known_types, visible_types
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.verdict import PredicateVerdict
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.solver.solve import outer_bounds, solve
from spark_mv.query.syntax.written import written


def with_bounds(walk: Walk, time_zone: str | None) -> dict[tuple[object, ...], PredicateVerdict]:
    """All predicates of the walk; those on the clock with their text as written, and solved where that is exact.

    In every clause: the bounds of a HAVING are over the aggregates of the group, those in a subquery of an expression
    over the columns of that subquery. Whether a row leaves at its bound by itself is the strategies' question
    (clock_split), which asks more: HAVING, QUALIFY and the ON of an outer join do not decide alone.
    """
    found: dict[tuple[object, ...], PredicateVerdict] = {}
    for key, verdict in walk.predicates.items():
        node, scope, parsed = walk.nodes[key]
        if verdict.clock:
            verdict = replace(verdict, text=written(parsed, node))
            verdict = _solved(verdict, node, scope, time_zone)
        found[key] = verdict
    return found


def _solved(verdict: PredicateVerdict, node: exp.Expr, scope: Scope, time_zone: str | None) -> PredicateVerdict:
    text = opened(verdict.text, node, scope, verdict.clause)
    if text is None:
        return verdict
    types = known_types(node, scope) if text == verdict.text else visible_types(scope)
    types = {**alias_types(node, scope, verdict.clause), **types}
    bounds = solve(text, types, time_zone)
    solved = bounds is not None
    bounds = bounds or outer_bounds(text, types, time_zone)
    if bounds is None or bounds.unbounded:
        return verdict
    return replace(verdict, solved=solved, valid_from=bounds.valid_from, valid_to=bounds.valid_to, guard=bounds.guard)
