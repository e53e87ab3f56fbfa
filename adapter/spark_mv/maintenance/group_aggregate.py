"""GROUP_AGGREGATE: groups with a changed, entered or left row are recomputed as a whole.

Recomputed, not adjusted: sums of floats then come out bit for bit as a full query gives them, and min, max, count
distinct and order-dependent aggregates need no special case.
"""

from __future__ import annotations

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.incremental_rows import for_affected_anchors
from spark_mv.maintenance.plan import Reason

STRATEGY = "GROUP_AGGREGATE"


def propose(known: IncrementalFacts) -> Proposal:
    if known.tree.shape != STRATEGY:
        return rejected(
            STRATEGY, Reason("NO_GROUP_BY", "there is no GROUP BY or DISTINCT, or a window stands beside it")
        )
    return for_affected_anchors(known, STRATEGY, Reason("TOUCHED_GROUPS", "groups that a change or the clock touches"))
