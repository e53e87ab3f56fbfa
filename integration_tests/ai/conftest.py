"""A fresh schema with its result table for every test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from integration_tests.under_format import FORMAT, in_format

from spark_mv.ai.job import run_ai_round
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.results import create_sql, table_name
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import AiPlan, plan_ai
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.run.planning import CONSTRAINTS, EXCLUDED, settings_for

SECRET = "sk-planted-7c1f5d90"


@dataclass
class Bench:
    """A schema, its result table, and the steps that a run takes."""

    spark: Any
    schema: str
    results: str
    ask_from: str = "executors"
    _runs: Iterator[int] = field(default_factory=lambda: count(1))

    def sql(self, statement: str) -> Any:
        return self.spark.sql(in_format(statement))

    def table(self, name: str, columns: str, *rows: str) -> None:
        self.sql(f"CREATE TABLE {self.schema}.{name} ({columns}) USING delta")
        if rows:
            self.sql(f"INSERT INTO {self.schema}.{name} VALUES {', '.join(rows)}")

    def settings(self, profile: dict[str, Any] | None = None, **model: Any) -> AiSettings:
        return AiSettings.from_config({"provider": "scripted", "ask_from": self.ask_from, **(profile or {})}, model)

    def openai(self, url: str, **more: Any) -> AiSettings:
        base = {
            "provider": "openai",
            "base_url": url,
            "model": "m",
            "api_key": SECRET,
            "concurrency": 16,
            "ask_from": self.ask_from,
        }
        return AiSettings.from_config({**base, **more})

    def plan(self, sql: str, settings: AiSettings) -> AiPlan:
        plan = plan_ai(
            sql.replace("{s}", self.schema),
            results_table=self.results,
            identity=settings.identity(),
            functions=settings.functions,
        )
        assert plan.errors == ()
        return plan

    def run(self, sql: str, settings: AiSettings, **more: Any) -> tuple[AiOutcome, list[tuple[Any, ...]]]:
        """All rounds (of one run), then the rows of the rewritten query, with the settings that a run makes for it."""
        plan = self.plan(sql, settings)
        for setting, value in settings_for(Ask(self._query, self.spark), plan.sql).items():
            self.spark.conf.set(setting, value)
        try:
            return self._run(plan, settings, **more)
        finally:
            for setting in (EXCLUDED, CONSTRAINTS):
                self.spark.conf.unset(setting)

    def _query(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.sql(sql).collect()]

    def _run(self, plan: AiPlan, settings: AiSettings, **more: Any) -> tuple[AiOutcome, list[tuple[Any, ...]]]:
        total, invocation = AiOutcome(), more.pop("invocation_id", None) or f"run-{next(self._runs)}"
        for calls in plan.rounds:
            total += run_ai_round(
                self.spark,
                calls,
                settings=settings,
                results_table=self.results,
                invocation_id=invocation,
                spent=total,
                **more,
            )
        return total, [tuple(r) for r in self.spark.sql(plan.sql).collect()]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        text = sql.replace("{s}", self.schema).replace("{results}", self.results)
        return [tuple(r) for r in self.spark.sql(text).collect()]


@pytest.fixture
def bench(spark: Any, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Its parameter, if it has one, is who asks."""
    schema = f"ai_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE SCHEMA {schema}")
    results = table_name(schema)
    spark.sql(create_sql(results, FORMAT))
    yield Bench(spark, schema, results, getattr(request, "param", "executors"))
    spark.sql(f"DROP SCHEMA {schema} CASCADE")
