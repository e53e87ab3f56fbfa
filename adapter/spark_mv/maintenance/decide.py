"""Facts and verdict in, plan out: the one place where a run's strategy is chosen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from spark_mv.maintenance import cost
from spark_mv.maintenance.audit import AUDITED, audit_plan, compared, rows_in_order
from spark_mv.maintenance.choose import choose
from spark_mv.maintenance.columns import ColumnPlan, column_prints, plan_columns
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import ConfigError, RefusedError
from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.past import pace
from spark_mv.maintenance.plan import Candidate, Plan
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.second_reading import carried, with_second_reading
from spark_mv.maintenance.state import Standing, StateFacts, standing
from spark_mv.maintenance.steps.limit import limited
from spark_mv.maintenance.steps.our_rows import TARGET, kept_in
from spark_mv.maintenance.strategies import complete_recompute
from spark_mv.maintenance.strategies.no_op import no_op
from spark_mv.maintenance.strategies.propose import Gather, answers_decide, propose
from spark_mv.maintenance.strategies.state_steps import Known, Seed
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.syntax.table_name import joined


def config_fingerprint(config: ModelConfig, ai_identity: str = "") -> str:
    """Hash of the settings that decide which rows and values the table holds."""
    parts = {
        "unique_key": [key.lower() for key in config.unique_key],
        "on_source_delete": config.on_source_delete,
        "freeze": sorted(name.lower() for name in config.freeze),
        "on_schema_change": config.on_schema_change,
        "partition_by": config.partition_by,
        "cluster_by": config.cluster_by,
        "ai": ai_identity,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def decide(
    facts: RunFacts,
    analysis: Analysis,
    config: ModelConfig,
    rewritten: Rewritten,
    *,
    state: StateFacts | None = None,
    seed: Seed | None = None,
    ai_identity: str = "",
    gather: Gather | None = None,
    notes: Sequence[str] = (),
    audit: bool = False,
) -> Plan:
    """The plan of this run. `gather` looks up what changed; without it, nothing is maintained incrementally. `state`: the
    state table, None for a model that has none; `seed` what the model's table tells of a lost one. `notes`: what was noticed
    already and has to be said. With `audit`, the plan that compares what the last run has left, at the same facts, with a
    complete recompute.

    Raises RefusedError when the target is not ours or the analysis found errors, ConfigError when settings do not fit
    the query.
    """
    refuse(facts, analysis)
    target = facts.target if facts.target.ours else TargetFacts(version=facts.target.version)
    if audit:  # it honours no request
        target = replace(target, forget=())
    facts = replace(facts, target=target)
    record = target.record
    fingerprint = config_fingerprint(config, ai_identity)
    prints = column_prints(analysis, rewritten.columns)
    before = record.of_columns(analysis.fingerprint, prints) if record else None
    columns = plan_columns(analysis, rewritten.columns, target, _schema_policy(config, facts), before)
    problems = [*columns.problems, *_window_problems(config, rewritten), *_layout_problems(config, target)]
    if problems:
        raise ConfigError(facts.model, problems)
    notes = (*notes, *_forget_notes(columns, target), *_kept_notes(columns, target))
    stands = standing(state, target) if state else Standing(True)
    if state and state.exists and not (state.ours or state.record or stands.trusted):
        raise RefusedError(
            f"model {facts.model}: the table {facts.model}__state exists and nondeterministic_mv did not make it, so it is not "
            "overwritten. The model needs a table of that name beside its own: drop it, or give the model another alias"
        )
    candidates = [
        no_op(
            facts,
            analysis.fingerprint,
            fingerprint,
            rewritten.clock_elsewhere,
            config.refresh,
            columns.kept_prints,
            stands.problem,
        )
    ]
    new_record = RunRecord(
        query=analysis.fingerprint,
        config=fingerprint,
        as_of=facts.as_of,
        time_zone=facts.time_zone,
        sources=facts.source_versions,
        kept=columns.kept_prints,
        filter_print=rewritten.filter_print,
        columns=columns.prints,
        keys=tuple(name.lower() for name in config.unique_key),
        pins=dict(rewritten.pins),
        settings=dict(facts.settings),
        source_columns=facts.source_columns,
        functions=facts.functions,
        clock_solved=rewritten.clock_solved,
        base_version=target.version if target.exists else None,
        turn=target.turn,
        invocation_id=facts.invocation_id,
        partial=facts.partial,
        ask_again=target.ask_again,
        ai_pending=record.ai_pending if record else 0,
        ai_retry_at=record.ai_retry_at if record else None,
        unaudited=(record.unaudited if record else 0) + 1,
        started_at=facts.started_at,
        read_twice=carried(record, analysis.fingerprint, facts),
        key_bound=record.key_bound if record and target.intact and not columns.identity.rekeyed else None,
        key_floor=record.key_floor if record and target.intact and not columns.identity.rekeyed else None,
    )
    if audit:
        assert record is not None
        candidates = [Candidate("NO_OP", False, (AUDITED,))]
        config = replace(config, refresh="auto")
        columns = replace(columns, columns=compared(columns.columns, analysis), replace=False)
        # as the last run left it: an audit asks for nothing, honours no request, and is no measure of what a run takes
        new_record = replace(
            new_record,
            unaudited=0,
            ai_pending=record.ai_pending,
            ai_retry_at=record.ai_retry_at,
            honoured=record.base_version if record.honoured is None else record.honoured,
            ask_again=record.ask_again,
            strategy=record.strategy,
            target_rows=record.target_rows,
            source_rows=record.source_rows,
        )
    if candidates[0].applies:
        return Plan(facts.model, "NO_OP", tuple(candidates), columns=columns.columns, record=record, notes=notes)
    if _layout_changed(config, target):
        columns = replace(columns, replace=True)
    known = Known(facts, config, rewritten, columns, analysis, state, stands, seed or Seed()) if state else None
    only_clock = _only_clock(candidates[0], facts)
    (whole, of_state), *spare = (
        complete_recompute.steps(facts, config, rewritten, columns, known, relation, only_clock)
        for relation in (kept_in(target) if target.exists else (TARGET,))
    )
    if of_state:
        notes, new_record = (*notes, *of_state.notes), replace(new_record, state=of_state.record.id)
    complete = Plan(
        facts.model,
        "COMPLETE_RECOMPUTE",
        (),
        whole,
        columns.columns,
        new_record,
        notes,
        state=of_state.record if of_state else None,
        state_turn=of_state.turn if of_state else 0,
    )
    if audit:
        plan = audit_plan(
            replace(complete, candidates=(candidates[0], Candidate("COMPLETE_RECOMPUTE", True, (AUDITED,)))),
            repair=not rows_in_order(analysis),
            record=(config.audit or 0) > 1,
        )
        return limited(plan, config.max_rows_changed)
    proposals, changes = propose(facts, config, rewritten, columns, candidates[0], gather, answers_decide(analysis))
    learned = pace(record, target.record_at, cost.complete(changes))
    complete = replace(complete, record=replace(new_record, source_rows=changes.source_rows, pace=learned))
    plan = choose(complete, candidates[0], proposals, config)
    plan = with_second_reading(plan, facts, analysis, config.second_reading)
    plan = replace(plan, fallback=replace(plan, steps=spare[0][0])) if spare else plan
    return limited(plan, config.max_rows_changed)


def _only_clock(no_op: Candidate, facts: RunFacts) -> bool:
    """Whether the run has nothing to follow but that the clock went forward."""
    record = facts.target.record
    forward = record is not None and facts.as_of > record.as_of
    return forward and {reason.code for reason in no_op.reasons} <= {"CLOCK_MOVED", "BOUND_CROSSED"}


def refuse(facts: RunFacts, analysis: Analysis) -> None:
    """Raises RefusedError for what must stop a run whatever its strategy."""
    if analysis.errors:
        raise RefusedError("\n".join(error.message for error in analysis.errors))
    target = facts.target
    if target.exists and not target.ours and not facts.full_refresh:
        kind = "table" if target.is_table else "view"
        raise RefusedError(
            f"model {facts.model}: a {kind} of this name exists that nondeterministic_mv did not make, and it is never "
            "overwritten by accident. Run once with --full-refresh to replace it, or give the model another alias"
        )


def _window_problems(config: ModelConfig, rewritten: Rewritten) -> list[str]:
    if config.on_source_delete == "keep" and rewritten.clock and rewritten.draw_sql:
        return [
            "on_source_delete: keep does not go with both a window and a random filter: which rows would have been "
            "candidates cannot be told once the source has lost them. Give the draw its own nondeterministic_mv"
        ]
    if config.on_source_delete == "keep" and rewritten.clock and not rewritten.unclocked_sql:
        return [
            "on_source_delete: keep needs clock predicates from which each row's time of leaving follows, because a row "
            f"that the source has lost stays until its window evicts it; here {rewritten.unclocked_reason}. Write the "
            "window as comparisons of a column with the clock in the outermost WHERE, or use on_source_delete: delete"
        ]
    return []


def _forget_notes(columns: ColumnPlan, target: TargetFacts) -> list[str]:
    kept = {name.lower() for name in columns.kept}
    return [
        f"forget_values was asked for {', '.join(gone)}, which is not kept per key any longer; that part is dropped"
        for request in target.forget
        if (gone := [name for name in request.columns if name not in kept])
    ]


def _kept_notes(columns: ColumnPlan, target: TargetFacts) -> list[str]:
    """What becomes of kept values that the table can not simply keep."""
    if not target.exists:
        return []
    notes = [f"{name} is drawn anew in all rows: {why}" for name, why in columns.drawn_anew.items()]
    if not target.intact and target.record is not None:
        what = f" ({target.foreign_operation})" if target.foreign_operation else ""
        notes.append(
            f"something else wrote to the table since its last run{what}; all rows are written as they have to be, and what "
            "the run counts is what changed since that run"
        )
    if columns.keeps and target.record is None:
        notes.append(
            f"no record of an earlier run is left in the table's history; its values of {', '.join(columns.kept)} are taken "
            "for kept values"
        )
    if columns.kept and columns.identity.rekeyed:
        how = ", ".join(t for _, t in columns.identity.pairs)
        notes.append(
            f"unique_key changed: kept values are found by {how}, and rows that it does not find draw anew"
            if how
            else "unique_key changed, and neither the table has the new one nor the query the old one: all rows draw anew"
        )
    return notes


def _layout_problems(config: ModelConfig, target: TargetFacts) -> list[str]:
    if target.cluster_by and config.partition_by and not config.cluster_by:
        return [
            "partition_by: the table is clustered, and Delta replaces no clustered table with a partitioned one. Use "
            "liquid_clustered_by, or drop the table (its kept values go with it)"
        ]
    return []


def _schema_policy(config: ModelConfig, facts: RunFacts) -> ModelConfig:
    return replace(config, on_schema_change="sync_all_columns") if facts.full_refresh else config


def _layout_changed(config: ModelConfig, target: TargetFacts) -> bool:
    def lower(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name.strip("`").lower() for name in names)

    clusters = tuple(joined([name]) for name in lower(config.cluster_by))
    return target.exists and (
        lower(config.partition_by) != lower(target.partition_by)
        or clusters != tuple(name.lower() for name in target.cluster_by)
    )
