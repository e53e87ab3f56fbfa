"""APPEND_ONLY: the one source that changed only gained rows, and each of them gives rows of its own; others may leave by
the clock."""

from __future__ import annotations

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Candidate, Reason
from spark_mv.maintenance.strategies.leaving import come_and_leave, instead, leaving

STRATEGY = "APPEND_ONLY"


def propose(known: IncrementalFacts) -> Proposal:
    """The table's own rows are not read: that the new keys are new is proven by their range, or looked up."""
    sources, leaves = known.changes.sources, leaving(known)
    reasons = []
    if known.move is not None and leaves is None:
        reasons.append(
            Reason("BOUND_CROSSED", "rows enter by the clock, or leave in a way that the table's columns do not tell")
        )
    if not sources:
        reasons.append(Reason("NO_NEW_ROWS", "no source changed"))
    elif len(sources) > 1 and known.on_changed is None:
        reasons.append(Reason("SEVERAL_SOURCES", f"{len(sources)} sources changed: a new row can meet new rows"))
    elif edited := [source.name for source in sources if not source.append_only]:
        reasons.append(Reason("NOT_ONLY_INSERTS", f"{' and '.join(edited)} had other changes than inserts"))
    elif known.tree.limited is not None:
        reasons.append(Reason("LIMIT", "LIMIT: a new row can take the place of one that the table has"))
    elif known.config.keeps_rows:
        reasons.append(Reason("KEPT_ROWS", f"{known.kept_by}: a new row may stand for one that the table still has"))
    elif known.on_changed is None:
        reasons.append(
            Reason("NOT_ROW_WISE", f"a new row of {sources[0].name} can change rows that the table already has")
        )
    if reasons:
        return rejected(STRATEGY, *reasons)
    leave = ", and the table's own columns tell the rows that leave by the clock" if leaves else ""
    why = Reason("ONLY_INSERTS", f"{' and '.join(source.name for source in sources)} only gained rows{leave}")
    return Proposal(
        Candidate(STRATEGY, True, (why,), known.cost.append_only(known.enters)),
        come_and_leave(known, leaves),
        known.cost.complete,
        instead(known, STRATEGY) if leaves else (),
        known.few,
    )
