"""What is known in, plan out: the one place where a run's strategy is chosen. Two pure functions, because what changed in the
sources is worth a look only where it matters:

    begin(situation) → Opening          nothing to do? which columns? may the last result be continued?
        the run reads what changed, if `Opening.asks_for_changes`
    decide(opening, changes) → Plan     the cheapest strategy that applies, its steps, and what to fall back to
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_mv.maintenance.changes import Changes
from spark_mv.maintenance.choose import choose, fell_back
from spark_mv.maintenance.cost import cost_of
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.ground import Ground, ground
from spark_mv.maintenance.incremental_facts import IncrementalFacts
from spark_mv.maintenance.next_record import next_record, settings_print
from spark_mv.maintenance.notes import adopted_notes
from spark_mv.maintenance.pace import Pace, learned, took
from spark_mv.maintenance.plan import Candidate, Plan, Reason, Step
from spark_mv.maintenance.read_query import tree_and_move
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.second_reading import with_second_reading
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.state import Seed
from spark_mv.maintenance.steps.limit import limited
from spark_mv.maintenance.steps.our_rows import TARGET, kept_in
from spark_mv.maintenance.strategies import complete_recompute
from spark_mv.maintenance.strategies.no_op import no_op
from spark_mv.maintenance.strategies.one_statement import in_one_statement
from spark_mv.maintenance.strategies.propose import blocked, propose, rejected_all
from spark_mv.maintenance.strategies.state_steps import Known
from spark_mv.query.delta.restrict import Move, NotIncremental, QueryTree
from spark_mv.query.functions.level import Level


@dataclass(frozen=True)
class Opening:
    """What is decided without knowing what changed. `blocked` says why the last result cannot be continued; where it can,
    `tree` and `move` are those of the query."""

    ground: Ground
    no_op: Candidate
    record: RunRecord
    blocked: tuple[Reason, ...] = ()
    tree: QueryTree | None = None
    move: Move | None = None

    @property
    def asks_for_changes(self) -> bool:
        """Whether what changed in the sources matters."""
        return self.tree is not None

    def seeded(self, seed: Seed) -> Opening:
        """The same with what tells of the state."""
        return replace(self, ground=replace(self.ground, situation=replace(self.ground.situation, seed=seed)))

    def holding(self, whole: bool) -> Opening:
        """The same where the run holds what it stages in memory. `whole`: see RunFacts."""
        return replace(self, ground=replace(self.ground, situation=self.ground.situation.holding(whole)))


def begin(situation: Situation) -> Opening:
    """Raises RefusedError when the target is not ours or the analysis found errors, ConfigError when settings do not fit
    the query."""
    found = ground(situation)
    situation, columns = found.situation, found.columns
    candidate = no_op(
        situation.facts,
        situation.analysis.fingerprint,
        settings_print(situation),
        situation.rewritten.clock_elsewhere,
        situation.config.refresh,
        columns.kept_prints,
        found.standing.problem,
    )
    opening = Opening(found, candidate, next_record(situation, columns))
    if candidate.applies:
        return opening
    if reasons := blocked(situation, found.renewed, candidate):
        return replace(opening, blocked=reasons)
    try:
        tree, move = tree_and_move(situation)
    except NotIncremental as error:
        return replace(opening, blocked=(Reason(error.code, error.sentence),))
    return replace(opening, tree=tree, move=move)


def decide(opening: Opening, changes: Changes | None = None) -> Plan:
    """The plan of this run. `changes`: what changed, where it was asked for. Raises RefusedError under `refresh: incremental`
    when no incremental strategy applies."""
    found, situation = opening.ground, opening.ground.situation
    last = situation.facts.target.record
    if opening.no_op.applies:
        columns = found.columns.columns
        return Plan(situation.facts.model, "NO_OP", (opening.no_op,), columns=columns, record=last, notes=found.notes)
    complete, spare = complete_plan(found, opening.record, only_clock(opening.no_op, situation.facts))
    known = incremental_facts(opening, changes) if changes is not None else None
    proposals = propose(known) if known is not None else rejected_all(opening.blocked)
    changes = changes or Changes()
    whole = cost_of(changes, situation.config.choose_by).complete if changes.source_rows else None
    pace = learned(last, situation.facts.target.record_at, whole)
    assert complete.record is not None
    complete = replace(complete, record=replace(complete.record, source_rows=changes.source_rows, pace=pace.known))
    here = Pace.of(pace.known, situation.facts.fixed_seconds)
    plan = choose(complete, opening.no_op, proposals, situation.config, here)
    if last is not None and situation.config.choose_by == "seconds" and not situation.facts.full_refresh:
        plan = replace(plan, remark=fell_back(plan, last.strategy, took(last, situation.facts.target.record_at)))
    plan = with_second_reading(plan, situation.facts, situation.analysis, situation.config.second_reading)
    if spare:
        plan = _with_spare(plan, spare, adopted_notes(found.renewed, situation.facts.target))
    return limited(plan, situation.config.max_rows_changed)


def _with_spare(plan: Plan, spare: tuple[Step, ...], notes: tuple[str, ...]) -> Plan:
    """The plan, with other steps behind those of its complete recompute, and what is to be said of these."""
    if plan.strategy == "COMPLETE_RECOMPUTE":
        return replace(plan, fallback=replace(plan, steps=spare, notes=(*plan.notes, *notes)))
    return plan if plan.fallback is None else replace(plan, fallback=_with_spare(plan.fallback, spare, notes))


def incremental_facts(opening: Opening, changes: Changes) -> IncrementalFacts | None:
    """What the incremental strategies look at; None where the last result cannot be continued."""
    situation = opening.ground.situation
    if opening.tree is None:
        return None
    return IncrementalFacts(
        facts=situation.facts,
        config=situation.config,
        rewritten=situation.rewritten,
        columns=opening.ground.renewed,
        tree=opening.tree,
        changes=changes,
        move=opening.move,
        pins=situation.pins,
        ai=situation.ai,
        state=_of_state(opening.ground),
        settled=Level.ORDER_DEPENDENT not in situation.analysis.levels,
    )


def complete_plan(found: Ground, record: RunRecord, by_clock: bool = False) -> tuple[Plan, tuple[Step, ...]]:
    """The plan of a complete recompute, and its steps where the version that kept values are best read from turns out to be
    gone, or rows turn out to be what may not be written. `by_clock`: nothing but the clock went on since the last run."""
    situation, columns = found.situation, found.renewed
    facts, state = situation.facts, _of_state(found)
    (steps, of_state), *spare = (
        complete_recompute.steps(facts, situation.config, situation.rewritten, columns, state, relation, by_clock)
        for relation in (kept_in(facts.target) if facts.target.exists else (TARGET,))
    )
    if direct := in_one_statement(steps, facts.target):
        steps, spare = direct, [(steps, of_state)]
    plan = Plan(facts.model, "COMPLETE_RECOMPUTE", (), steps, columns.columns, record, found.notes)
    if of_state:
        notes, record = (*found.notes, *of_state.notes), replace(record, state=of_state.record.id)
        plan = replace(plan, notes=notes, record=record, state=of_state.record, state_turn=of_state.turn)
    return plan, spare[0][0] if spare else ()


def _of_state(found: Ground) -> Known | None:
    """What the steps of the state table are made from; None for a model without one."""
    asked = found.situation
    if not asked.state:
        return None
    return Known(
        asked.facts,
        asked.config,
        asked.rewritten,
        found.renewed,
        asked.analysis,
        asked.state,
        found.standing,
        asked.seed,
    )


def only_clock(no_op: Candidate, facts: RunFacts) -> bool:
    """Whether the run has nothing to follow but that the clock went forward."""
    record = facts.target.record
    forward = record is not None and facts.as_of > record.as_of
    return forward and {reason.code for reason in no_op.reasons} <= {"CLOCK_MOVED", "BOUND_CROSSED"}
