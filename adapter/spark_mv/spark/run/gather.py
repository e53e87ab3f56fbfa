"""Gather what the incremental strategies look at: the tree of the query, the changes, the move of the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.changes import SourceTexts
from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.incremental_facts import IncrementalFacts
from spark_mv.maintenance.rewrite import with_answers
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.strategies.propose import clock_move, clock_moves
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.model_tree import model_tree
from spark_mv.query.delta.output_windows import output_windows
from spark_mv.query.delta.restrict import NotIncremental
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_move import pinned_condition
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.query.syntax.reserved import filled
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.changes import read_changes

if TYPE_CHECKING:
    from spark_mv.spark.run.ai import AiRunner


@dataclass
class Gatherer:
    """Called by the decision when the changes matter. Rounds of AI calls of restricted queries are added to the
    runner's plan behind those of the whole query."""

    query: Query
    facts: RunFacts
    analysis: Analysis
    config: ModelConfig
    rewritten: Rewritten
    pins: Pins
    target: str
    runner: AiRunner | None
    _known: dict[str, tuple[str, int, int]] = field(default_factory=dict)

    def __call__(self, columns: ColumnPlan) -> IncrementalFacts:
        """Raises NotIncremental."""
        tree = model_tree(self.analysis, self._schemas(), self.facts.time_zone, clock_moves(self.facts))
        return IncrementalFacts(
            facts=self.facts,
            config=self.config,
            rewritten=self.rewritten,
            columns=columns,
            tree=tree,
            changes=read_changes(self.query, self.facts, self.target),
            move=clock_move(self.facts, tree, self.pins),
            pins=self.pins,
            evaluate=self.evaluate,
            settled=Level.ORDER_DEPENDENT not in self.analysis.levels,
        )

    def row_bounds(self) -> tuple[str, str] | None:
        """The instants at which a row of the table comes and leaves by the clock, over the table's own columns; None where
        they do not tell."""
        try:
            tree = model_tree(self.analysis, self._schemas(), self.facts.time_zone, False)
            there = {(c.name.lower(), c.type.lower()) for c in self.facts.target.columns}
            drawn = {c.name.lower() for c in self.analysis.columns if c.kept}
            usable = {name for c in self.rewritten.columns if (name := c.name.lower()) not in drawn} & {
                c.name.lower() for c in self.rewritten.columns if (c.name.lower(), c.type.lower()) in there
            }
            columns = SourceTexts({s.name.lower(): s for s in self.facts.sources}, (), False).columns
            windows = output_windows(tree.node, tree.windows, columns, usable) if tree.windows else None
        except NotIncremental:
            return None
        if windows is None or windows.bounds is None:
            return None
        start, end = (pinned_condition(text, self.pins) for text in windows.bounds)
        return start, end

    def evaluate(self, sql: str) -> tuple[str, int, int]:
        if sql in self._known:
            return self._known[sql]
        text, plan, errors = with_answers(
            pin(sql, self.pins).sql, self._schemas(), self.runner.context if self.runner else None
        )
        if errors:
            raise NotIncremental("AI_CALLS", f"the AI calls of the restricted query: {errors[0].message}")
        first = 0
        rounds = plan.rounds if plan is not None else ()
        if rounds and self.runner is not None and self.runner.plan is not None:
            first = len(self.runner.plan.rounds)
            self.runner.plan = replace(self.runner.plan, rounds=(*self.runner.plan.rounds, *rounds))
        self._known[sql] = text, first, len(rounds)
        return self._known[sql]

    def _schemas(self) -> dict[str, dict[str, str]]:
        return {s.name: {c.name: c.type for c in s.columns} for s in self.facts.sources}


def fill_ai_plan(runner: AiRunner | None, relations: Mapping[str, str]) -> None:
    """Put the names of the run's staging tables into the requests of restricted queries."""
    if runner is None or runner.plan is None:
        return
    rounds: list[tuple[Any, ...]] = [
        tuple(replace(call, request_sql=filled(call.request_sql, relations)) for call in calls)
        for calls in runner.plan.rounds
    ]
    runner.plan = replace(runner.plan, rounds=tuple(rounds))
