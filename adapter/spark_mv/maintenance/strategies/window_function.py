"""WINDOW_FUNCTION: partitions with a changed, entered or left row are recomputed as a whole."""

from __future__ import annotations

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.strategies.adjusted_groups import groups_or_parts
from spark_mv.maintenance.strategies.top_rows import top_rows

STRATEGY = "WINDOW_FUNCTION"


def propose(known: IncrementalFacts) -> Proposal:
    """Touched partitions recomputed. Raises NotIncremental."""
    if known.shape != STRATEGY:
        return rejected(STRATEGY, Reason("NO_WINDOW", "there is no window function"))
    if known.tree.limited is not None:
        return top_rows(known, STRATEGY)
    return groups_or_parts(
        known, STRATEGY, Reason("TOUCHED_PARTITIONS", "partitions that a change or the clock touches")
    )
