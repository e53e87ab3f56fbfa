"""The predicates on the clock, each with the instants at which it holds, as far as it can be solved."""

from __future__ import annotations

from dataclasses import replace

from .clock import solve
from .field_types import known_types
from .verdict import PredicateVerdict
from .walk import Walk
from .written import written


def with_bounds(walk: Walk, time_zone: str | None) -> dict[tuple[object, ...], PredicateVerdict]:
    """All predicates of the walk; those on the clock with their text as written, and solved where that is exact.

    Like clock_split: HAVING, QUALIFY and the ON of an outer join do not decide alone when a row is there, so they are
    not solved; nor are predicates inside a subquery of an expression.
    """
    found: dict[tuple[object, ...], PredicateVerdict] = {}
    for key, verdict in walk.predicates.items():
        node, scope, parsed, lone = walk.nodes[key]
        if not verdict.clock:
            found[key] = verdict
            continue
        text = written(parsed, node)
        found[key] = verdict = replace(verdict, text=text)
        bounds = solve(text, known_types(node, scope), time_zone) if lone else None
        if bounds is not None and not bounds.unbounded:
            found[key] = replace(
                verdict, solved=True, valid_from=bounds.valid_from, valid_to=bounds.valid_to, guard=bounds.guard
            )
    return found
