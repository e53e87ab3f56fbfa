"""COMPLETE_RECOMPUTE: the query is read whole, only rows that differ are written, no kept value is drawn or paid again.

The staged rows are the difference between the query's result and the table. They are *written* before anything is
merged, because a view or a cached plan would draw again at each read (Spark gives rand() new values per evaluation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_mv.maintenance.columns import ColumnPlan, Role
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.state import Seed
from spark_mv.maintenance.steps.ai_round import ai_steps
from spark_mv.maintenance.steps.last_steps import check_stage, publish, range_of_keys
from spark_mv.maintenance.steps.next_bound import NextBound
from spark_mv.maintenance.steps.our_rows import TARGET
from spark_mv.maintenance.steps.versions import at_versions, rewritten_at_versions
from spark_mv.maintenance.strategies.state_steps import Known, StateSteps, drop_draws, flags, keep_draws, remember
from spark_mv.query.syntax.reserved import VALID_FROM, VALID_TO, relation
from spark_mv.query.syntax.table_name import quoted


def steps(
    facts: RunFacts,
    config: ModelConfig,
    rewritten: Rewritten,
    columns: ColumnPlan,
    known: Known | None,
    kept_in: str = TARGET,
    only_clock: bool = False,
) -> tuple[tuple[Step, ...], StateSteps | None]:
    """The steps of a complete recompute, in order, and those of them that bring the state table up to date. `known`: what
    these are made from, None for a model without a state. `kept_in`: the relation that kept values are read from.
    Where it is not the table as it is, all rows are written: what others left there (a row twice, a NULL in the key) cannot
    be told from ours by its key. `only_clock`: nothing but the clock went on since the last run."""
    keep = config.on_source_delete == "keep"
    remembers = keep and rewritten.clock
    replaces = columns.replace or facts.full_refresh or not facts.target.exists or kept_in != TARGET
    whole = facts.whole and not replaces
    rewritten, confirm = rewritten_at_versions(rewritten, facts.sources)
    query, staged = rewritten.sql, columns.columns
    steps: list[Step] = []
    state: StateSteps | None = None
    if known:
        known = replace(known, rewritten=rewritten, seed=_seed_at_versions(known.seed, facts), kept_in=kept_in)
        state = remember(known) if remembers else keep_draws(known)
    if state and not remembers:
        steps += state.steps
    steps += ai_steps(rewritten.ai_rounds)
    if state and remembers:
        steps += state.steps
        query = _remembered(rewritten, [c.name for c in columns.columns if c.in_query])
        staged = tuple(replace(c, role=Role.DATA) if c.role is Role.KEPT else c for c in columns.columns)
    stage_args = {
        "into": "stage",
        "query": query,
        "columns": staged,
        "target": kept_in if _found(facts.target, columns) else None,
        "all_rows": replaces or whole,
        "keep_missing": keep and not remembers,
        "forget": () if remembers else flags(facts.target.forget),
        "identity": columns.found_by,
        "stays": columns.stays,
        "failing": rewritten.failing_sql,
        "failing_columns": rewritten.failing_columns,
    }
    bound = _next_bound(rewritten, remembers)
    steps += [*bound.ahead(), Step("stage_changes", stage_args)]
    kept = columns.keeps and facts.target.exists
    record = facts.target.record
    counted = record.target_rows if record and facts.target.intact else None
    if not replaces and not whole:
        steps += range_of_keys(columns, record, counted)
    check = check_stage(columns, counted if facts.target.exists else 0, kept_in if kept else None)
    steps.append(replace(check, args={**check.args, "next_change": bound.first}) if bound.first else check)
    if rewritten.clock and (rewritten.unclocked_sql or only_clock) and facts.target.exists:
        steps.append(_evicted(rewritten, columns, remembers))
    steps += [*bound.far(), *confirm]
    if replaces:
        # what is not there is made and never replaced: another first run may have been quicker
        how = "create_table" if facts.target.version is None else "replace_table"
        steps.append(Step(how, {"relation": "target", "stage": "stage", "columns": staged}))
    else:
        steps += publish(replace(columns, columns=staged), {"stage": "stage"}, whole)
    if state and not facts.target.exists:
        # the table is there now: from here on, the state is that of this table and of no later one
        steps.append(Step("record_only", {"relation": "state"}))
    if rewritten.draw_sql:
        steps.append(drop_draws(columns))
    if remembers:
        steps.append(Step("forget_expired", {"relation": "state", "as_of": rewritten.as_of_literal}))
    return tuple(steps), state


def _evicted(rewritten: Rewritten, columns: ColumnPlan, remembers: bool) -> Step:
    """Count the rows that the clock takes. Where nothing else happened, all rows that go are the clock's."""
    args = {
        "stage": "stage",
        "keys": columns.keys,
        "query": relation("state") if remembers else rewritten.unclocked_sql,
        "is_relation": remembers,
        "as_of": rewritten.as_of_literal,
    }
    return Step("count_evicted", args, when=When.DELETED)


def _next_bound(rewritten: Rewritten, remembers: bool) -> NextBound:
    """When a row next enters or leaves."""
    if remembers:
        return NextBound(_next_remembered(rewritten))
    return NextBound(rewritten.next_change_sql, rewritten.near_change_sql, of_sources=True)


def _seed_at_versions(seed: Seed, facts: RunFacts) -> Seed:
    trial, accepted = (
        (at_versions(text, facts.sources) or text) if text else None for text in (seed.trial_sql, seed.accepted_sql)
    )
    return replace(seed, trial_sql=trial, accepted_sql=accepted)


def _found(table: TargetFacts, columns: ColumnPlan) -> bool:
    """Whether rows of the table can be found for those of the query."""
    return table.exists and bool(columns.identity.pairs)


def _remembered(rewritten: Rewritten, names: Sequence[str]) -> str:
    columns = ", ".join(quoted(name) for name in names)
    now = rewritten.as_of_literal
    return (
        f"SELECT {columns} FROM {relation('state')} WHERE ({VALID_FROM} IS NULL OR {VALID_FROM} <= {now}) "
        f"AND ({VALID_TO} IS NULL OR {VALID_TO} > {now})"
    )


def _next_remembered(rewritten: Rewritten) -> str:
    now = rewritten.as_of_literal
    return (
        f"SELECT min(least(CASE WHEN {VALID_FROM} > {now} THEN {VALID_FROM} END, "
        f"CASE WHEN {VALID_TO} > {now} THEN {VALID_TO} END)) FROM {relation('state')}"
    )
