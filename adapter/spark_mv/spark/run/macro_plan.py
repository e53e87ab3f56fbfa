"""The plan of a model for the macro-only mode, by the same decision as a run's: what it decides in each situation in which a run
can be, with marks where a text names the run's instant or the versions of its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from spark_mv.maintenance import macro_only
from spark_mv.maintenance.decide import begin, decide
from spark_mv.maintenance.errors import refused
from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.format_version import FORMAT as RECORD_FORMAT
from spark_mv.maintenance.macro_only import MARK, NeedsAdapter
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.steps.kinds import KINDS
from spark_mv.query.solver.zone import zone_of
from spark_mv.query.syntax.table_name import joined, quoted_name
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.history import KEEPS_ROWS, MAKES_ALL_ROWS, OURS
from spark_mv.spark.run.amendments import MAPPING, Amendments, by_delta_names, has_unusual, layout_clause
from spark_mv.spark.run.as_of import utc_text
from spark_mv.spark.run.evaluated import evaluate
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import RESULT_PREFIXES, RESULT_SETTINGS, session_facts
from spark_mv.spark.run.prepare import config_of, stored_columns
from spark_mv.spark.run.read_model import read_model
from spark_mv.spark.run.step_args import step_args

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
    session = session_facts(query, invocation.sql)
    read = read_model(query, invocation, config, profile)
    if read.analysis.errors:
        raise refused(read.analysis.errors)
    macro_only.check_query(invocation.sql, read.analysis, tuple(read.sources.values()), read.own_functions)
    model = _Model(adapter, invocation, profile, config, session, read)
    first, second = (_at(model, query, instant, k) for k, instant in enumerate(macro_only.INSTANTS))
    if first != second:
        raise NeedsAdapter("a value of the clock stands in it in a form that macros cannot fill in")
    return {
        "sql": invocation.sql.strip(),
        "time_zone": session.time_zone,
        "words": sorted(macro_only.CHECKED),
        "config": {w: invocation.config[w] for w in sorted(macro_only.CHECKED) if invocation.config.get(w) is not None},
        "refresh": config.refresh,
        "places": macro_only.places_in(first),
        "settings": {"names": sorted(RESULT_SETTINGS), "prefixes": list(RESULT_PREFIXES)},
        "history": {"keeps_rows": sorted(KEEPS_ROWS), "makes_all_rows": sorted(MAKES_ALL_ROWS), "ours": sorted(OURS)},
        "partition_by": [name.strip("`").lower() for name in config.partition_by],
        "cluster_by": [name.strip("`").lower() for name in config.cluster_by],
        **first,
    }


def _at(model: _Model, query: Ask, instant: datetime, attempt: int) -> dict[str, Any]:
    """What is decided at an instant that stands for that of a run, with marks in its place."""
    session, invocation = model.session, model.invocation
    as_of = instant.astimezone(zone_of(session.time_zone))
    versions = {name: macro_only.VERSIONS[attempt] + k for k, name in enumerate(model.read.sources)}
    sources = {
        name: replace(source, version=SourceVersion(versions[name], ""), pinnable=True)
        for name, source in model.read.sources.items()
    }
    read = replace(model.read, sources=sources)
    evaluated = evaluate(model.adapter, query, invocation, model.profile, model.config, read, session, as_of)
    rewritten = evaluated.rewritten
    macro_only.check_rewritten(rewritten)
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
        cluster_by=tuple(joined([name.strip("`")]) for name in model.config.cluster_by),
    )
    again = replace(situation, facts=replace(facts, target=target))
    plans = {
        "first": first,
        "next": _decided(again),
        "full_refresh": _decided(replace(again, facts=replace(again.facts, full_refresh=True))),
    }
    record = asdict(first.record)
    found = {
        "situations": {name: _steps(model, plan) for name, plan in plans.items()},
        "record": {"spark_mv": RECORD_FORMAT, **{name: record[name] for name in SETTLED}},
        "query_sql": rewritten.sql,
        "clock_elsewhere": rewritten.clock_elsewhere,
        "columns": [[column.name, column.type] for column in stored],
        "sources": [
            {
                "name": source.name,
                "table": quoted_name(source.name),
                "mark": f"{MARK}version_{k}__",
                "columns": [[column.name, column.type] for column in source.columns],
            }
            for k, source in enumerate(sources.values())
        ],
    }
    names = {f"version_{k}": version for k, version in enumerate(versions.values())}
    marked: dict[str, Any] = macro_only.with_places(found, evaluated.pins, names)
    return marked


def _decided(situation: Situation) -> Plan:
    return macro_only.complete(decide(begin(situation)))


def _steps(model: _Model, plan: Plan) -> list[dict[str, Any]]:
    """The steps as the macros want them, see `MvRun._view`."""
    invocation = model.invocation
    wanted = by_delta_names(invocation.config.get("tblproperties") or {})
    if wanted.get(MAPPING, "none").lower() != "none":
        raise NeedsAdapter(f"{MAPPING} is set, which needs a second statement after the table is made")
    amend = Amendments(invocation.target, wanted=wanted, layout=layout_clause(model.config), model=invocation.unique_id)
    relations = {"target": invocation.target, "stage": invocation.beside(f"mv_stage_{STAMP}")}
    found = []
    for step in macro_only.taken(plan.steps):
        args = step_args(step, relations)
        kind = KINDS[step.kind]
        if kind.makes:
            names = [column.name for column in step.args["columns"]]
            args |= {"properties": amend.properties(names, True), "using": "delta", "layout": amend.layout}
        if step.kind == "check_stage":
            args |= {"checks": [], "bound": False}
        found.append({"kind": step.kind, "macro": kind.macro, "when": step.when and step.when.value, "args": args})
    return found
