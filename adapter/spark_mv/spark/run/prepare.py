"""Facts → verdict → plan for one run: the path from what the macro hands over to a run ready to execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from spark_mv.ai.settings import check_ai_words
from spark_mv.maintenance.audit import audit_due
from spark_mv.maintenance.choose import not_incremental
from spark_mv.maintenance.config import ModelConfig, layered, read_config
from spark_mv.maintenance.decide import begin, decide
from spark_mv.maintenance.errors import ConfigError, RefusedError
from spark_mv.maintenance.facts import Column, RunFacts, TargetFacts
from spark_mv.maintenance.ground import refuse, refuse_foreign, same_filter, state_lost
from spark_mv.maintenance.key_types import key_type_problems
from spark_mv.maintenance.layout import layout_clause, stays_clustered
from spark_mv.maintenance.nested_names import repeated_field_problems
from spark_mv.maintenance.notes import order_notes, shared_notes, unknown_notes
from spark_mv.maintenance.plan import Candidate
from spark_mv.maintenance.read_query import row_bounds
from spark_mv.maintenance.result_columns import remembered, result_print
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.state import Seed, draws_to_drop
from spark_mv.maintenance.steps.our_rows import our_rows
from spark_mv.maintenance.strategies.no_op import moved
from spark_mv.maintenance.supposed_runs import never_incremental
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask, Query, one_look
from spark_mv.spark.formats.delta_source import FEED_PROPERTY
from spark_mv.spark.formats.own_tables import own_format, with_files
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.formats.table_format import TableFormat
from spark_mv.spark.run import stamps
from spark_mv.spark.run.amendments import MAPPING, Amendments, by_delta_names, default_feed, has_unusual
from spark_mv.spark.run.as_of import ahead_of_clock, as_of_instant, utc_text
from spark_mv.spark.run.aside import put_back, relations_now
from spark_mv.spark.run.auditing import Auditor
from spark_mv.spark.run.config_words import declared_words
from spark_mv.spark.run.evaluated import Evaluated, evaluate
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.forgetting import still_possible
from spark_mv.spark.run.frozen_condition import check_condition
from spark_mv.spark.run.header import session_of
from spark_mv.spark.run.holding import held_feeds, holds, replaced_whole
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import SessionFacts, published_state, session_facts, target_facts, uncastable
from spark_mv.spark.run.own_name import check_name, refuse_namesake
from spark_mv.spark.run.planning import look_ahead, planned_for, settings_for
from spark_mv.spark.run.prepared import Prepared
from spark_mv.spark.run.read_model import ReadModel, read_model
from spark_mv.spark.run.session_pace import session_fixed
from spark_mv.spark.run.source_commits import read_changes
from spark_mv.spark.session.own_catalogue import own_catalogue

if TYPE_CHECKING:  # loaded by models with a random filter only
    from spark_mv.spark.run.draws import KeptDraws


def prepare(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> MvRun:
    """A run ready to execute. Raises ConfigError, RefusedError or ValueError before anything is touched."""
    started = datetime.now(timezone.utc)
    if not invocation.target_exists:
        invocation = put_back(adapter, invocation, invocation.relation_names)
    prepared = look(adapter, invocation, profile, ahead=True)
    if invocation.target_exists and not prepared.facts.target.exists:  # it was when dbt looked
        back = put_back(adapter, invocation, relations_now(adapter.query, invocation))
        prepared = prepared if back is invocation else look(adapter, back, profile, ahead=True)
    if prepared.plan.steps:
        for note in order_notes(prepared.analysis):
            adapter.say(f"model {invocation.name}: {note}")
        for note in (
            *shared_notes(prepared.analysis, prepared.config.unique_key),
            *unknown_notes(prepared.analysis, prepared.functions),
        ):
            adapter.warn(f"model {invocation.name}: {note}")
    if ahead := ahead_of_clock(invocation.as_of, prepared.as_of, invocation.started_at):
        adapter.warn(f"model {invocation.name}: {ahead}")
    stamp = stamps.new_stamp()
    relations, in_files = _relations(invocation, prepared, stamp)
    return MvRun(
        session=adapter,
        plan=prepared.plan,
        relations=relations,
        in_files=in_files,
        held=prepared.facts.held,
        feeds=prepared.feeds,
        with_files=with_files(Ask(adapter.query, adapter.mv_spark()), target_format(prepared.config)),
        shows_keys=not prepared.config.sensitive_key,
        query_sql=prepared.rewritten.sql,
        app_id=f"spark_mv:{invocation.unique_id}",
        as_of=prepared.facts.as_of,
        schema=invocation.schema,
        model_id=invocation.unique_id,
        invocation_id=invocation.invocation_id,
        started_at=started,
        format=target_format(prepared.config),
        state_format=_state_format(adapter, prepared, profile),
        state_found=prepared.situation.state.newest if prepared.situation.state is not None else None,
        providers={source.name: source.provider for source in prepared.facts.sources},
        retains=prepared.config.retain_sources,
        amend=_amendments(prepared),
        stamp=stamp,
        settings=settings_for(Ask(adapter.query, adapter.mv_spark()), prepared.rewritten.sql),
        leftovers=_leftovers(adapter, invocation),
        follows=prepared.facts.target.record,
        columns_seen=prepared.facts.target.columns,
        in_the_way=_in_the_way(prepared.facts.target, prepared.config),
        ai_round=prepared.runner.run if prepared.runner else None,
        on_ai_error=prepared.runner.settings.on_ai_error if prepared.runner else "null",
        next_change_at=prepared.plan.record.next_change_at if prepared.plan.record else None,
        looking=prepared.looking,
        auditor=_auditor(adapter, prepared),
    )


def _auditor(adapter: Any, prepared: Prepared) -> Auditor | None:
    asked = audit_due(prepared.config.audit, prepared.facts)
    return Auditor(adapter, prepared, asked) if asked or prepared.plan.second_reading else None


@contextmanager
def looked(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> Iterator[Prepared]:
    """A model looked at outside of a run, in the session that its header makes and with the settings that its query needs."""
    with session_of(adapter, invocation):
        seen = look(adapter, invocation, profile)
        with planned_for(adapter, seen.rewritten.sql):
            yield seen


@one_look()
def look(adapter: Any, invocation: Invocation, profile: Mapping[str, Any], ahead: bool = False) -> Prepared:
    """Facts, verdict and plan, read-only (an empty AI result table apart, which the query needs to be understood). `ahead`:
    a run will follow, and what it is sure to need is looked for meanwhile."""
    query = Ask(adapter.query, adapter.mv_spark())
    config = config_of(adapter, invocation, profile)
    session = session_facts(query, invocation.sql)
    as_of = as_of_instant(invocation.as_of, invocation.started_at, session.time_zone, invocation.allow_future_as_of)
    model = read_model(query, invocation, config, profile, session)
    facts = replace(_facts(query, invocation, model, session, as_of), fixed_seconds=session_fixed(adapter))
    _same_format(facts, config)  # ahead of what says that --full-refresh replaces a table, which it does not here
    refuse(facts, model.analysis)
    facts = replace(facts, result_print=result_print(facts, invocation.sql, model.analysis))
    looking = look_ahead(adapter.mv_spark(), invocation.target) if ahead and moved(facts) else None
    evaluated = evaluate(
        adapter, query, invocation, profile, config, model, session, as_of, remembered(facts), facts.target.record
    )
    situation, runner = _situation(query, invocation, config, model, facts, evaluated), evaluated.runner
    opening = begin(situation)
    _refuse_never_incremental(situation)
    if evaluated.draws and not opening.no_op.applies:
        situation = _with_draws_left(query, situation, evaluated.draws)
        opening = opening.seeded(situation.seed)
    if not opening.no_op.applies and holds(query, facts, invocation.target):
        whole = replaced_whole(situation.facts, invocation.config, invocation.followed, target_format(config))
        opening, situation = opening.holding(whole), situation.holding(whole)
    changes = read_changes(query, situation.facts, invocation.target) if opening.asks_for_changes else None
    try:
        plan = decide(opening, changes)
    except RefusedError as error:
        if error.code == "NOT_INCREMENTAL" and (refusals := never_incremental(situation)):
            raise _never(facts.model, refusals) from None  # nor would it be after a --full-refresh
        raise
    feeds = held_feeds(query, situation.facts, changes.sources) if ahead and changes is not None else {}
    return Prepared(
        invocation, model.analysis, situation, plan, as_of, runner, evaluated.ai, looking, feeds, model.functions
    )


def _refuse_never_incremental(situation: Situation) -> None:
    """The first run of a model whose later runs would all be refused."""
    facts = situation.facts
    if situation.config.refresh != "incremental" or facts.target.exists or facts.full_refresh or facts.partial:
        return
    if refusals := never_incremental(situation):
        raise _never(facts.model, refusals)


def _never(model: str, refusals: Sequence[Candidate]) -> RefusedError:
    return RefusedError("NOT_INCREMENTAL", not_incremental(model, refusals, ever=False))


def look_at_target(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> None:
    """Raises what a run of the model would raise of its settings and of what is in the place of its table."""
    config_of(adapter, invocation, profile)
    if invocation.target_exists and not invocation.full_refresh:
        target = target_facts(
            Ask(adapter.query, adapter.mv_spark()), invocation.target, True, invocation.unique_id, invocation.others
        )
        refuse_foreign(invocation.name, target, False)


def target_format(config: ModelConfig) -> TableFormat:
    """The format of the model's table."""
    found = format_of(config.file_format)
    assert found is not None, config.file_format  # read_config knows the formats
    return found


def config_of(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> ModelConfig:
    """The model's settings, of a table that this session can write."""
    check_name(adapter, invocation)
    said = layered(profile.get("safety", {}), invocation.config, invocation.variables)
    config = read_config(invocation.name, said, declared_words())
    check_ai_words(profile.get("ai"), config.ai)
    table_format = target_format(config)
    if problem := table_format.unusable(Ask(adapter.query, adapter.mv_spark())):
        raise RefusedError("FORMAT_UNUSABLE", f"model {invocation.name}: file_format: {config.file_format}: {problem}")
    if problems := table_format.refused(invocation.config):
        raise ConfigError(invocation.name, problems)
    return config


def stored_columns(
    invocation: Invocation, config: ModelConfig, columns: Sequence[Column], spark: Any = None
) -> tuple[Column, ...]:
    """The columns as the model's table has them. Raises ConfigError for those that it cannot have in this session (None: one out of reach)."""
    table_format = target_format(config)
    problems = [*key_type_problems(config.unique_key, columns), *repeated_field_problems(columns)]
    if problems := problems + table_format.not_stored(columns, invocation.config.get("tblproperties") or {}, spark):
        raise ConfigError(invocation.name, problems)
    return tuple(table_format.stored(column) for column in columns)


def _state_format(adapter: Any, prepared: Prepared, profile: Mapping[str, Any]) -> TableFormat:
    """The format of the state table: its own where there is one, else that of the adapter's own tables, where this session can write it."""
    state, own = prepared.situation.state, target_format(prepared.config)
    if state is None or state.exists:
        return (format_of(state.provider) if state is not None else None) or own
    wanted = (profile.get("safety") or {}).get("file_format")
    ask = Ask(adapter.query, adapter.mv_spark())
    found = own_format(ask, wanted)
    return own if found.unusable(ask) else found


def _same_format(facts: RunFacts, config: ModelConfig) -> None:
    """The table's format is changed where the user asks for a rebuild, with all values that it keeps."""
    target = facts.target
    there = format_of(target.provider)
    if target.exists and target.provider != config.file_format and there is not None and there.stays:
        raise RefusedError("FORMAT_STAYS", f"model {facts.model}: {there.stays}")
    if target.ours and target.provider != config.file_format and not facts.full_refresh:
        raise RefusedError(
            "OTHER_FORMAT",
            f"model {facts.model}: its table is in format {target.provider}, and file_format says {config.file_format}. Run once with "
            "--full-refresh, which makes it anew with its kept values, or set file_format back",
        )


def _facts(query: Query, invocation: Invocation, model: ReadModel, session: SessionFacts, as_of: datetime) -> RunFacts:
    return RunFacts(
        model=invocation.name,
        as_of=utc_text(as_of),
        time_zone=session.time_zone,
        settings=session.settings,
        functions=model.own_functions,
        invocation_id=invocation.invocation_id,
        sources=tuple(model.sources.values()),
        target=target_facts(
            query, invocation.target, invocation.target_exists, invocation.unique_id, invocation.others
        ),
        full_refresh=invocation.full_refresh,
        started_at=utc_text(datetime.now(timezone.utc)),
        partial=invocation.partial,
    )


def _situation(
    query: Query,
    invocation: Invocation,
    config: ModelConfig,
    model: ReadModel,
    facts: RunFacts,
    evaluated: Evaluated,
) -> Situation:
    """All that the decision needs: also the requests to forget that can still be honoured, and what the table tells of a
    state that is lost."""
    rewritten, state, draws = evaluated.rewritten, evaluated.state, evaluated.draws
    check_condition(query, invocation.name, config.freeze_where, rewritten.columns)
    remembers = config.on_source_delete == "keep" and rewritten.clock
    if draws or remembers:
        state = published_state(query, invocation.state_table, state, facts.target)
    tables = (invocation.target, invocation.state_table) if remembers and state.exists else (invocation.target,)
    target, dropped = still_possible(query, facts.target, tables)
    there = (*target.columns, *(state.columns if remembers else ())) if target.ours else ()
    target = replace(target, uncastable=uncastable(query, there, rewritten.columns))
    rewritten = replace(
        rewritten,
        columns=stored_columns(invocation, config, rewritten.columns, getattr(query, "spark", None)),
        draw_columns=tuple(target_format(config).stored(column) for column in rewritten.draw_columns),
        filter_texts=draws.texts(model.whole_sql) if draws else None,
    )
    situation = Situation(
        facts=replace(facts, target=target, pins=dict(rewritten.pins)),
        analysis=replace(model.analysis, sql=model.whole_sql),
        config=config,
        rewritten=rewritten,
        pins=evaluated.pins,
        state=state if remembers or draws else None,
        ai=evaluated.runner.context if evaluated.runner else None,
        notes=dropped,
    )
    if not (draws or remembers):
        return situation
    refuse_namesake(invocation, "state", f"{invocation.identifier}__state")
    if not state_lost(situation):
        return situation
    if draws is None:
        return replace(situation, seed=Seed(bounds=row_bounds(situation)))
    return replace(situation, seed=draws.seed(query, target, invocation.target, same_filter(situation)))


def _with_draws_left(query: Query, situation: Situation, draws: KeptDraws) -> Situation:
    """Where the last run died before it dropped draws, what tells those that stay: another query has other candidates, and a source that keeps no
    versions cannot be asked again. For a run that has something to do: the sources are scanned."""
    record, state = situation.facts.target.record, situation.state
    if (
        record is None
        or state is None
        or state_lost(situation)
        or record.query != situation.analysis.fingerprint
        or not draws_to_drop(state, record)
    ):
        return situation
    return replace(situation, seed=Seed(left_sql=draws.left_by(query, record, situation.facts.sources)))


def _relations(invocation: Invocation, prepared: Prepared, stamp: str) -> tuple[dict[str, str], dict[str, str]]:
    """The rendered name of each relation that steps name, and those of relations that only the chosen plan keeps in memory: a few changed rows of
    large tables. Rows that are held belong to the session and to no schema."""
    target = prepared.facts.target
    keys = (
        target.record.keys if target.record else ()
    ) or prepared.config.unique_key  # those that the table's rows have
    keys = tuple(key for key in keys if target.has(key)) or tuple(c.name for c in target.columns)
    aside = invocation.beside(f"mv_stage_{stamp}_{stamps.ASIDE}")
    stages = {
        "stage": f"mv_stage_{stamp}",
        "state_stage": f"mv_stage_s_{stamp}",
        "trials": f"mv_stage_{stamp}_trials",
        "affected": f"mv_stage_{stamp}_affected",
        **{f"changes_{k}": f"mv_stage_{stamp}_changes_{k}" for k in range(len(prepared.facts.sources))},
    }
    few = {"stage", "affected"} if prepared.plan.few and prepared.feeds and not prepared.facts.held else set()
    held = stages if prepared.facts.held else {*prepared.feeds, *few}
    names = {name: (invocation.in_session if name in held else invocation.beside)(end) for name, end in stages.items()}
    tables = {"target": invocation.target, "state": invocation.state_table, "aside": aside}
    found = {**tables, **our_rows(target, invocation.target, keys), **names}
    return found, {name: invocation.beside(stages[name]) for name in few}


def _amendments(prepared: Prepared) -> Amendments:
    target, properties = prepared.facts.target, by_delta_names(prepared.invocation.config.get("tblproperties") or {})
    names = [column.name for column in prepared.plan.columns]
    ours = target.ours and target.provider == prepared.config.file_format
    return Amendments(
        table=prepared.invocation.target,
        written=target.written if ours else "",
        our_checks=target.our_checks if ours else "",
        comments=target.comments if ours else {},
        comment=target.comment if ours else "",
        feed=properties.get(FEED_PROPERTY, default_feed(names)).lower() == "true",
        mapped=properties.get(MAPPING, "name" if has_unusual(names) else "none").lower() != "none",
        wanted=properties,
        layout=layout_clause(prepared.config, names),
        model=prepared.invocation.unique_id,
        of_format=target_format(prepared.config).properties(),
        bounds=not prepared.config.sensitive_key,
    )


def _in_the_way(target: TargetFacts, config: ModelConfig) -> str | None:
    """What exists of this name that CREATE OR REPLACE TABLE cannot replace by the model's table: a view, a table, or nothing."""
    replaced = target.is_table and target.provider == config.file_format and not stays_clustered(config, target)
    if not target.exists or replaced:
        return None
    return "table" if target.is_table else "view"


def _leftovers(adapter: Any, invocation: Invocation) -> tuple[str, ...]:
    if not any(stamps.STAGE in name.lower() for name in invocation.relation_names):
        return ()
    dead = stamps.leftovers(invocation.relation_names, invocation.identifier, own_catalogue(adapter.mv_spark()))
    return tuple(f"{invocation.schema}.{quoted(name)}" for name in dead)
