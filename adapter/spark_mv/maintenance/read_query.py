"""The tree of the query that incremental strategies restrict, the move of the clock over it, and the bounds of its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timezone

from spark_mv.maintenance.changes import SourceTexts
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.situation import Situation
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.model_tree import model_tree
from spark_mv.query.delta.output_windows import output_windows
from spark_mv.query.delta.restrict import Move, NotIncremental, QueryTree
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_move import pinned_condition
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.clock_words import pin_level


def tree_and_move(situation: Situation) -> tuple[QueryTree, Move | None]:
    """The move is None when no row can have entered or left by the clock alone. Raises NotIncremental."""
    facts = situation.facts
    sampled = situation.rewritten.filter_texts is not None
    tree = model_tree(situation.analysis, situation.schemas, facts.time_zone, sampled)
    return tree, clock_move(facts, tree, situation.pins)


def clock_move(facts: RunFacts, tree: QueryTree, pins: Pins) -> Move | None:
    """The move of the clock since the last run; None where it moved no row."""
    record = facts.target.record
    if record is None or not tree.uses or not clock_moves(facts) or (tree.all_solved and not crossed(facts)):
        return None
    return Move(tree.windows, pins.at(datetime.fromisoformat(record.as_of).replace(tzinfo=timezone.utc)), pins)


def row_bounds(
    situation: Situation, usable: Collection[str] | None = None, groups: bool = False
) -> tuple[str, str] | None:
    """The instants at which a row of the table comes and leaves by the clock, over the table's own columns; None where
    they do not tell. `usable`: the columns that may be asked, where they are not those of the table. `groups`: rows may be groups."""
    facts = situation.facts
    try:
        tree = model_tree(situation.analysis, situation.schemas, facts.time_zone)
        columns = SourceTexts({s.name.lower(): s for s in facts.sources}, (), False).columns
        asked = _usable(situation) if usable is None else usable
        told = tree.windows and tree.limited is None  # a row beyond a LIMIT comes when another one leaves
        windows = output_windows(tree.node, tree.windows, columns, asked, groups) if told else None
    except NotIncremental:
        return None
    if windows is None or windows.bounds is None:
        return None
    start, end = (pinned_condition(text, situation.pins) for text in windows.bounds)
    return start, end


def _usable(situation: Situation) -> set[str]:
    """Columns of the query that the table has with the same type, and that no run has drawn."""
    there = {(c.name.lower(), c.type.lower()) for c in situation.facts.target.columns}
    drawn = {c.name.lower() for c in situation.analysis.columns if c.kept}
    return {
        name
        for c in situation.rewritten.columns
        if (name := c.name.lower()) not in drawn and (name, c.type.lower()) in there
    }


def answers_decide(analysis: Analysis) -> bool:
    """Whether AI answers stand anywhere but in output columns: in a filter, a join, a group's key, a window."""
    if Level.AI not in analysis.levels:
        return False
    levels: Sequence[Level] = [*(p.level for p in analysis.predicates), *(c.level for c in analysis.clauses)]
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
