"""COMPLETE_RECOMPUTE: the query is read whole, only rows that differ are written, no kept value is drawn or paid again.

The staged rows are the difference between the query's result and the table. They are *written* before anything is
merged, because a view or a cached plan would draw again at each read (Spark gives rand() new values per evaluation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_mv.maintenance.columns import ColumnPlan, Role, StagedColumn, plan_columns
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column, RunFacts, TargetFacts
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.rewritten import BOUNDS, VALID_FROM, VALID_TO, Rewritten
from spark_mv.maintenance.steps.our_rows import TARGET
from spark_mv.maintenance.steps.publish import check_stage, publish
from spark_mv.maintenance.steps.versions import rewritten_at_versions
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.syntax.reserved import relation


def steps(
    facts: RunFacts,
    config: ModelConfig,
    rewritten: Rewritten,
    columns: ColumnPlan,
    analysis: Analysis,
    state: TargetFacts,
    kept_in: str = TARGET,
    only_clock: bool = False,
) -> tuple[Step, ...]:
    """The steps of a complete recompute, in order. `state` is the table of remembered rows, which only a model with a
    window over a source that forgets (`on_source_delete: keep`) has. `kept_in`: the relation that kept values are read from.
    Where it is not the table as it is, all rows are written: what others left there (a row twice, a NULL in the key) cannot
    be told from ours by its key. `only_clock`: nothing but the clock went on since the last run."""
    keep = config.on_source_delete == "keep"
    remembers = keep and rewritten.clock
    replaces = columns.replace or facts.full_refresh or not facts.target.exists or kept_in != TARGET
    rewritten, confirm = rewritten_at_versions(rewritten, facts.sources)
    query, staged = rewritten.sql, columns.columns
    steps: list[Step] = []
    if rewritten.draw_sql:
        steps += _keep_draws(facts, rewritten, columns, state)
    steps += [Step("ai_round", {"round": i}) for i in range(rewritten.ai_rounds)]
    if remembers:
        steps += _remember(facts, config, rewritten, columns, analysis, state)
        query = _remembered(rewritten, [c.name for c in columns.columns if c.in_query])
        staged = tuple(replace(c, role=Role.DATA) if c.role is Role.KEPT else c for c in columns.columns)
    steps.append(
        Step(
            "stage_changes",
            {
                "into": "stage",
                "query": query,
                "columns": staged,
                "target": kept_in if facts.target.exists else None,
                "all_rows": replaces,
                "keep_missing": keep and not remembers,
                "forget": () if remembers else _flags(facts),
            },
        )
    )
    kept = bool(columns.kept) and facts.target.exists
    record = facts.target.record
    known = record.target_rows if record and facts.target.intact else None
    steps.append(check_stage(columns, known if facts.target.exists else 0, kept_in if kept else None))
    if rewritten.clock and (rewritten.unclocked_sql or only_clock) and facts.target.exists:
        steps.append(
            Step(
                "count_evicted",
                {
                    "stage": "stage",
                    "keys": columns.keys,
                    # where nothing else happened, all rows that go are the clock's
                    "query": relation("state") if remembers else rewritten.unclocked_sql,
                    "is_relation": remembers,
                    "as_of": rewritten.as_of_literal,
                },
                when="deleted",
            )
        )
    if rewritten.next_change_sql or remembers:
        queries = (
            (_next_remembered(rewritten), None) if remembers else (rewritten.next_change_sql, rewritten.near_change_sql)
        )
        steps.append(Step("next_change", {"query": queries[0], "near": queries[1]}))
    steps += confirm
    if replaces:
        # what is not there is made and never replaced: another first run may have been quicker
        how = "create_table" if facts.target.version is None else "replace_table"
        steps.append(Step(how, {"relation": "target", "stage": "stage", "columns": staged}))
    else:
        steps += publish(replace(columns, columns=staged), {"stage": "stage"})
    if rewritten.draw_sql:
        steps.append(Step("delete_from", {"relation": "state", "stage": "state_stage", "keys": columns.keys}))
    if remembers:
        steps.append(Step("forget_expired", {"relation": "state", "as_of": rewritten.as_of_literal}))
    return tuple(steps)


def _keep_draws(facts: RunFacts, rewritten: Rewritten, columns: ColumnPlan, state: TargetFacts) -> list[Step]:
    """Draw for the candidates of a random filter that have no draw yet. Draws of candidates that are gone are dropped
    last, after the table is published: until then they tell what left by the clock from what the source lost."""
    before = facts.target.record.kept if facts.target.record else {}
    keys = {key.lower() for key in columns.keys}
    staged = tuple(
        StagedColumn(
            c.name,
            c.type,
            Role.KEY if c.name.lower() in keys else Role.KEPT,
            in_target=state.has(c.name),
            fresh=before.get(c.name.lower(), "") not in ("", rewritten.draw_fingerprints.get(c.name, "")),
        )
        for c in rewritten.draw_columns
    )
    replaces = _names(state.columns) != _names(rewritten.draw_columns)
    stage = {
        "into": "state_stage",
        "query": rewritten.draw_sql,
        "columns": staged,
        "target": "state",
        "all_rows": replaces,
        "keep_missing": False,
        "forget": (),
    }
    publish = {"relation": "state", "stage": "state_stage", "columns": staged, "deletes": False}
    return [
        Step("stage_changes", stage),
        Step("check_stage", {"stage": "state_stage", "keys": columns.keys, "into": "state"}),
        Step("replace_table", publish) if replaces else Step("merge_into", publish, when="state_changed"),
    ]


def _remember(
    facts: RunFacts,
    config: ModelConfig,
    rewritten: Rewritten,
    columns: ColumnPlan,
    analysis: Analysis,
    state: TargetFacts,
) -> list[Step]:
    """Bring the table of remembered rows up to date: rows seen now are added or updated, none leaves because the source
    lost it. Committed before the target, so that a run that dies in between has lost nothing."""
    assert rewritten.unclocked_sql is not None
    bounded = (*rewritten.columns, *BOUNDS)
    before = facts.target.record.kept if facts.target.record else {}
    state = replace(state, forget=facts.target.forget)
    plan = plan_columns(
        analysis, rewritten.columns, state, replace(config, on_schema_change="sync_all_columns"), before
    )
    names = {c.name for c in plan.columns}
    bounds = [StagedColumn(c.name, c.type, Role.DATA, in_target=state.exists) for c in BOUNDS if c.name not in names]
    staged = (*(c for c in plan.columns if c.name not in (VALID_FROM, VALID_TO)), *bounds)
    replaces = not state.exists or _names(state.columns) != _names(bounded)
    query = (
        f"SELECT * FROM (\n{rewritten.unclocked_sql}\n) "
        f"WHERE {VALID_TO} IS NULL OR {VALID_TO} > {rewritten.as_of_literal}"
    )
    stage = {
        "into": "state_stage",
        "query": query,
        "columns": staged,
        "target": "state" if state.exists else None,
        "all_rows": replaces,
        "keep_missing": True,
        "forget": _flags(facts),
    }
    publish = {"relation": "state", "stage": "state_stage", "columns": staged}
    return [
        Step("stage_changes", stage),
        Step("check_stage", {"stage": "state_stage", "keys": columns.keys, "into": "state"}),
        Step("replace_table", publish) if replaces else Step("merge_into", publish, when="state_changed"),
    ]


def _flags(facts: RunFacts) -> tuple[dict[str, str], ...]:
    """Markers of the rows whose kept values are to be forgotten: name and condition over the table's columns."""
    return tuple({"name": r.flag, "where": r.where or "true"} for r in facts.target.forget)


def _remembered(rewritten: Rewritten, names: Sequence[str]) -> str:
    columns = ", ".join(f"`{name.replace('`', '``')}`" for name in names)
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


def _names(columns: Sequence[Column]) -> set[tuple[str, str]]:
    return {(c.name.lower(), c.type.lower()) for c in columns}
