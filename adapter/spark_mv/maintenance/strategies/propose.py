"""The incremental strategies, looked at in order; what keeps all of them from applying is said by each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Candidate, Reason
from spark_mv.maintenance.read_query import answers_decide
from spark_mv.maintenance.second_reading import distrusted
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.strategies import append_only, group_aggregate, row_based, sampled_rows, window_function
from spark_mv.query.delta.restrict import NotIncremental
from spark_mv.query.syntax.depth import deep

STRATEGIES = ("APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION")
_MODULES = (append_only, row_based, group_aggregate, window_function)
FOLLOWABLE = frozenset({"SOURCE_CHANGED", "CLOCK_MOVED", "BOUND_CROSSED", "CLOCK_BACK"})
"""Reasons against NO_OP that an incremental strategy can follow; with any other one, the last result is no start."""


@deep
def propose(known: IncrementalFacts, strategies: Collection[str] = STRATEGIES) -> list[Proposal]:
    """A proposal per incremental strategy, of those that are asked."""
    if known.changes.problems:
        return rejected_all(known.changes.problems)
    found = []
    for name, module in zip(STRATEGIES, _MODULES, strict=True):
        if name not in strategies:
            continue
        doubt = distrusted(known.facts.target.record, name)
        if doubt is not None:
            found.append(rejected(name, doubt))
            continue
        try:
            found.append(sampled_rows.propose(known, name) if known.rewritten.filter_texts else module.propose(known))
        except NotIncremental as error:
            found.append(rejected(name, Reason(error.code, error.sentence)))
    return found


def rejected_all(reasons: Sequence[Reason]) -> list[Proposal]:
    """No incremental strategy applies, all for the same reasons."""
    return [rejected(name, *reasons) for name in STRATEGIES]


NAMING = ("spark.sql.caseSensitive", "spark.sql.ansi.relationPrecedence")
"""Settings of a session by which a name of a query may mean another column than the one that the analysis finds: two that differ in case, and
those that a comma and a join offer."""


def blocked(situation: Situation, columns: ColumnPlan, no_op: Candidate) -> tuple[Reason, ...]:
    """Why the last result is no start for an incremental strategy; empty where it is."""
    facts, rewritten = situation.facts, situation.rewritten
    reasons = [reason for reason in no_op.reasons if reason.code not in FOLLOWABLE]
    if columns.replace:
        reasons.append(Reason("COLUMNS_CHANGED", "the columns or the layout of the table change"))
    if any(c.fresh for c in columns.columns):
        reasons.append(Reason("DRAWN_ANEW", "the expression of a kept column changed"))
    if naming := [name for name in NAMING if facts.settings.get(name, "").lower() == "true"]:
        reasons.append(Reason("NAMES_UNSURE", f"{' and '.join(naming)} is on, so names may mean other columns"))
    if facts.partial:
        reasons.append(Reason("PARTIAL_RUN", "this run sees only part of its sources (--empty or --sample)"))
    record = facts.target.record
    if record is not None and record.ai_pending and answers_decide(situation.analysis) and not reasons:
        # another model can have got the answer meanwhile: which rows the last run made of a row could not be told
        why = f"{record.ai_pending:,} AI answers are still to come, and answers decide which rows or groups there are"
        reasons.append(Reason("AI_PENDING", why))
    if situation.config.on_source_delete == "keep" and rewritten.clock:
        reasons.append(
            Reason("REMEMBERED_ROWS", "on_source_delete: keep with a window remembers rows that the source has lost")
        )
    return tuple(reasons)
