"""ROW_BASED: projections, filters, joins, windows of time: rows follow changed rows and their join partners."""

from __future__ import annotations

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.strategies.incremental_rows import for_affected_anchors, from_changed_rows
from spark_mv.maintenance.strategies.leaving import leaving_rows
from spark_mv.maintenance.strategies.top_rows import top_rows

STRATEGY = "ROW_BASED"


def propose(known: IncrementalFacts) -> Proposal:
    """By the table's own columns, from changed rows alone, or for the anchors they touch. Raises NotIncremental."""
    if known.shape != STRATEGY:
        return rejected(STRATEGY, Reason("NOT_ROW_WISE", "a row of the result is made of many source rows"))
    if known.tree.limited is not None:
        return top_rows(known, STRATEGY)
    if (found := leaving_rows(known, STRATEGY)) is not None:
        return found
    if known.linear_source is not None or (known.move is None and known.on_changed is not None):
        return from_changed_rows(known, STRATEGY)
    return for_affected_anchors(known, STRATEGY, Reason("AFFECTED_ROWS", "rows that a change or the clock touches"))
