"""All that the incremental strategies look at, gathered once per run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spark_mv.maintenance.ai_context import AiContext, with_answers
from spark_mv.maintenance.changes import COUNT, Changes, MovedWindows, SourceTexts, is_comparable, staged_name
from spark_mv.maintenance.columns import ColumnPlan, Role
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.cost import Cost, cost_of
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.kept_answers import unkept
from spark_mv.maintenance.plan import Candidate, Reason, Step
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.delta.narrowed import KnownColumns, are_comparable
from spark_mv.query.delta.output_windows import OutputWindows, output_windows
from spark_mv.query.delta.read_columns import read_columns
from spark_mv.query.delta.restrict import Move, NotIncremental, QueryTree
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.table_name import unquoted

if TYPE_CHECKING:  # loaded by models with AI calls or a state only
    from spark_mv.maintenance.strategies.state_steps import Known as StateKnown
    from spark_mv.query.ai_calls.ai_plan import AiCall

FEW_ROWS = 100_000
"""Estimated changed rows that are few."""


@dataclass(frozen=True)
class EvaluatedSql:
    """A SELECT as Spark evaluates it, and the rounds of AI calls whose answers it reads."""

    sql: str
    ai_rounds: tuple[tuple[AiCall, ...], ...] = ()


@dataclass(frozen=True)
class IncrementalFacts:
    """`move` is None when no row can have entered or left by the clock alone."""

    facts: RunFacts
    config: ModelConfig
    rewritten: Rewritten
    columns: ColumnPlan
    tree: QueryTree
    changes: Changes
    move: Move | None
    pins: Pins
    ai: AiContext | None = None
    state: StateKnown | None = None  # what the steps of the state table are made from; None where no run will take them
    settled: bool = False  # no value depends on the order of rows: two evaluations find the same rows
    unstaged: bool = False  # read the change feed where it is needed, instead of writing it down first
    _evaluated: dict[str, EvaluatedSql] = field(default_factory=dict, repr=False, compare=False)  # one text, one answer

    def evaluate(self, sql: str) -> EvaluatedSql:
        """A SELECT in the user's words as Spark evaluates it: clock pinned, AI answers joined in. Raises NotIncremental where
        the calls cannot be taken out of it."""
        if sql not in self._evaluated:
            schemas = {s.name: {c.name: c.type for c in s.columns} for s in self.facts.sources}
            for number, change in enumerate(self.changes.sources):
                schemas[unquoted(relation(staged_name(number)))] = {**schemas.get(change.name, {}), COUNT: "bigint"}
            text, plan, errors = with_answers(pin(sql, self.pins).sql, schemas, self.ai)
            if errors:
                raise NotIncremental("AI_CALLS", f"the AI calls of the restricted query: {errors[0].message}")
            rounds = plan.rounds if plan is not None else ()
            self._evaluated[sql] = EvaluatedSql(text, unkept(rounds, self.columns.columns, self.facts.target))
        return self._evaluated[sql]

    @cached_property
    def texts(self) -> SourceTexts:
        """The sources with the columns that the query reads: what else changes in their rows is no change."""
        tables = {s.name.lower(): tuple(c.name for c in s.columns) for s in self.facts.sources}
        read = read_columns(self.tree.node, tables, (self.tree.sql, self.rewritten.sql))
        facts = {
            s.name.lower(): replace(s, columns=tuple(c for c in s.columns if c.name in read[s.name.lower()]))
            for s in self.facts.sources
        }
        return SourceTexts(facts, self.changes.sources, self.unstaged, self.changes.source_rows)

    @property
    def cost(self) -> Cost:
        """What each way would take, as the setting `choose_by` compares."""
        moved = self.moved_windows.name if self.moved_windows else ""
        return cost_of(self.changes, self.config.choose_by, moved, self.clock_rows)

    @cached_property
    def clock_rows(self) -> int:
        """Rows of the table whose values are the clock's own and another one now: as many as changed when the clock last moved, all of
        them if that is not known. 0 where only conditions on the clock decide: these turn for few rows at a time."""
        if self.move is None or not self.tree.follows_clock(self.texts.columns):
            return 0
        last = self.facts.target.record
        rows = self.changes.target_rows
        return rows if last is None or last.clock_rows is None else min(last.clock_rows, rows)

    @property
    def comparable(self) -> frozenset[str]:
        """Output columns that can be joined on, lower case: those whose type in the query and in the table is one."""
        kept = {c.name.lower() for c in self.columns.columns if c.in_query and c.in_target and not c.retyped}
        return frozenset(c.name.lower() for c in self.rewritten.columns if is_comparable(c) and c.name.lower() in kept)

    @cached_property
    def known_columns(self) -> KnownColumns:
        """What a restricted query stands on to restrict what it joins."""
        plain = {
            c.name.lower(): c.type for c in self.columns.columns if c.name.lower() in self.comparable and not c.cast
        }
        comparable = are_comparable(c.type for source in self.facts.sources for c in source.columns)
        return KnownColumns(self.texts.columns, plain, comparable)

    @cached_property
    def shape(self) -> str:
        """ROW_BASED, GROUP_AGGREGATE or WINDOW_FUNCTION, by what the query does with what changed: a grouped table that did
        not change is a table. Not where asking it again may give other rows."""
        if not self.settled or self.rewritten.ai_rounds:
            return self.tree.shape()
        return self.tree.shape({s.name.lower() for s in self.changes.sources}, self.move is not None)

    @property
    def kept_by(self) -> str:
        """The setting by which the table has rows that no row of the sources stands for."""
        return "on_source_delete: keep" if self.config.on_source_delete == "keep" else "freeze_where"

    @property
    def linear_source(self) -> str | None:
        """The one source whose rows came or went, by a change or by the clock, if the result is linear in it."""
        # on_source_delete: keep and freeze_where leave rows in the table that no source row stands for, so what a changed row
        # replaces cannot be told from changed rows alone
        names = {s.name.lower(): s.name for s in self.changes.sources}
        if self.move is not None:
            if self.moved_windows is None:
                return None
            names[self.moved_windows.name.lower()] = self.moved_windows.name
        if len(names) != 1 or self.config.keeps_rows:
            return None
        (name,) = names.values()
        return name if self.tree.linear(name) else None

    @cached_property
    def on_changed(self) -> str | None:
        """The query that gives, of the changed rows of all sources that changed, the rows that come and go; None where changed
        rows alone do not tell."""
        if not self.changes.sources or self.config.keeps_rows:
            return None
        return self.tree.on_changed([source.name for source in self.changes.sources])

    @property
    def only_came(self) -> bool:
        """Whether all that moved is one source, and what the query reads of its rows depends on no other of them."""
        changed = self.changes.sources
        if len(changed) != 1 or self.move is not None or self.config.keeps_rows:
            return False
        return self.tree.linear_below_groups(changed[0].name)

    @property
    def only_changes(self) -> bool:
        """Whether nothing is read beside the changed rows of the one source and the table."""
        return self.move is None and len(self.facts.sources) == 1 and self.linear_source is not None

    @property
    def few(self) -> bool:
        """Whether these are so few that planning takes longer than reading them."""
        return self.only_changes and self.changes.rows <= FEW_ROWS

    @property
    def clock_back(self) -> bool:
        """Whether the as-of instant went back: rows that are not valid yet have to go then."""
        record = self.facts.target.record
        return record is None or self.facts.as_of < record.as_of

    @property
    def enters(self) -> bool:
        """Whether the move of the clock can let rows in."""
        return self.move is not None and (
            not self.tree.all_solved or any(w.valid_from is not None for w in self.move.windows.values())
        )

    @cached_property
    def output_windows(self) -> OutputWindows | None:
        """The windows said of the table's columns, those that the table has as the query gives them."""
        usable = {
            c.name.lower()
            for c in self.columns.columns
            if c.role in (Role.KEY, Role.DATA) and c.in_query and c.in_target and not c.retyped and not c.cast
        }
        windows = self.tree.windows if self.tree.all_solved else {}
        return output_windows(self.tree.node, windows, self.texts.columns, usable) if windows else None

    @cached_property
    def moved_windows(self) -> MovedWindows | None:
        """What the move of the clock changes, if all of it is said of one source's rows."""
        found = self.tree.leaf_clock(self.texts.columns) if self.move is not None else None
        if found is None or self.move is None:
            return None
        if found.values and not all(map(is_comparable, self.rewritten.columns)):
            return None  # which of the columns they decide is not asked
        before, now = self.move.before, self.move.now
        differ = "" if found.plain else found.differs(before, now)
        return MovedWindows(found.name, found.alias, found.holds(before), found.holds(now), differ)


@dataclass(frozen=True)
class Proposal:
    """A strategy that was looked at, and its steps where it applies. `instead` are steps for data that turns out to be of
    a kind that `steps` do not follow; `few` as in Plan."""

    candidate: Candidate
    steps: tuple[Step, ...] = ()
    complete_cost: float = 0.0
    instead: tuple[Step, ...] = ()
    few: bool = False


def rejected(strategy: str, *reasons: Reason) -> Proposal:
    """A strategy that does not apply, and why."""
    return Proposal(Candidate(strategy, False, reasons))
