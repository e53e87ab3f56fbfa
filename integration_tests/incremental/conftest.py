"""Models run in this process, without the dbt command line around each run: the same preparation, macros and statements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from integration_tests.under_format import FORMAT, MADE_WITH, REPLACES_BY_KEY, VERSION, in_format

from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.prepare import prepare


class Config(dict[str, Any]):
    """What the macros ask of `config`."""

    def get(self, key: str, default: Any = None, validator: Any = None) -> Any:  # type: ignore[override]
        return SimpleNamespace(enforced=False) if key == "contract" else super().get(key, default)


@dataclass
class Engine:
    """One model in one schema. `statements` are those of the latest run, in order."""

    adapter: Any
    schema: str
    name: str = "mv"
    sql: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    runs: int = 0
    profile: Mapping[str, Any] = field(
        default_factory=lambda: {
            "embedded": True,
            "safety": {"second_reading": False, "choose_by": "rows", "file_format": FORMAT},
        }
    )

    @property
    def table(self) -> str:
        return f"{self.schema}.`{self.name}`"

    def query(self, sql: str) -> list[dict[str, Any]]:
        text = in_format(sql).replace("{schema}", self.schema)
        self.statements.append(text)
        return self.adapter.query(text)  # type: ignore[no-any-return]

    def rows_of(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.query(sql)]

    def warn(self, text: str) -> None:
        self.warnings = [*getattr(self, "warnings", []), text]

    def say(self, text: str) -> None: ...

    def note(self, model: str, text: str) -> None: ...

    def mv_spark(self) -> Any:
        return self.adapter.mv_spark()

    def model(self, sql: str, **config: Any) -> None:
        """Another model of this name; the old table goes."""
        self.adapter.query(f"drop table if exists {self.table}")
        self.sql, self.config = sql.replace("{schema}", self.schema), {"unique_key": "id", **config}

    def run(self, as_of: str = "2026-02-01 06:00:00", table: str | None = None, full_refresh: bool = False) -> MvRun:
        """One run; `table` writes to another table than the model's own."""
        name = table or self.name
        self.runs += 1
        self.statements, self.steps = [], []
        self.warnings: list[str] = []
        config = self.config if FORMAT == "delta" else {"file_format": FORMAT, **self.config}
        if MADE_WITH:
            config = {**config, "tblproperties": {**MADE_WITH, **config.get("tblproperties", {})}}
        names = [row["tableName"] for row in self.adapter.query(f"show tables in {self.schema}")]
        invocation = Invocation(
            unique_id=f"model.test.{name}",
            name=name,
            sql=self.sql,
            config=config,
            explicit=frozenset(config),
            target=f"{self.schema}.`{name}`",
            schema=self.schema,
            identifier=name,
            target_exists=name in names,
            state_exists=f"{name}__state" in names,
            relation_names=tuple(names),
            started_at=datetime.now(timezone.utc),
            as_of=as_of,
            allow_future_as_of=True,
            invocation_id=f"{self.runs:08x}-test",
            full_refresh=full_refresh,
        )
        run = prepare(self, invocation, self.profile)
        context = {
            "config": Config(config),
            "model": SimpleNamespace(unique_id=invocation.unique_id, constraints=[], columns={}),
            "this": invocation.target,
            "invocation_id": invocation.invocation_id,
        }
        for step in run.steps():
            sql = self.adapter.execute_macro("mv_statement", kwargs={"step": step}, context_override=context)
            self.steps.append(step.kind)
            run.execute(step, None if sql is None else str(sql))
        return run

    @property
    def published(self) -> str:
        """How the latest run wrote to the table: APPEND, REPLACE WHERE, REPLACE USING, MERGE, DELETE, RECORD or, without a
        commit, nothing."""
        if "replace_using" in self.steps:
            return "REPLACE USING"
        if "record_only" in self.steps:
            return "RECORD"
        for text in reversed(self.statements):
            flat = " ".join(text.lower().split())
            words = {
                "insert into table replace where": "REPLACE WHERE",
                "insert into table ": "APPEND",
                "merge into table ": "MERGE",
                "delete from table ": "DELETE",
            }
            for start, word in words.items():
                if re.match(start.replace("table", re.escape(self.table.lower()) + r"(\.branch_\w+)?"), flat):
                    return word
        return ""

    def took(self, run: MvRun, strategy: str, published: str) -> None:
        """Fails unless the latest run went this way, as tables that can replace rows by their keys do; others merge."""
        published = as_published(published)
        found = run.plan.strategy, self.published
        assert found == (strategy, published), (run.plan.candidates, self.warnings)

    def rows(self, table: str | None = None, columns: str = "*") -> Counter[tuple[Any, ...]]:
        found = self.adapter.query(f"select {columns} from {self.schema}.`{table or self.name}`")
        return Counter(tuple(_hashable(v) for v in row.values()) for row in found)

    def version(self) -> int:
        """A number that each commit to the table raises by one."""
        return int(self.adapter.query(VERSION[FORMAT].format(table=self.table))[0]["version"])


def as_published(how: str) -> str:
    return "MERGE" if how.startswith("REPLACE") and not REPLACES_BY_KEY else how


def _hashable(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "NaN"
    return repr(value) if isinstance(value, list | dict) else value


@pytest.fixture(scope="class")
def engine(project: Any) -> Iterator[Engine]:
    with project.adapter.connection_named("incremental"):
        yield Engine(project.adapter, project.test_schema)
