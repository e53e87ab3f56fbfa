"""The engine's own plans, executed on DuckDB: what a run does between the facts that Spark tells and the commit.

Facts, verdict, rewrite, decision, strategies and steps are the engine's; so are the statements, which are the project's
macros. Only what talks to Spark and Delta is done here: tables at versions, the change feed, the commit.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
from duck_sql import MACROS, duck, spark_type
from grammar import all_rows
from histories import SCHEMAS, Op, Row, Tables, feed, instant

from spark_mv.maintenance import decide as deciding
from spark_mv.maintenance.changes import Changes, SourceChange
from spark_mv.maintenance.config import ModelConfig, read_config
from spark_mv.maintenance.errors import RunFailed, refused
from spark_mv.maintenance.facts import Column, RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.incremental_facts import Proposal
from spark_mv.maintenance.next_record import config_fingerprint
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.record import RunRecord, SourceVersion
from spark_mv.maintenance.rewrite import rewrite
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.situation import Situation as Known
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.spark.run.as_of import utc_text
from spark_mv.spark.run.execute import MvRun, StepView
from spark_mv.spark.run.look_up import SessionFacts
from spark_mv.spark.run.pins import run_pins
from spark_mv.spark.run.publish import PREDICATE

SESSION = SessionFacts("UTC", "me", "spark_catalog", "default", "4.1.0")
BEFORE, NOW = SourceVersion(1, "before"), SourceVersion(2, "now")
LATER = "2099-01-01 00:00:00.000000"
"""Stands in plans for a next bound that is not reached yet."""
LARGE = 600_000
"""Rows of a table for which a run also takes the ways that pay for large tables only."""


def _macros() -> Callable[[Any], str | None]:
    """The statement macros rendered by Jinja alone, as the integration tests have it."""
    path = Path(__file__).parents[2] / "integration_tests" / "incremental" / "macros.py"
    spec = importlib.util.spec_from_file_location("oracle_macros", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    statement: Callable[[Any], str | None] = module.statement
    return statement


statement = _macros()


class Database:
    """DuckDB in this process, as a run's session: `query` takes the statements of the engine."""

    def __init__(self) -> None:
        self.con = duckdb.connect(config={"threads": 1})
        self.con.execute(MACROS)
        self.con.execute("pragma disable_optimizer")  # over a few rows it costs more than it saves
        self.con.execute("set memory_limit='2GB'")
        for name, columns in SCHEMAS.items():
            listed = ", ".join(f"{c} {t}" for c, t in columns.items())
            names = ", ".join(columns)
            self.con.execute(f"create temp table {name}__all ({listed}, __step int)")
            self.con.execute(f"create temp table {name}__fed ({listed}, _change_type varchar, __step int)")
            for view, text in (
                (name, f"{name}__all where __step = getvariable('step')"),
                (f"{name}__v2", f"{name}__all where __step = getvariable('step')"),
                (f"{name}__v1", f"{name}__all where __step = getvariable('step') - 1"),
            ):
                self.con.execute(f"create temp view {view} as select {names} from {text}")
            fed = f"select {names}, _change_type from {name}__fed where __step = getvariable('step')"
            self.con.execute(f"create temp view {name}__feed as {fed}")
        self.statements: list[str] = []
        self.later = LATER
        self.warnings: list[str] = []

    # --- what MvRun asks of its session

    def query(self, sql: str) -> list[dict[str, Any]]:
        if sql.startswith("drop table"):
            return []
        self.statements.append(sql)
        cursor = self.con.execute(duck(sql).replace(LATER, self.later))
        if cursor.description is None:
            return []
        names = [d[0] for d in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def mv_spark(self) -> Any:
        return None

    # --- what the oracle asks

    def load(self, states: Sequence[Tables], steps: Sequence[Sequence[Op]] = ()) -> None:
        """The sources as they are after each step of a history, the first one being its beginning, and what each step of
        them did. All at once: a step is then a number."""
        texts = []
        for name in states[0]:
            texts.append(_filled(f"{name}__all", [(*row, k) for k, state in enumerate(states) for row in state[name]]))
            fed = [(*row, k) for k, ops in enumerate(steps) for row in feed(name, ops)]
            texts.append(_filled(f"{name}__fed", fed))
        self.con.execute("".join(texts))
        self.at(0)

    def at(self, step: int) -> None:
        self.con.execute(f"set variable step = {step}")

    def bag(self, sql: str) -> Counter[Row]:
        """The rows of a text in DuckDB's words."""
        return Counter(self.con.execute(sql).fetchall())

    def columns(self, sql: str) -> tuple[Column, ...]:
        rows = self.con.execute(f"describe {duck(sql)}").fetchall()
        return tuple(Column(row[0], spark_type(row[1])) for row in rows)

    def described(self, sql: str) -> list[dict[str, Any]]:
        """DESCRIBE QUERY, as Spark answers it."""
        found = self.columns(sql.removeprefix("describe query "))
        return [{"col_name": column.name, "data_type": column.type} for column in found]


def _filled(name: str, rows: Sequence[Row]) -> str:
    if not rows:
        return f"delete from {name};"
    listed = ", ".join(f"({', '.join(_cell(v) for v in row)})" for row in rows)
    return f"delete from {name}; insert into {name} values {listed};"


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else f"'{value}'"


@dataclass(frozen=True)
class Situation:
    """All that a plan depends on: which sources moved and how, the instants of the two runs, and whether the last one said
    that no bound is ahead (None), or one that is reached, or not yet (LATER). `large`: the tables are said to be large."""

    changed: tuple[tuple[str, bool, bool], ...]  # name, only inserts, compared (no feed)
    before: int
    hour: int
    next_change_at: str | None
    large: bool = False


@dataclass
class Model:
    """A model of a query; what is worked out of it is kept, because it serves many histories."""

    sql: str
    key: tuple[str, ...]
    database: Database
    config: Mapping[str, Any] = field(default_factory=dict)
    _rewritten: dict[int, Rewritten] = field(default_factory=dict)
    _plans: dict[Situation, list[Plan]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings: ModelConfig = read_config(
            "m", {"unique_key": list(self.key), "choose_by": "rows", **self.config}
        )
        self.analysis: Analysis = analyze(
            self.sql, unique_key=self.key, schemas=SCHEMAS, freeze=self.settings.freeze, model="m"
        )
        self.tables = tuple(t.name for t in self.analysis.tables)
        self._types: tuple[Column, ...] | None = None

    @property
    def limited(self) -> bool:
        return all_rows(self.sql) != self.sql

    def unlimited(self, hour: int) -> str:
        """The rows of which the result are the first ones, in DuckDB's words."""
        return duck(all_rows(self.rewritten(hour).sql))

    @property
    def clocked(self) -> bool:
        return Level.COMMAND in self.analysis.levels

    def rewritten(self, hour: int) -> Rewritten:
        """Raises RefusedError as a run does."""
        if hour not in self._rewritten:
            result = rewrite(self.sql, self.analysis, self.pins(hour), SCHEMAS, self._columns, None)
            if result.errors:
                raise refused(result.errors)
            self._rewritten[hour] = result.rewritten
        return self._rewritten[hour]

    def pins(self, hour: int) -> Any:
        return run_pins(instant(hour), SESSION, SCHEMAS, self.analysis.word_columns)

    def _columns(self, sql: str) -> tuple[Column, ...]:
        if self._types is None:
            self._types = self.database.columns(sql)
        return self._types

    def query(self, hour: int) -> str:
        """The whole query at an instant, in DuckDB's words, over the tables as they are now."""
        return duck(self.rewritten(hour).sql)

    def first_record(self, hour: int, next_change_at: str | None) -> RunRecord:
        rewritten = self.rewritten(hour)
        return RunRecord(
            query=self.analysis.fingerprint,
            config=config_fingerprint(self.settings),
            as_of=utc_text(instant(hour)),
            time_zone="UTC",
            sources=dict.fromkeys(self.tables, BEFORE),
            kept={c.name.lower(): c.fingerprint for c in self.analysis.columns if c.kept},
            pins=dict(rewritten.pins),
            next_change_at=next_change_at,
            clock_solved=rewritten.clock_solved,
            base_version=0,
            clock_rows=1,
        )

    def plans(self, situation: Situation) -> list[Plan]:
        """The plan that a run would take, then one for each other strategy that says it applies."""
        if situation not in self._plans:
            self._plans[situation] = self._decide(situation)
        return self._plans[situation]

    def _decide(self, situation: Situation) -> list[Plan]:
        rewritten = self.rewritten(situation.hour)
        moved = {name for name, _, _ in situation.changed}
        record = replace(
            self.first_record(situation.before, situation.next_change_at),
            sources={name: BEFORE if name in moved else NOW for name in self.tables},
        )
        rows = LARGE if situation.large else 10
        changes = Changes(
            tuple(
                SourceChange(name, 1, 2, "snapshots" if compared else "feed", inserts, 3, rows)
                for name, inserts, compared in situation.changed
            ),
            (),
            dict.fromkeys(self.tables, rows),
            rows,
        )
        facts = RunFacts(
            model="m",
            as_of=utc_text(instant(situation.hour)),
            time_zone="UTC",
            invocation_id="i",
            sources=tuple(
                SourceFacts(
                    name, tuple(Column(c, t) for c, t in SCHEMAS[name.lower()].items()), "delta", NOW, change_feed=True
                )
                for name in self.tables
            ),
            target=TargetFacts(
                exists=True, provider="delta", ours=True, columns=rewritten.columns, version=1, record=record, intact=True
            ),
            pins=dict(rewritten.pins),
        )  # fmt: skip
        known = Known(facts, self.analysis, self.settings, rewritten, self.pins(situation.hour))
        opening = deciding.begin(known)
        with _proposals() as seen:
            chosen = deciding.decide(opening, changes if opening.asks_for_changes else None)
        plans = [chosen]
        for complete, proposal in seen:
            if proposal.candidate.applies and proposal.candidate.strategy != chosen.strategy:
                plan = replace(complete, strategy=proposal.candidate.strategy, steps=proposal.steps, few=proposal.few)
                plans.append(
                    replace(plan, fallback=replace(plan, steps=proposal.instead) if proposal.instead else complete)
                )
        if seen and chosen.strategy != "COMPLETE_RECOMPUTE":
            plans.append(seen[0][0])
        return plans


@contextmanager
def _proposals() -> Any:
    """The complete plan and every proposal that the decision chose from."""
    seen: list[tuple[Plan, Proposal]] = []
    choose = deciding.choose

    def watched(complete: Plan, no_op: Any, proposals: Sequence[Proposal], config: Any, pace: Any) -> Plan:
        seen.extend((complete, p) for p in proposals)
        return choose(complete, no_op, proposals, config, pace)

    deciding.choose = watched
    try:
        yield seen
    finally:
        deciding.choose = choose


class DuckRun(MvRun):
    """A run whose commits are DuckDB's."""

    def _execute(self, step: StepView, sql: str | None) -> None:
        if not step.of.publishes:
            super()._execute(step, sql)
            return
        assert self.plan.record is not None
        bound, floor = self.staged.keys.after(replaced=step.kind == "replace_table")
        self.written = replace(self.plan.record, next_change_at=self.next_change_at, key_bound=bound, key_floor=floor)
        getattr(self, f"_duck_{step.kind}")(step, sql)
        self.verb = "MERGE"

    def _duck_record_only(self, step: StepView, sql: str) -> None: ...

    def _duck_append(self, step: StepView, sql: str) -> None:
        self.statement(sql)

    _duck_delete_where = _duck_append

    def _duck_replace_where(self, step: StepView, sql: str) -> None:
        """Rows of the predicate go, staged rows come."""
        head, rows = sql.split("\nselect", 1)
        predicate = head.split("replace where ", 1)[1]
        self.session.con.execute(f"create or replace temp table coming as {duck('select' + rows)}")  # type: ignore[attr-defined]
        if predicate == PREDICATE:
            predicate = self.key_texts.listed
        self.session.query(f"delete from target where {predicate}")
        self.session.con.execute("insert into target select * from coming")  # type: ignore[attr-defined]

    def _duck_merge_into(self, step: StepView, sql: str) -> None:
        names = [f'"{c["name"]}"' for c in step.args["columns"]]
        keys = [f'"{c["name"]}"' for c in step.args["columns"] if c["role"] == "key"]
        on = " and ".join(f"t.{k} = s.{k}" for k in keys)
        if step.args.get("range"):
            on += f" and {duck('select ' + step.args['range'])[len('select ') :]}"
        con = self.session.con  # type: ignore[attr-defined]
        con.execute(
            "create or replace temp table coming as select s.*, exists(select 1 from target t where "
            f"{on}) as there from stage s"
        )
        con.execute(f"delete from target t where exists (select 1 from stage s where {on})")
        new = "" if step.args.get("inserts", True) else " and there"
        con.execute(f"insert into target select {', '.join(names)} from coming where __mv_op <> 'D'{new}")


RELATIONS = {
    "target": "target",
    "stage": "stage",
    "state": "state",
    "state_stage": "state_stage",
    "affected": "affected",
    **{f"changes_{k}": f"changes_{k}" for k in range(len(SCHEMAS))},
}


def execute(database: Database, plan: Plan, last: RunRecord) -> DuckRun:
    """The plan on the table `target`, after a run that left the record `last`. Raises RunFailed as a run does, and DuckDB's errors."""
    assert plan.record is not None
    record = replace(plan.record, key_bound=last.key_bound, key_floor=last.key_floor)
    database.later = last.next_change_at or LATER
    fallback = plan.fallback and replace(plan.fallback, record=record)
    if fallback is not None and fallback.fallback is not None:
        fallback = replace(fallback, fallback=replace(fallback.fallback, record=record))
    run = DuckRun(
        session=database,
        plan=replace(plan, record=record, fallback=fallback),
        relations=RELATIONS,
        query_sql="",
        app_id="oracle",
        as_of=record.as_of,
        next_change_at=last.next_change_at,
    )
    run.written = record
    for step in run.steps():
        run.execute(step, statement(step))
    return run


__all__ = ["Database", "Model", "RunFailed", "Situation", "execute"]
