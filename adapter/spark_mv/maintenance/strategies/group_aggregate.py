"""GROUP_AGGREGATE: groups with a changed, entered or left row.

Groups whose aggregates allow it are adjusted by these rows; all others are recomputed as a whole, so that sums of floats
come out bit for bit as a full query gives them, and count distinct and order-dependent aggregates need no special case.
"""

from __future__ import annotations

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.strategies.adjusted_groups import adjusted_groups, groups_or_parts
from spark_mv.maintenance.strategies.top_rows import top_rows
from spark_mv.query.delta.restrict import NotIncremental

STRATEGY = "GROUP_AGGREGATE"


def propose(known: IncrementalFacts) -> Proposal:
    """Groups adjusted by what came and went, or touched groups recomputed. Raises NotIncremental."""
    if known.shape != STRATEGY:
        return rejected(
            STRATEGY, Reason("NO_GROUP_BY", "there is no GROUP BY or DISTINCT, or a window stands beside it")
        )
    if known.tree.limited is not None:
        return top_rows(known, STRATEGY)
    try:
        return adjusted_groups(known, STRATEGY)
    except NotIncremental as error:
        why = f"groups that a change or the clock touches are recomputed ({error.sentence})"
    return groups_or_parts(known, STRATEGY, Reason("TOUCHED_GROUPS", why))
