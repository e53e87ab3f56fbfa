"""Facts → verdict → plan for one run: the path from what the macro hands over to a run ready to execute."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.audit import audit_due
from spark_mv.maintenance.config import ModelConfig, layered, read_config
from spark_mv.maintenance.decide import decide, refuse
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.notes import order_notes
from spark_mv.maintenance.rewrite import rewrite
from spark_mv.maintenance.state import StateFacts, standing
from spark_mv.maintenance.steps.our_rows import our_rows
from spark_mv.maintenance.steps.versions import at_versions
from spark_mv.maintenance.strategies.no_op import moved
from spark_mv.maintenance.strategies.state_steps import Seed
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.inline_views import View, inline_views
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.run import stamps
from spark_mv.spark.run.amendments import FEED, MAPPING, Amendments
from spark_mv.spark.run.as_of import as_of_instant, utc_text
from spark_mv.spark.run.audit import Auditor
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.forget import still_possible
from spark_mv.spark.run.gather import Gatherer, fill_ai_plan
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import query_columns, session_facts, source_facts, state_facts, target_facts, uncastable
from spark_mv.spark.run.own_functions import own_functions
from spark_mv.spark.run.pins import run_pins
from spark_mv.spark.run.planning import look_ahead
from spark_mv.spark.run.prepared import Prepared
from spark_mv.spark.session.catalogue import own_catalogue

if TYPE_CHECKING:
    from spark_mv.query.ai_calls.plan import AiPlan


def prepare(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> MvRun:
    """A run ready to execute. Raises ConfigError, RefusedError or ValueError before anything is touched."""
    started = datetime.now(timezone.utc)
    prepared = look(adapter, invocation, profile, ahead=True)
    if prepared.plan.steps:
        for note in order_notes(prepared.analysis):
            adapter.say(f"model {invocation.name}: {note}")
    stamp = stamps.new_stamp()
    sources = len(prepared.facts.sources)

    def beside(suffix: str) -> str:
        return f"{invocation.schema}.`{invocation.identifier}__{suffix}`"

    relations = {
        "target": invocation.target,
        "stage": beside(f"mv_stage_{stamp}"),
        "state": beside("state"),
        "state_stage": beside(f"mv_stage_s_{stamp}"),
        "aside": beside(f"mv_stage_{stamp}_{stamps.ASIDE}"),
        "trials": beside(f"mv_stage_{stamp}_trials"),
        "affected": beside(f"mv_stage_{stamp}_affected"),
        **our_rows(prepared.facts.target, invocation.target, _keys_of_table(prepared.facts.target, prepared.config)),
        **{f"changes_{k}": beside(f"mv_stage_{stamp}_changes_{k}") for k in range(sources)},
    }
    fill_ai_plan(prepared.runner, relations)
    return MvRun(
        session=adapter,
        plan=prepared.plan,
        relations=relations,
        query_sql=prepared.rewritten.sql,
        app_id=f"spark_mv:{invocation.unique_id}",
        as_of=prepared.facts.as_of,
        schema=invocation.schema,
        model_id=invocation.unique_id,
        invocation_id=invocation.invocation_id,
        started_at=started,
        amend=_amendments(prepared),
        stamp=stamp,
        leftovers=_leftovers(adapter, invocation) if prepared.plan.steps else (),
        in_the_way=_in_the_way(prepared.facts.target),
        ai_round=prepared.runner.run if prepared.runner else None,
        on_ai_error=prepared.runner.settings.on_ai_error if prepared.runner else "null",
        next_change_at=prepared.plan.record.next_change_at if prepared.plan.record else None,
        looking=prepared.looking,
        auditor=_auditor(adapter, prepared),
    )


def _auditor(adapter: Any, prepared: Prepared) -> Auditor | None:
    asked = audit_due(prepared.config.audit, prepared.facts)
    return Auditor(adapter, prepared, asked) if asked or prepared.plan.second_reading else None


def look(adapter: Any, invocation: Invocation, profile: Mapping[str, Any], ahead: bool = False) -> Prepared:
    """Facts, verdict and plan, read-only (an empty AI result table apart, which the query needs to be understood). `ahead`:
    a run will follow, and what it is sure to need is looked for meanwhile."""
    query = Ask(adapter.query, adapter.mv_spark())
    config = read_config(invocation.name, layered(profile.get("safety", {}), invocation.config, invocation.variables))
    functions = {
        **profile.get("functions", {}),
        **invocation.functions,
        **_declared_ai_functions(profile.get("ai") or {}, config.ai),
    }
    session = session_facts(query, invocation.sql)
    as_of = as_of_instant(invocation.as_of, invocation.started_at, session.time_zone, invocation.allow_future_as_of)
    analysis, sources = _analyze(query, invocation, config, functions)
    own, reading = own_functions(query, analysis.own_functions, functions, invocation.name)
    sources |= reading
    facts = RunFacts(
        model=invocation.name,
        as_of=utc_text(as_of),
        time_zone=session.time_zone,
        settings=session.settings,
        functions=own,
        invocation_id=invocation.invocation_id,
        sources=tuple(sources.values()),
        target=target_facts(query, invocation.target, invocation.target_exists, invocation.unique_id),
        full_refresh=invocation.full_refresh,
        started_at=utc_text(datetime.now(timezone.utc)),
        partial=invocation.partial,
    )
    refuse(facts, analysis)
    looking = look_ahead(adapter.mv_spark(), invocation.target) if ahead and moved(facts) else None
    state_table = f"{invocation.schema}.`{invocation.identifier}__state`"
    draws_rows = analysis.rows_level is Level.NONDETERMINISTIC
    has_state = draws_rows or (config.on_source_delete == "keep" and Level.COMMAND in analysis.levels)
    state = state_facts(query, state_table) if has_state and invocation.state_exists else StateFacts()
    sql = inline_views(invocation.sql, _volatile_views(sources, functions))
    schemas = {name: {c.name: c.type for c in source.columns} for name, source in sources.items()}
    runner = None
    if Level.AI in analysis.levels:
        from spark_mv.spark.run.ai import ai_runner

        runner = ai_runner(
            adapter,
            invocation.name,
            invocation.schema,
            invocation.invocation_id,
            invocation.project,
            as_of,
            profile.get("ai") or {},
            config.ai,
        )
    pins = run_pins(as_of, session, schemas)
    draws = None
    if draws_rows:
        from spark_mv.spark.run.draws import kept_draws

        declared = {name.lower(): Level(words["determinism"]) for name, words in functions.items()}
        views = {name: source.view_text for name, source in sources.items() if source.view_text}

        def verdict(text: str) -> Analysis:
            return analyze(
                text, schemas=schemas, functions=functions, views=views, model=invocation.name, rewritten=True
            )

        draws = kept_draws(query, invocation.name, sql, verdict, config.unique_key, declared, state_table, pins)
    result = rewrite(
        draws.filtered_sql if draws else sql,
        analysis,
        pins,
        schemas,
        lambda sql: query_columns(query, draws.describable(sql) if draws else sql),
        runner.context if runner else None,
    )
    if result.errors:
        raise RefusedError("\n".join(f"model {invocation.name}: {error.message}" for error in result.errors))
    if runner:
        runner.plan = result.ai and _asked_at_versions(result.ai, tuple(sources.values()))
    rewritten = result.rewritten
    if draws:
        rewritten = replace(
            rewritten,
            draw_sql=draws.draw_sql,
            draw_columns=draws.columns,
            draw_fingerprints=draws.fingerprints,
            filter_print=_filter_print(analysis),
        )
    remembers = config.on_source_delete == "keep" and rewritten.clock
    asked_of = (invocation.target, state_table) if remembers and state.exists else (invocation.target,)
    target, dropped = still_possible(query, facts.target, asked_of)
    columns_there = (*target.columns, *(state.columns if remembers else ())) if target.ours else ()
    target = replace(target, uncastable=uncastable(query, columns_there, rewritten.columns))
    facts = replace(facts, target=target, pins=dict(rewritten.pins))
    gatherer = Gatherer(
        query,
        facts,
        replace(analysis, sql=inline_views(invocation.sql, _views(sources))),
        config,
        rewritten,
        pins,
        invocation.target,
        runner,
    )
    seed = Seed()
    rekeyed = target.record is not None and {*target.record.keys} != {name.lower() for name in config.unique_key}
    other = draws is not None and state.record is not None and {**state.record.kept} != {**draws.fingerprints}
    lost = (draws or remembers) and (rekeyed or other or not standing(state, target).trusted)
    if target.exists and target.ours and lost:
        if draws:
            record = target.record
            known = record.filter_print if record else ""
            same = known == rewritten.filter_print if known else bool(record and record.query == analysis.fingerprint)
            seed = draws.seed(query, target, invocation.target, same)
        else:
            seed = Seed(bounds=gatherer.row_bounds())
    plan = decide(
        facts,
        analysis,
        config,
        rewritten,
        state=state if remembers or draws else None,
        seed=seed,
        ai_identity=runner.identity_text if runner else "",
        notes=dropped,
        gather=gatherer,
    )
    return Prepared(invocation, analysis, config, facts, rewritten, plan, as_of, runner, result.ai, looking)


def _asked_at_versions(plan: AiPlan, sources: tuple[SourceFacts, ...]) -> AiPlan:
    """The requests for answers read the sources as the query does."""
    rounds = (
        tuple(replace(call, request_sql=at_versions(call.request_sql, sources) or call.request_sql) for call in calls)
        for calls in plan.rounds
    )
    return replace(plan, rounds=tuple(rounds))


def _declared_ai_functions(*blocks: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The project's own AI functions (profile and model), as the analysis wants them declared."""
    return {name: {"determinism": "ai"} for block in blocks for name in (block.get("functions") or {})}


def _keys_of_table(target: TargetFacts, config: ModelConfig) -> tuple[str, ...]:
    """The unique key that the table's rows have, which need not be the model's of today."""
    keys = (target.record.keys if target.record else ()) or config.unique_key
    return tuple(key for key in keys if target.has(key)) or tuple(c.name for c in target.columns)


def _filter_print(analysis: Analysis) -> str:
    texts = sorted(" ".join(p.text.split()) for p in analysis.predicates if p.level is Level.NONDETERMINISTIC)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _views(sources: Mapping[str, SourceFacts]) -> dict[str, View]:
    return {
        name: View(source.view_text, tuple(c.name for c in source.columns))
        for name, source in sources.items()
        if source.view_text
    }


def _volatile_views(sources: Mapping[str, SourceFacts], functions: Mapping[str, Mapping[str, Any]]) -> dict[str, View]:
    """The views that hide a clock, a draw, a model call or the session: their text has to be part of the query."""
    views = {name: source.view_text for name, source in sources.items() if source.view_text}
    schemas = {name: {c.name: c.type for c in source.columns} for name, source in sources.items()}
    volatile = {}
    for name, text in views.items():
        verdict = analyze(text, schemas=schemas, functions=functions, views=views)
        if verdict.levels != {Level.DETERMINISTIC}:
            columns = tuple(c.name for c in sources[name].columns)
            own = [c.name.lower() for c in verdict.columns] == [name.lower() for name in columns]
            volatile[name] = View(text, () if own else columns)
    return volatile


def _analyze(
    query: Query,
    invocation: Invocation,
    config: ModelConfig,
    functions: Mapping[str, Mapping[str, Any]],
) -> tuple[Analysis, dict[str, SourceFacts]]:
    """The verdict with the columns of all sources known and views looked through. Views may stand on views."""
    sources: dict[str, SourceFacts] = {}
    while True:
        analysis = analyze(
            invocation.sql,
            unique_key=config.unique_key,
            schemas={name: {c.name: c.type for c in source.columns} for name, source in sources.items()} or None,
            functions=functions,
            freeze=config.freeze,
            views={name: source.view_text for name, source in sources.items() if source.view_text},
            model=invocation.name,
        )
        new = source_facts(query, [table.name for table in analysis.tables], sources)
        if not new:
            return analysis, sources
        sources.update(new)


def _amendments(prepared: Prepared) -> Amendments:
    target, properties = prepared.facts.target, dict(prepared.invocation.config.get("tblproperties") or {})
    unusual = any(re.search(r"[ ,;{}()\n\t=]", column.name) for column in prepared.plan.columns)
    ours = target.ours and target.provider == "delta"
    return Amendments(
        table=prepared.invocation.target,
        written=target.written if ours else "",
        our_checks=target.our_checks if ours else "",
        comments=target.comments if ours else {},
        feed=str(properties.get(FEED, "true")).lower() == "true",
        mapped=str(properties.get(MAPPING, "name" if unusual else "none")).lower() != "none",
    )


def _in_the_way(target: TargetFacts) -> str | None:
    """What exists of this name that CREATE OR REPLACE TABLE … USING delta cannot replace: a view, a table, or nothing."""
    if not target.exists or (target.is_table and target.provider == "delta"):
        return None
    return "table" if target.is_table else "view"


def _leftovers(adapter: Any, invocation: Invocation) -> tuple[str, ...]:
    dead = stamps.leftovers(invocation.relation_names, invocation.identifier, own_catalogue(adapter.mv_spark()))
    return tuple(f"{invocation.schema}.`{name}`" for name in dead)
