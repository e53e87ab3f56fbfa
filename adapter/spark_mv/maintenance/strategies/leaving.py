"""Rows that the clock takes, told by the table's own columns: they go without a look at the sources or at keys."""

from __future__ import annotations

from dataclasses import replace

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal
from spark_mv.maintenance.plan import Candidate, Reason, Step
from spark_mv.maintenance.steps.staging import Leaving, append_rows, evict_rows, stage_sources
from spark_mv.maintenance.strategies.incremental_rows import for_affected_anchors, from_changed_rows
from spark_mv.query.delta.output_windows import compared_with
from spark_mv.query.delta.restrict import NotIncremental
from spark_mv.query.delta.texts import all_are_read
from spark_mv.query.rewrite.clock_move import pinned_condition


def leaving(known: IncrementalFacts) -> Leaving | None:
    """None where the columns that the windows stand on are not in the table as the query gives them."""
    if known.move is None or known.clock_back or known.config.on_source_delete == "keep":
        return None
    found = known.output_windows
    # the source may have another row of a frozen one's key, which enters when that leaves
    if found is None or known.columns.stays:
        return None
    # a row that enters often replaces one of its key that leaves (valid_from <= now AND now < valid_to); not so where
    # rows move through one window of one column
    if known.enters and (len(found.columns) > 1 or known.linear_source is None):
        return None
    conditions = [pinned_condition(text, known.move.now) for text in found.conditions]
    stay = " AND ".join(f"({text})" for text in conditions)
    # Spark drops, without a word, what it cannot translate from one side of an OR in REPLACE WHERE: a function of a column,
    # a cast that a comparison of two types needs. A column against a constant of its own type is translated.
    types = {c.name.lower(): c.type for c in known.columns.columns}
    sides = [compared_with(text) for text in conditions]
    typed = [
        f"typeof({constant}) = '{types[column.lower()].lower()}'" for side in sides for column, constant in side or ()
    ]
    plain = all(side is not None for side in sides)
    return (
        Leaving(f"NOT ({stay})", " AND ".join(typed)) if plain or not (known.enters or known.changes.sources) else None
    )


LONG = 3_000
"""Characters of a query from which on Spark takes longer to analyse it for a second statement than to hold its rows."""


def come_and_leave(known: IncrementalFacts, leaves: Leaving | None) -> tuple[Step, ...]:
    """The steps where rows only come, from sources or by the clock, and others only leave."""
    feed = all(change.how == "feed" for change in known.changes.sources)
    # AI calls look at the rows more than once; other rows than at first must not be found a second time. Where a statement
    # names a table beside its changes without a version, in a CTE that nobody reads, Spark takes the table for its changes.
    # And a long query is analysed once where its rows can be held
    sql = known.on_changed or known.tree.sql
    twice = known.settled and not known.rewritten.ai_rounds and all_are_read(sql)
    long = known.facts.held and len(known.rewritten.sql) > LONG
    known = replace(known, unstaged=feed and twice and not long)
    query = known.texts.on_changes(sql, True, known.moved_windows if known.enters else None, known.pins)
    staged = () if known.unstaged else stage_sources(known)
    return (*staged, *append_rows(known, query, leaves))


def leaving_rows(known: IncrementalFacts, strategy: str) -> Proposal | None:
    """Where no source changed, and the table's own columns tell the rows that leave."""
    leaves = leaving(known)
    if leaves is None or known.changes.sources:
        return None
    steps = come_and_leave(known, leaves) if known.enters else tuple(evict_rows(known, leaves))
    why = Reason("LEAVING_ROWS", "only the clock moved, and the table's own columns tell the rows that leave")
    return Proposal(
        Candidate(strategy, True, (why,), known.cost.leaving),
        steps,
        known.cost.complete,
        instead(known, strategy) if known.enters else (),
    )


def instead(known: IncrementalFacts, strategy: str) -> tuple[Step, ...]:
    """The steps where a row that comes has the key of one that leaves, and takes over its kept values."""
    try:
        if known.linear_source is not None:
            return from_changed_rows(known, strategy).steps
        return for_affected_anchors(known, strategy, Reason("AFFECTED_ROWS", "")).steps
    except NotIncremental:
        return ()
