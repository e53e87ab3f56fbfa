"""The plan of a model for the macro-only mode, by the same decision as a run's: what it decides in each situation in which a run
can be, with marks where a text names the run's instant or the versions of its sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance import macro_only
from spark_mv.maintenance.decide import begin, decide
from spark_mv.maintenance.errors import refused
from spark_mv.maintenance.facts import RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.format_version import FORMAT as RECORD_FORMAT
from spark_mv.maintenance.layout import layout_clause, layout_part
from spark_mv.maintenance.macro_only import MARK, NeedsAdapter
from spark_mv.maintenance.plan import Plan, Step
from spark_mv.maintenance.record import SourceVersion, known_fields
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.steps.kinds import KINDS
from spark_mv.query.analysis.column_subqueries import subquery_in_columns, subquery_in_union, subquery_over_limit
from spark_mv.query.functions.level import Level
from spark_mv.query.solver.zone import zone_of
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.history import KEEPS_ROWS, MAKES_ALL_ROWS, OURS
from spark_mv.spark.formats.views import told_of_view
from spark_mv.spark.run.amendments import MAPPING, Amendments, by_delta_names, has_unusual
from spark_mv.spark.run.as_of import utc_text
from spark_mv.spark.run.evaluated import evaluate
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import RESULT_PREFIXES, RESULT_SETTINGS, decides_results, session_facts
from spark_mv.spark.run.macro_ai import native_settings, result_table_of, round_args
from spark_mv.spark.run.macro_incremental import incremental, marks_of, rules
from spark_mv.spark.run.prepare import config_of, stored_columns
from spark_mv.spark.run.read_model import read_model
from spark_mv.spark.run.step_args import step_args
from spark_mv.spark.session.current_values import TIME_ZONE

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.spark.run.ai import AiRunner

SETTLED = ("query", "config", "kept", "columns", "keys", "source_columns", "clock_solved", "strategy", "pins")
"""What a record says that does not depend on the run, but for the places in it."""
STAMP = f"{MARK}stamp__"


@dataclass(frozen=True)
class _Model:
    """All of a model that is known before a run."""

    adapter: Any
    invocation: Invocation
    profile: Mapping[str, Any]
    config: Any
    session: Any
    read: Any


def macro_plan(
    adapter: Any, invocation: Invocation, profile: Mapping[str, Any], language: str = "sql"
) -> dict[str, Any]:
    """The plan as data for JSON: of this model, in this target. `needs_adapter` says why there is none. Raises ConfigError and
    RefusedError for what is wrong with the model."""
    try:
        return _planned(adapter, invocation, profile, language)
    except NeedsAdapter as reason:
        return {"needs_adapter": str(reason)}


def _planned(adapter: Any, invocation: Invocation, profile: Mapping[str, Any], language: str) -> dict[str, Any]:
    if language != "sql":
        raise NeedsAdapter(f"it is written in {language}")
    query = Ask(adapter.query, adapter.mv_spark())
    config = config_of(adapter, invocation, profile)
    macro_only.check_config(config, invocation.config)
    there = session_facts(query, invocation.sql)
    marked = {name: macro_only.session_mark(name) for name in macro_only.SESSION}
    session = replace(
        there, user=marked["user"], catalog=marked["catalog"], schema=marked["schema"], version=marked["spark"]
    )
    read = read_model(query, invocation, config, profile, there)
    if read.analysis.errors:
        raise refused(read.analysis.errors)
    macro_only.check_query(invocation.sql, read.analysis, tuple(read.sources.values()), read.own_functions)
    if subquery_in_union(read.whole_sql):
        raise NeedsAdapter(
            "it has a UNION and a subquery among its columns, which Spark plans only with a setting of the session"
        )
    if subquery_over_limit(read.whole_sql):
        raise NeedsAdapter(
            "it has a LIMIT and a subquery among its columns, of which Spark takes the first rows of any order but for a setting of the session"
        )
    if Level.AI in read.analysis.levels:
        native_settings(profile, config.ai)
    model = _Model(adapter, invocation, profile, config, session, read)
    first, second = (_at(model, query, instant, k) for k, instant in enumerate(macro_only.INSTANTS))
    if first["incremental"] != second["incremental"] or subquery_in_columns(read.whole_sql):
        first["incremental"] = second["incremental"] = {}  # every run recomputes: changed rows would stand in a UNION
    if first != second:
        raise NeedsAdapter("a value of the clock stands in it in a form that macros cannot fill in")
    return {
        "sql": invocation.text.strip(),
        "time_zone": session.time_zone,
        "session": {marked[name]: sql for name, sql in macro_only.SESSION.items()},
        "words": sorted(macro_only.CHECKED),
        "config": {w: invocation.config[w] for w in sorted(macro_only.CHECKED) if invocation.config.get(w) is not None},
        "refresh": config.refresh,
        "places": macro_only.places_in(first),
        "settings": {"names": sorted(RESULT_SETTINGS), "prefixes": list(RESULT_PREFIXES)},
        "history": {
            "keeps_rows": sorted(KEEPS_ROWS),
            "makes_all_rows": sorted(MAKES_ALL_ROWS),
            "ours": sorted(OURS),
            "fields": known_fields(),
        },
        "partition_by": _layout(config.partition_by),
        "cluster_by": _layout(config.cluster_by),
        **first,
    }


def _layout(texts: Iterable[str]) -> list[str]:
    """As DESCRIBE DETAIL has them, in lower case."""
    return [".".join(layout_part(text, "delta").path).lower() for text in texts]


def _at(model: _Model, query: Query, instant: datetime, attempt: int) -> dict[str, Any]:
    """What is decided at an instant that stands for that of a run, with marks in its place."""
    session, invocation = model.session, model.invocation
    as_of = instant.astimezone(zone_of(session.time_zone))
    tables = [name for name, source in model.read.sources.items() if source.version is not None]
    versions = {name: macro_only.VERSIONS[attempt] + k for k, name in enumerate(tables)}
    sources = {
        name: replace(source, version=SourceVersion(versions[name], ""), pinnable=True) if name in versions else source
        for name, source in model.read.sources.items()
    }
    read = replace(model.read, sources=sources)
    evaluated = evaluate(model.adapter, query, invocation, model.profile, model.config, read, session, as_of)
    rewritten = evaluated.rewritten
    session_pins = macro_only.session_pins(rewritten)
    if has_unusual(column.name for column in rewritten.columns):
        raise NeedsAdapter("the name of a column needs Delta's column mapping")
    facts = RunFacts(
        model=invocation.name,
        as_of=utc_text(as_of),
        time_zone=session.time_zone,
        invocation_id="",
        sources=tuple(sources.values()),
        target=TargetFacts(),
        pins=dict(rewritten.pins),
    )
    stored = stored_columns(invocation, model.config, rewritten.columns)
    situation = Situation(
        facts,
        replace(read.analysis, sql=read.whole_sql),
        model.config,
        replace(rewritten, columns=stored),
        evaluated.pins,
        ai=evaluated.runner.context if evaluated.runner is not None else None,
    )
    first = _decided(situation)
    assert first.record is not None
    before = {name: SourceVersion(0, "") for name in versions}
    target = TargetFacts(
        exists=True,
        columns=stored,
        version=1,
        record_version=1,
        provider="delta",
        ours=True,
        record=replace(first.record, sources=before),
        clean=(1,),
        intact=True,
        partition_by=model.config.partition_by,
        cluster_by=model.config.cluster_by,
    )
    again = replace(situation, facts=replace(facts, target=target))
    plans = {
        "first": first,
        "next": _decided(again),
        "full_refresh": _decided(replace(again, facts=replace(again.facts, full_refresh=True))),
    }
    record = asdict(first.record)
    found = {
        "situations": {name: _steps(model, plan.steps, evaluated.runner) for name, plan in plans.items()},
        "incremental": incremental(again, lambda steps: _steps(model, steps, evaluated.runner, followed=True), attempt),
        "follows": rules(),
        "answers": result_table_of(evaluated.runner) if evaluated.runner is not None else None,
        "record": {"spark_mv": RECORD_FORMAT, **{name: record[name] for name in SETTLED}},
        "query_sql": rewritten.sql,
        "clock_elsewhere": rewritten.clock_elsewhere,
        "session_pins": session_pins,
        "columns": [[column.name, column.type] for column in stored],
        "sources": [
            {
                "name": source.name,
                "table": quoted_name(source.name),
                "mark": f"{MARK}version_{tables.index(source.name)}__" if source.name in versions else None,
                "low_mark": f"{MARK}low_{tables.index(source.name)}__" if source.name in versions else None,
                "first_mark": f"{MARK}first_{tables.index(source.name)}__" if source.name in versions else None,
                "view": _view(query, source) if source.view_text is not None else None,
                "columns": [[column.name, column.type] for column in source.columns],
            }
            for source in sources.values()
        ],
    }
    names = {f"version_{k}": version for k, version in enumerate(versions.values())}
    marked: dict[str, Any] = macro_only.with_places(found, evaluated.pins, names, marks_of(attempt, tables))
    return marked


def _decided(situation: Situation) -> Plan:
    return macro_only.complete(decide(begin(situation)))


def _view(query: Query, source: SourceFacts) -> dict[str, Any]:
    """What DESCRIBE EXTENDED … AS JSON says of a view, as far as its meaning hangs on it."""
    told = told_of_view(query, quoted_name(source.name))
    if told is None:
        raise NeedsAdapter(f"it reads {source.name}, and this Spark does not tell with which settings a view was made")
    settings = {
        name: value
        for name, value in told["view_creation_spark_configuration"].items()
        if name == TIME_ZONE or decides_results(name)
    }
    return {
        "text": told["view_text"],
        "namespace": told["view_catalog_and_namespace"],
        "collation": told.get("collation", ""),
        "settings": settings,
    }


def _steps(
    model: _Model, steps: Sequence[Step], runner: AiRunner | None, followed: bool = False
) -> list[dict[str, Any]]:
    """The steps as the macros want them, see `MvRun._view`. `followed`: of an incremental strategy, for a table whose rows are
    counted by the record of the last run."""
    invocation = model.invocation
    wanted = by_delta_names(invocation.config.get("tblproperties") or {})
    if wanted.get(MAPPING, "none").lower() != "none":
        raise NeedsAdapter(f"{MAPPING} is set, which needs a second statement after the table is made")
    amend = Amendments(invocation.target, wanted=wanted, model=invocation.unique_id)
    relations = {"target": invocation.target, **_stages(model)}
    found = []
    for step in macro_only.taken(steps):
        if step.args.get("failing"):  # macros go on only where every answer is there
            step = replace(step, args={**step.args, "failing": None, "failing_columns": ()})
        if followed and "target_rows" in step.args:
            step = replace(step, args={**step.args, "target_rows": None})
        args = step_args(step, relations)
        kind = KINDS[step.kind]
        if step.kind == "ai_round":
            assert runner is not None
            args = round_args(args["calls"], runner)
        if step.kind == "stage_source_changes":
            args |= {"low": str(args["low"]), "high": str(args["high"])}  # places are texts
        if step.kind == "check_limit" and (limit := model.config.max_rows_changed) is not None:
            args = macro_only.limit_args(limit)
        if step.kind == "confirm_sources":
            args = {"sources": [{"name": name, "table": quoted_name(name)} for name in step.args["versions"]]}
        if kind.makes:
            names = [column.name for column in step.args["columns"]]
            layout = layout_clause(model.config, names)
            args |= {"properties": amend.properties(names, True), "using": "delta", "layout": layout}
        if step.kind == "check_stage":
            args |= {"checks": [], "bound": False}
        found.append({"kind": step.kind, "macro": kind.macro, "when": step.when and step.when.value, "args": args})
    return found


def _stages(model: _Model) -> dict[str, str]:
    """Staging tables, with a place for the run's stamp in their names."""
    invocation = model.invocation
    names = ["affected", *(f"changes_{k}" for k, _ in enumerate(model.read.sources))]
    stages = {name: invocation.beside(f"mv_stage_{STAMP}_{name}") for name in names}
    return {"stage": invocation.beside(f"mv_stage_{STAMP}"), **stages}
