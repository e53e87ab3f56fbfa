"""Plans without Spark: cases of fixture files as situations, and plans as text that people can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime, timezone
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.changes import Changes, SourceChange
from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.decide import begin, decide
from spark_mv.maintenance.decide_audit import decide_audit
from spark_mv.maintenance.facts import Column, RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.forget import ForgetRequest
from spark_mv.maintenance.ground import ground
from spark_mv.maintenance.next_record import next_record
from spark_mv.maintenance.plan import Candidate, Plan, Reason, Step
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.rewrite import rewrite
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.state import Seed, StateFacts, StateRecord, stamp
from spark_mv.maintenance.steps.rewrite_rows import FEW_KEYS
from spark_mv.maintenance.steps.versions import rounds_at_versions
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import Pins
from spark_mv.spark.run.draws import kept_draws
from spark_mv.spark.run.look_up import SessionFacts
from spark_mv.spark.run.pins import run_pins
from spark_mv.spark.run.read_model import ReadModel

FOLDER = Path(__file__).parent / "plans"
SESSION = SessionFacts("UTC", "me", "spark_catalog", "default", "4.1.0")
AI = AiContext("s.ai_results", {"model": "test"}, None)
STATE_TABLE = "s.m__state"
TABLES = {
    "t": {"id": "bigint", "k": "int", "x": "int", "ts": "timestamp", "name": "string"},
    "u": {"id": "bigint", "k": "int", "y": "double"},
}
NOON = "2026-02-01 12:00:00"


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a file `plans/<name>.yml`. Everything but `sql` has a default:

    `unique_key` (id), `config`; `columns` of the result, name and type; `as_of` and `last` (the instant of the last run, none:
    there was no run); `changed`: source → what became of it (`inserts`: only inserts, `rows`, `table_rows`, `how`);
    `sources`, `record`, `target`, `facts`: fields that differ from those of a table that the last run left; `problems`:
    reasons why what changed is not known; `rows` of each table (`source_rows`: of each source by name); `tables`: columns of
    other tables than TABLES; `state`, `seed`; `ai`, `audit`: yes or no.
    """
    return list(yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8")))


def plan_of(case: Mapping[str, Any]) -> Plan:
    """The plan, decided as a run decides it."""
    situation = _situation(case)
    if case.get("audit"):
        return decide_audit(situation)
    opening = begin(situation)
    return decide(opening, _changes(case, situation) if opening.asks_for_changes else None)


def _situation(case: Mapping[str, Any]) -> Situation:
    settings = {"choose_by": "rows", **case.get("config", {}), "unique_key": case.get("unique_key", ["id"])}
    config = read_config("m", settings)
    schemas = dict(_tables(case))
    declared = {name: {"determinism": level} for name, level in case.get("functions", {}).items()}
    views = {n: s["view_text"] for n, s in case.get("sources", {}).items() if s.get("view_text")}
    analysis = analyze(
        case["sql"],
        unique_key=config.unique_key,
        schemas=schemas,
        freeze=config.freeze,
        functions=declared,
        views=views,
        model="m",
    )
    now = case.get("as_of", NOON)
    ai = AI if case.get("ai") else None
    result, pins = _rewritten(case, analysis, config.unique_key, now, ai)
    facts = _facts(case, analysis, now, result)
    result = replace(result, ai_rounds=rounds_at_versions(result.ai_rounds, facts.sources))
    model = ReadModel("m", case["sql"], analysis, {s.name: s for s in facts.sources}, {}, {})
    before = Situation(facts, replace(analysis, sql=model.whole_sql), config, result, pins, ai=ai)
    target = _target(case, before)
    state, seed = None, Seed(**case.get("seed", {}))
    if result.draw_sql or (config.on_source_delete == "keep" and result.clock):
        state = _state(case, target, result)
    facts = replace(facts, target=target, **case.get("facts", {}))
    return replace(before, facts=facts, state=state, seed=seed, notes=tuple(case.get("notes", ())))


def _tables(case: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    return case.get("tables", TABLES)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def _columns(case: Mapping[str, Any]) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in case["columns"].items())


def _rewritten(
    case: Mapping[str, Any], analysis: Analysis, key: Sequence[str], as_of: str, ai: AiContext | None
) -> tuple[Rewritten, Pins]:
    schemas, draws, sql = dict(_tables(case)), None, case["sql"]
    pins = run_pins(_instant(as_of), SESSION, schemas)
    if analysis.rows_level is Level.NONDETERMINISTIC:
        columns = [{"col_name": name, "data_type": type_} for name, type_ in case["draw_columns"].items()]

        def read(text: str) -> Analysis:
            return analyze(text, schemas=schemas, model="m", rewritten=True)

        draws = kept_draws(lambda _: columns, "m", sql, read, key, {}, STATE_TABLE, pins)
        sql = draws.filtered_sql
    candidates = draws.candidates if draws else None
    result = rewrite(sql, analysis, pins, schemas, lambda _: _columns(case), ai, candidates)
    assert not result.errors, result.errors
    found = result.rewritten
    if draws is not None:
        found = replace(
            found,
            draw_sql=draws.draw_sql,
            draw_columns=draws.columns,
            draw_fingerprints=draws.fingerprints,
            filter_print="filter",
            filter_texts=draws.texts(case["sql"]),
        )
    return found, pins


def _facts(case: Mapping[str, Any], analysis: Analysis, as_of: str, rewritten: Rewritten) -> RunFacts:
    sources = []
    for name in dict.fromkeys([*case.get("sources", {}), *(table.name for table in analysis.tables)]):
        more = dict(case.get("sources", {}).get(name, {}))
        version: SourceVersion | None = (
            SourceVersion(2, "now") if name in case.get("changed", {}) else SourceVersion(1, "then")
        )
        if "version" in more:
            number = more.pop("version")
            version = None if number is None else SourceVersion(number, "now")
        columns = tuple(Column(c, t) for c, t in more.pop("columns", _tables(case).get(name, {})).items())
        provider = more.pop("provider", "delta")
        sources.append(SourceFacts(name, columns, provider, version, **{"change_feed": True, **more}))
    return RunFacts("m", as_of, "UTC", "i", tuple(sources), TargetFacts(), pins=dict(rewritten.pins))


def _target(case: Mapping[str, Any], now: Situation) -> TargetFacts:
    """The table as the last run left it, but for what the case says."""
    given = dict(case.get("target", {}))
    if "columns" in given:
        given["columns"] = tuple(Column(c, t) for c, t in given["columns"].items())
    if "forget" in given:
        given["forget"] = tuple(ForgetRequest(r["id"], tuple(r["columns"]), r.get("where")) for r in given["forget"])
    for name in ("partition_by", "cluster_by", "clean"):
        given[name] = tuple(given.get(name, ()))
    last = case.get("last", NOON)
    if last is None:
        return TargetFacts(**given)
    result, pins = _rewritten(case, now.analysis, now.config.unique_key, last, now.ai)
    sources = tuple(replace(s, version=s.version and SourceVersion(1, "then")) for s in now.facts.sources)
    facts = replace(now.facts, as_of=last, sources=sources, pins=dict(result.pins))
    record = next_record(
        replace(now, facts=facts, rewritten=result, pins=pins),
        ground(replace(now, facts=facts, rewritten=result)).columns,
    )
    changes = dict(case.get("record") or {})
    if "sources" in changes:
        changes["sources"] = {n: SourceVersion(v, "then") for n, v in changes["sources"].items()}
    record = replace(record, target_rows=case.get("rows", 10), base_version=0, **changes)
    known = TargetFacts(
        exists=True, provider="delta", ours=True, columns=_columns(case), version=1, record_version=1, intact=True
    )
    return replace(known, record=None if case.get("record", {}) is None else record, **given)


def _state(case: Mapping[str, Any], target: TargetFacts, rewritten: Rewritten) -> StateFacts:
    given = case.get("state")
    if given is None:
        return StateFacts()
    kept = dict(rewritten.draw_fingerprints)
    made_for = given.pop("made_for", stamp(target))
    record = StateRecord("state1", made_for=made_for, kept=kept, keys=("id",), base_version=3)
    columns = tuple(Column(c, t) for c, t in (given.pop("columns", None) or case.get("draw_columns", {})).items())
    return StateFacts(exists=True, columns=columns, version=4, record_version=4, record=record, **given)


def _changes(case: Mapping[str, Any], situation: Situation) -> Changes:
    rows = case.get("rows", 10)
    names = [source.name for source in situation.facts.sources]
    moved = []
    for name, how in case.get("changed", {}).items():
        what = {"rows": 3, "table_rows": rows, **(how or {})}
        moved.append(SourceChange(name, 1, 2, append_only=what.pop("inserts", False), **what))
    problems = tuple(Reason(code, sentence) for code, sentence in case.get("problems", {}).items())
    return Changes(tuple(moved), problems, case.get("source_rows") or dict.fromkeys(names, rows), rows)


# --- as text

_BOUNDS = {"next_change", "query"}


class _Text(yaml.SafeDumper):
    """Texts of several lines as blocks, short lists in one line."""


def _string(dumper: yaml.SafeDumper, text: str) -> Any:
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Text.add_representer(str, _string)


def text_of(plans: Mapping[str, Any]) -> str:
    """Snapshots of plans, by the names of their cases."""
    return yaml.dump(dict(plans), Dumper=_Text, sort_keys=False, width=130, allow_unicode=True, default_flow_style=None)


def readable(plan: Plan) -> dict[str, Any]:
    """A plan as plain data, without what is not set."""
    found: dict[str, Any] = {"strategy": plan.strategy, "why": _why(plan.candidates)}
    if plan.few:
        found["few"] = True
    if plan.notes:
        found["notes"] = list(plan.notes)
    if plan.steps:
        found["columns"] = _plain(plan.columns)
        found["steps"] = [_step(step, plan) for step in plan.steps]
    if plan.state is not None:
        found["state"] = {k: v for k, v in _plain(asdict(plan.state)).items() if k in ("keys", "made_for") and v}
    if plan.fallback is not None:
        same = plan.fallback.strategy == plan.strategy
        then = readable(plan.fallback)
        found["fallback"] = {"steps": then.get("steps", [])} if same else {"strategy": plan.fallback.strategy}
    return found


def _why(candidates: Sequence[Candidate]) -> list[str]:
    """One line for each strategy, or for several with the same reasons."""
    lines: dict[str, list[str]] = {}
    for candidate in candidates:
        mark = "applies" if candidate.applies else "no"
        cost = "" if candidate.cost is None else f", cost {candidate.cost:g}"
        reasons = "; ".join(f"{r.code} ({r.sentence})" for r in candidate.reasons)
        lines.setdefault(f"{mark}{cost}: {reasons}", []).append(candidate.strategy)
    return [f"{', '.join(names)} {rest}" for rest, names in lines.items()]


def _step(step: Step, plan: Plan) -> Any:
    """Without the arguments that are the same in most plans: which table, which staged rows, which columns and key."""
    name = step.kind if step.when is None else f"{step.kind} when {step.when.value}"
    usual = {
        "relation": "target",
        "stage": "stage",
        "columns": plan.columns,
        "keys": tuple(c.name for c in plan.columns if c.role is Role.KEY),
        "limit": FEW_KEYS + 1,
    }
    args = {k: v for k, v in step.args.items() if v not in (None, (), {}, []) and usual.get(k) != v}
    args = {k: v for k, v in args.items() if v is not False or k == "deletes"}
    if step.kind == "stage_source_changes":
        args["columns"] = [c["name"] if c["atomic"] else f"{c['name']} as JSON" for c in step.args["columns"]]
    for word in _BOUNDS & args.keys() if step.kind not in ("stage_changes", "stage_query") else ():
        args[word] = "(SQL)"  # of the next bound, and of what the clock takes: tests/query has these texts
    if "inline" in args:
        args["inline"] = _step(Step("stage_changes", args["inline"]), plan)
    plain = {k: _plain(v) for k, v in args.items()}
    return {name: plain} if plain else name


@cache
def _flags() -> list[str]:
    return [f.name for f in fields(StagedColumn) if f.name not in ("name", "type", "role")]


def _plain(value: Any) -> Any:
    if isinstance(value, StagedColumn):
        usual = StagedColumn("", "", value.role)
        odd = [(f, getattr(value, f)) for f in _flags() if getattr(value, f) != getattr(usual, f)]
        said = [name if v is True else f"not {name}" if v is False else f"{name} {v}" for name, v in odd]
        return " ".join([value.name, value.type, value.role.value, *said])
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "request_sql"):
        return {"function": value.function, "request": value.request_sql}
    return value
