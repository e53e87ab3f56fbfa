"""APPEND_ONLY: the one source that changed only gained rows, and each of them gives rows of its own."""

from __future__ import annotations

from dataclasses import replace

from spark_mv.maintenance import cost
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.incremental_steps import append_rows, stage_sources
from spark_mv.maintenance.plan import Candidate, Reason

STRATEGY = "APPEND_ONLY"


def propose(known: IncrementalFacts) -> Proposal:
    """The table's own rows are not read: that the new keys are new is proven by their range, or looked up."""
    sources = known.changes.sources
    reasons = []
    if known.move is not None:
        reasons.append(Reason("BOUND_CROSSED", "rows enter or leave by the clock"))
    if not sources:
        reasons.append(Reason("NO_NEW_ROWS", "no source changed"))
    elif len(sources) > 1:
        reasons.append(Reason("SEVERAL_SOURCES", f"{len(sources)} sources changed: a new row can meet new rows"))
    elif not sources[0].append_only:
        reasons.append(Reason("NOT_ONLY_INSERTS", f"{sources[0].name} had other changes than inserts"))
    elif known.config.on_source_delete == "keep":
        reasons.append(
            Reason("KEPT_ROWS", "on_source_delete: keep: a new row may stand for one that the table still has")
        )
    elif known.linear_source is None:
        reasons.append(
            Reason("NOT_ROW_WISE", f"a new row of {sources[0].name} can change rows that the table already has")
        )
    if reasons:
        return rejected(STRATEGY, *reasons)
    # AI calls look at the rows more than once; other rows than at first must not be found a second time
    twice = known.settled and not known.rewritten.ai_rounds
    known = replace(known, unstaged=sources[0].how == "feed" and twice)
    query = known.texts.on_changes(known.tree.sql, came=True)
    staged = () if known.unstaged else stage_sources(known)
    steps = (*staged, *append_rows(known, query))
    why = Reason("ONLY_INSERTS", f"{sources[0].name} only gained rows")
    return Proposal(
        Candidate(STRATEGY, True, (why,), cost.append_only(known.changes)), steps, cost.complete(known.changes)
    )
