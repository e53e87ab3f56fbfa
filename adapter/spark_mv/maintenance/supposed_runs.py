"""What the strategies can do with a model, said before there is a table: the decision's own functions, asked about supposed runs.

Each situation is a run after one whose result is in the table. In general, rows of all sources changed (or all only gained
rows, which is what APPEND_ONLY is for), and rows enter and leave by the clock; what does not apply then may where less went
on: changes of one source, or the clock alone. The clock is a day later in all of them, as it is in real runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property

from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.changes import Changes, SourceChange
from spark_mv.maintenance.columns import ColumnPlan, column_prints, plan_columns
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column, RunFacts, SourceFacts, TargetFacts, without_versions
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal
from spark_mv.maintenance.next_record import config_fingerprint
from spark_mv.maintenance.plan import Candidate, Reason
from spark_mv.maintenance.read_query import clock_move
from spark_mv.maintenance.record import RunRecord, SourceVersion
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.strategies.no_op import no_op
from spark_mv.maintenance.strategies.propose import STRATEGIES, blocked, propose, rejected_all
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.model_tree import model_tree
from spark_mv.query.delta.restrict import NotIncremental, QueryTree
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import Pins, pin

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
"""When a run is supposed to be that nobody has asked for."""
SINCE_LAST = timedelta(days=1)
BEFORE, VERSION = SourceVersion(1, "before"), SourceVersion(2, "now")


@dataclass(frozen=True)
class SupposedRun:
    """What went on since the last run. `when` says it, as a condition."""

    when: str
    changes: tuple[SourceChange, ...] = ()
    crossed: bool = False

    @property
    def grows(self) -> bool:
        """Whether it is one that APPEND_ONLY is for."""
        return all(change.append_only for change in self.changes)


@dataclass(frozen=True)
class Applies:
    """One strategy: it applies if it does in general. If not, `reasons` say why, and `when` in which situations it does."""

    strategy: str
    applies: bool
    reasons: tuple[Reason, ...] = ()
    when: tuple[str, ...] = ()


@dataclass
class Supposed:
    """A model with its sources' columns, as the runs would know it. `analysis.sql` has no views any more."""

    analysis: Analysis
    config: ModelConfig
    rewritten: Rewritten
    schemas: Mapping[str, Mapping[str, str]]
    pins: Pins
    ai: AiContext | None
    _tree: QueryTree | NotIncremental | None = None

    def strategies(self) -> tuple[Applies, ...]:
        """All six, in the order in which a run looks at them."""
        nothing = self._no_op(self.facts(SupposedRun("nothing")))
        found = [Applies("NO_OP", nothing.applies, () if nothing.applies else nothing.reasons)]
        general = self.candidates(self.general(True), ("APPEND_ONLY",))
        general |= self.candidates(self.general(False), STRATEGIES[1:])
        said = [general[strategy] for strategy in STRATEGIES]
        refused = {candidate.strategy for candidate in said if not candidate.applies}
        when: dict[str, list[str]] = {strategy: [] for strategy in STRATEGIES}
        for situation in self.situations():
            asked = refused & {"APPEND_ONLY"} if situation.changes and situation.grows else refused - {"APPEND_ONLY"}
            for strategy, candidate in self.candidates(situation, asked).items():
                when[strategy] += [situation.when] if candidate.applies else []
        for candidate in said:
            reasons = () if candidate.applies else candidate.reasons
            found.append(Applies(candidate.strategy, candidate.applies, reasons, tuple(when[candidate.strategy])))
        return (*found, Applies("COMPLETE_RECOMPUTE", True))

    def never(self) -> tuple[Candidate, ...]:
        """What each incremental strategy says where none applies to any run; empty where one does, or where nothing ever changes."""
        situations = tuple(self.situations())
        general = {only_new: self.candidates(self.general(only_new)) for only_new in (True, False)}
        looked = (*general.values(), *map(self.candidates, situations))
        if not situations or any(candidate.applies for found in looked for candidate in found.values()):
            return ()
        return tuple(general[strategy == "APPEND_ONLY"][strategy] for strategy in STRATEGIES)

    def general(self, only_inserts: bool) -> SupposedRun:
        """All that can go on at once."""
        changes = (self._change(source.name, only_inserts) for source in self._sources if source.version is not None)
        return SupposedRun("anything changes", tuple(changes), Level.COMMAND in self.analysis.levels)

    def situations(self) -> Iterator[SupposedRun]:
        """One per source and kind of change, and one for the clock."""
        for source in self._sources:
            if source.version is not None:
                yield SupposedRun(f"{source.name} only gains rows", (self._change(source.name, True),))
                yield SupposedRun(f"rows of {source.name} change", (self._change(source.name, False),))
        if Level.COMMAND in self.analysis.levels:
            yield SupposedRun("rows enter or leave by the clock", crossed=True)

    def _change(self, name: str, only_inserts: bool) -> SourceChange:
        return SourceChange(name, 1, 2, "feed", only_inserts, 1, 1000)

    def candidates(self, situation: SupposedRun, asked: Collection[str] = STRATEGIES) -> dict[str, Candidate]:
        """What the incremental strategies say to it, those that are asked."""
        said = self._proposals(self.facts(situation), situation.changes, asked) if asked else []
        return {p.candidate.strategy: p.candidate for p in said if p.candidate.strategy in asked}

    def _proposals(self, facts: RunFacts, changed: tuple[SourceChange, ...], asked: Collection[str]) -> list[Proposal]:
        columns = self._columns(facts)
        known = Situation(facts, self.analysis, self.config, self.rewritten, self.pins, ai=self.ai)
        if reasons := blocked(known, columns, self._no_op(facts)):
            return rejected_all(reasons)
        try:
            tree = self.tree()
        except NotIncremental as error:
            return rejected_all([Reason(error.code, error.sentence)])
        return propose(
            IncrementalFacts(
                facts=facts,
                config=self.config,
                rewritten=self.rewritten,
                columns=columns,
                tree=tree,
                changes=Changes(changed, (), dict.fromkeys(self.schemas, 1000), 1000),
                move=clock_move(facts, tree, self.pins),
                pins=self.pins,
                ai=self.ai,
                settled=Level.ORDER_DEPENDENT not in self.analysis.levels,
            ),
            asked,
        )

    def tree(self) -> QueryTree:
        """Read once for all situations: the clock moves in each of them."""
        if self._tree is None:
            try:
                self._tree = model_tree(
                    self.analysis, self.schemas, self.pins.time_zone, self.rewritten.filter_texts is not None
                )
            except NotIncremental as error:
                self._tree = error
        if isinstance(self._tree, NotIncremental):
            raise self._tree
        return self._tree

    def facts(self, situation: SupposedRun) -> RunFacts:
        """What a run would find."""
        changed = {change.name for change in situation.changes}
        columns = self.rewritten.columns
        record = RunRecord(
            query=self.analysis.fingerprint,
            config=config_fingerprint(self.config, self.ai.identity_text if self.ai else ""),
            as_of=_text(self.pins.as_of - SINCE_LAST),
            time_zone=self.pins.time_zone,
            sources={s.name: BEFORE if s.name in changed else VERSION for s in self._sources if s.version is not None},
            kept={c.name.lower(): c.fingerprint for c in self.analysis.columns if c.kept},
            columns=column_prints(self.analysis, columns),
            keys=tuple(name.lower() for name in self.config.unique_key),
            pins=self._pins_before,
            next_change_at=_text(self.pins.as_of) if situation.crossed else None,
            clock_solved=self.rewritten.clock_solved,
            base_version=1,
        )
        target = TargetFacts(
            exists=True, provider="delta", ours=True, columns=columns, version=2, record=record, intact=True
        )
        return RunFacts(
            model="",
            as_of=_text(self.pins.as_of),
            time_zone=self.pins.time_zone,
            invocation_id="",
            sources=self._sources,
            target=target,
            pins=dict(self.rewritten.pins),
        )

    @cached_property
    def _sources(self) -> tuple[SourceFacts, ...]:
        tables = tuple(
            SourceFacts(name, tuple(Column(c, t) for c, t in columns.items()), "delta", VERSION, change_feed=True)
            for name, columns in self.schemas.items()
            if name.lower() in {t.name.lower() for t in self.analysis.tables}
        )
        others = (without_versions(t.name) for t in self.analysis.tables)
        return (*tables, *(fact for fact in others if fact is not None))

    def _columns(self, facts: RunFacts) -> ColumnPlan:
        record = facts.target.record
        assert record is not None
        before = record.of_columns(record.query, record.columns)
        return plan_columns(self.analysis, self.rewritten.columns, facts.target, self.config, before)

    def _no_op(self, facts: RunFacts) -> Candidate:
        record = facts.target.record
        assert record is not None
        return no_op(facts, record.query, record.config, self.rewritten.clock_elsewhere, kept=record.kept)

    @cached_property
    def _pins_before(self) -> dict[str, str]:
        return dict(pin(self.analysis.sql, self.pins.at(self.pins.as_of - SINCE_LAST)).used)


def never_incremental(situation: Situation) -> tuple[Candidate, ...]:
    """See Supposed.never, of a model as a run has read it."""
    known = (situation.analysis, situation.config, situation.rewritten, situation.schemas, situation.pins, situation.ai)
    return Supposed(*known).never()


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S.%f")
