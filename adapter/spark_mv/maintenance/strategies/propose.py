"""The incremental strategies, looked at in order; what keeps all of them from applying is said by each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from spark_mv.maintenance.changes import Changes
from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Candidate, Reason
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.second_reading import distrusted
from spark_mv.maintenance.strategies import append_only, group_aggregate, row_based, window_function
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.restrict import Move, NotIncremental, QueryTree
from spark_mv.query.functions.clock_words import pin_level
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import Pins

STRATEGIES = ("APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION")
_MODULES = (append_only, row_based, group_aggregate, window_function)
FOLLOWABLE = frozenset({"SOURCE_CHANGED", "CLOCK_MOVED", "BOUND_CROSSED", "CLOCK_BACK"})
"""Reasons against NO_OP that an incremental strategy can follow; with any other one, the last result is no start."""

Gather = Callable[[ColumnPlan], IncrementalFacts]


def propose(
    facts: RunFacts,
    config: ModelConfig,
    rewritten: Rewritten,
    columns: ColumnPlan,
    no_op: Candidate,
    gather: Gather | None,
    answers_decide: bool = False,
) -> tuple[list[Proposal], Changes]:
    """A proposal per incremental strategy, and what changed as far as it was looked up. `gather` looks and is only called
    when it can matter; it raises NotIncremental, and so may every strategy."""
    blocked = _blocked(facts, config, rewritten, columns, no_op, answers_decide)
    if blocked or gather is None:
        return [rejected(name, *blocked) for name in STRATEGIES], Changes()
    try:
        known = gather(columns)
    except NotIncremental as error:
        return [rejected(name, Reason(error.code, error.sentence)) for name in STRATEGIES], Changes()
    if known.changes.problems:
        return [rejected(name, *known.changes.problems) for name in STRATEGIES], known.changes
    found = []
    for name, module in zip(STRATEGIES, _MODULES, strict=True):
        doubt = distrusted(facts.target.record, name)
        if doubt is not None:
            found.append(rejected(name, doubt))
            continue
        try:
            found.append(module.propose(known))
        except NotIncremental as error:
            found.append(rejected(name, Reason(error.code, error.sentence)))
    return found, known.changes


def _blocked(
    facts: RunFacts,
    config: ModelConfig,
    rewritten: Rewritten,
    columns: ColumnPlan,
    no_op: Candidate,
    answers_decide: bool,
) -> tuple[Reason, ...]:
    reasons = [reason for reason in no_op.reasons if reason.code not in FOLLOWABLE]
    if columns.replace:
        reasons.append(Reason("COLUMNS_CHANGED", "the columns or the layout of the table change"))
    if any(c.fresh for c in columns.columns):
        reasons.append(Reason("DRAWN_ANEW", "the expression of a kept column changed"))
    if facts.partial:
        reasons.append(Reason("PARTIAL_RUN", "this run sees only part of its sources (--empty or --sample)"))
    record = facts.target.record
    if record is not None and record.ai_pending and answers_decide and not reasons:
        # another model can have got the answer meanwhile: which rows the last run made of a row could not be told
        why = f"{record.ai_pending:,} AI answers are still to come, and answers decide which rows or groups there are"
        reasons.append(Reason("AI_PENDING", why))
    if config.on_source_delete == "keep" and rewritten.clock:
        reasons.append(
            Reason("REMEMBERED_ROWS", "on_source_delete: keep with a window remembers rows that the source has lost")
        )
    return tuple(reasons)


def answers_decide(analysis: Analysis) -> bool:
    """Whether AI answers stand anywhere but in output columns: in a filter, a join, a group's key, a window."""
    if Level.AI not in analysis.levels:
        return False
    levels = [*(p.level for p in analysis.predicates), *(c.level for c in analysis.clauses)]
    return any(level >= Level.AI for level in levels)


def clock_moves(facts: RunFacts) -> bool:
    """Whether any literal that stands for the clock differs from the last run's."""
    record = facts.target.record
    before = record.pins if record else {}
    return any(
        facts.pins.get(name) != before.get(name) for name in {*facts.pins, *before} if pin_level(name) == Level.COMMAND
    )


def crossed(facts: RunFacts) -> bool:
    """Whether a row of the last run's sources can have entered or left its window since."""
    record = facts.target.record
    if record is None or not record.clock_solved or facts.as_of < record.as_of:
        return True
    return record.next_change_at is not None and facts.as_of >= record.next_change_at


def clock_move(facts: RunFacts, tree: QueryTree, pins: Pins) -> Move | None:
    """The move of the clock since the last run; None where it moved no row."""
    record = facts.target.record
    if record is None or not tree.windows or not (clock_moves(facts) and crossed(facts)):
        return None
    return Move(tree.windows, pins.at(datetime.fromisoformat(record.as_of).replace(tzinfo=timezone.utc)), pins)
