"""What surrounds the macros of the macro-only mode in a run, without Spark: dbt's own functions, and a warehouse that answers what is known
of a few tables and writes down what it is asked. For the text of statements: what they do is tested on Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from jinja_macros import ROOT, load

from spark_mv.maintenance.macro_only import PLACES
from spark_mv.query.rewrite.pin import Pins
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.macro_plan import macro_plan

NOW = datetime(2026, 2, 1, 6, tzinfo=timezone.utc)
MICROS = int(NOW.timestamp()) * 1_000_000
FILES = [
    *ROOT.glob("*.sql"),
    *(ROOT.parent / "statements").glob("*.sql"),
    ROOT.parent / "materializations" / "mv_config_word.sql",
    ROOT.parent / "materializations" / "mv_as_of.sql",
]


class Row(dict[str, Any]):
    """A row by name or by number."""

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)


class Relation(str):
    """The model's table, in a catalog `main`."""

    database = "main"


class Warehouse:
    """`columns` of its tables by name. `counts`: what the checks of staged rows and of answers say, one after the other. `detail` and
    `history` of tables, where a run asks for them."""

    def __init__(self, columns: Mapping[str, Mapping[str, str]], result: Mapping[str, str]) -> None:
        self.columns, self.result = columns, result
        self.counts: list[Mapping[str, Any]] = []
        self.detail: dict[str, Mapping[str, Any]] = {}
        self.history: dict[str, Sequence[Mapping[str, Any]]] = {}
        self.asked: list[str] = []

    def query(self, sql: str) -> list[Row]:
        self.asked.append(sql)
        sql = sql.replace("`main`.", "")  # the catalog of the session
        word = sql.split("`")[0].strip()
        table = sql.replace("`", "").split()[-1]
        if word == "describe history":
            table = sql.replace("`", "").split()[2]
            return [Row(row) for row in self.history.get(table, [{"version": 4, "timestamp": "2026-01-31 00:00:00"}])]
        if word == "describe detail":
            return [Row(self.detail[table])]
        if word == "describe extended":
            rows = [*self._described(table), ("", ""), ("# Detailed Table Information", ""), ("Type", "MANAGED")]
            named = [*rows, ("Provider", "delta"), ("Table Properties", "[delta.enableChangeDataFeed=true]")]
            return [Row(col_name=name, data_type=kind, comment=None) for name, kind in named]
        if word.lower() == "describe table":
            return [Row(col_name=name, data_type=kind) for name, kind in self._described(table)]
        if sql.lower().startswith("describe query"):
            return [Row(col_name=name, data_type=kind) for name, kind in self.result.items()]
        if sql.startswith("select current_timezone() as time_zone"):
            names = ("time_zone", "user_name", "catalog_name", "schema_name", "version_text")
            return [Row(zip(names, ("UTC", "u", "c", "s", "4.1"), strict=True))]
        if sql.startswith("select to_json(struct(*))"):
            return [Row(found=json.dumps(self._asked(sql)))]
        return []

    def _described(self, table: str) -> list[tuple[str, str]]:
        return list(self.columns[table].items())

    def _asked(self, sql: str) -> Mapping[str, Any]:
        if "current_timezone() as zone" in sql:
            return {"zone": "UTC", "spark": "4.1", "micros": MICROS, "near": MICROS, "started": MICROS, "now": MICROS}
        if (marks := re.findall(r"`(__mv_fill_\w+__)`", sql)) and "count_if(" not in sql:
            literals = {place.mark: place.literal(Pins(NOW)) for place in PLACES}
            return {mark: literals.get(mark, mark.strip("_")) for mark in marks}
        return self.counts.pop(0)


class Adapter:
    """The adapter while a plan is made, and dbt's own in a run."""

    def __init__(self, warehouse: Warehouse, kind: str = "spark_mv") -> None:
        self.warehouse, self.kind = warehouse, kind
        self.dispatch: Callable[..., Any] = lambda name, package: None

    def query(self, sql: str) -> list[Row]:
        return self.warehouse.query(sql)

    def mv_spark(self) -> None:
        return None

    def type(self) -> str:
        return self.kind

    def quote(self, name: str) -> str:
        return f"`{name}`"


def planned(warehouse: Warehouse, model: str, sql: str, config: Mapping[str, Any], ai: Mapping[str, Any]) -> Any:
    """The plan of a model in the schema `mart`, as the macros read it."""
    node = {"name": model, "unique_id": f"model.p.{model}", "config": dict(config)}
    invocation = Invocation.from_macro(
        {
            "model": node,
            "sql": sql,
            "target": f"`mart`.`{model}`",
            "schema": "`mart`",
            "identifier": model,
            "target_exists": False,
            "relation_names": [],
            "started_at": NOW,
            "project": "p",
        }
    )
    plan = macro_plan(Adapter(warehouse), invocation, {"ai": dict(ai), "functions": {}, "safety": {}})
    warehouse.asked.clear()
    return json.loads(json.dumps({"format": 1, "model": f"model.p.{model}", "tables": {invocation.target: plan}}))


def statements(
    warehouse: Warehouse, plans: Any, sql: str, config: Mapping[str, Any], kind: str, there: bool
) -> list[str]:
    """The statements of a run of the plan's model, compiled to `sql`, on an adapter of this `kind`. `there`: whether its table exists."""
    ((target, _),) = plans["tables"].items()
    name = plans["model"].split(".")[-1]
    adapter = Adapter(warehouse, kind)
    said: list[str] = []

    world = {
        "adapter": adapter,
        "model": SimpleNamespace(name=name, unique_id=plans["model"]),
        "config": SimpleNamespace(get=lambda word: config.get(word)),
        "context": {f"spark_mv_plan__{name}": lambda: plans},
        "var": lambda word, otherwise=None: otherwise,
        "target": SimpleNamespace(threads=1),
        "run_started_at": NOW,
        "invocation_id": "0a1b",
        "modules": SimpleNamespace(datetime=__import__("datetime"), re=re, pytz=SimpleNamespace(utc=timezone.utc)),
        "run_query": lambda sql: SimpleNamespace(rows=warehouse.query(sql)),
        "store_raw_result": lambda **result: said.append(result["message"]),
        "should_full_refresh": lambda: False,
        "location_clause": lambda: "",
        "comment_clause": lambda: "",
    }
    package = load(*(file.read_text(encoding="utf-8") for file in FILES), **world)
    adapter.dispatch = lambda name, _: getattr(package, f"default__{name}")
    relation = Relation(f"`main`.{target}" if kind == "databricks" else target)
    package.mv_planned_run(relation, SimpleNamespace(is_view=False) if there else None, sql)
    return [*warehouse.asked, f"-- {said[-1]}"]
