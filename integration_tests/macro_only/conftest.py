"""One project run in two ways: target `ours` with the adapter, `plain` on dbt-spark alone, from plans that `spark-mv plan` wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt

from spark_mv.cli import main

ROOT = Path(__file__).parents[2]
DAYS = [f"2026-02-0{day} 06:00:00.250000" for day in range(1, 8)]


@pytest.fixture(scope="class")
def ai(unique_schema: str) -> dict[str, Any]:
    """The ai block of `ours`; the other target has none: what it needs is in the plans."""
    return {}


@pytest.fixture(scope="class")
def dbt_profile_data(unique_schema: str, dbt_profile_target: dict[str, Any], ai: dict[str, Any]) -> Any:
    ours = {**dbt_profile_target, "schema": unique_schema, "threads": 1, **({"ai": ai} if ai else {})}
    plain = {"type": "spark", "method": "session", "host": "none", "schema": unique_schema, "threads": 1}
    return {"test": {"target": "ours", "outputs": {"ours": ours, "plain": plain}}}


@pytest.fixture(scope="class")
def packages() -> Any:
    return {"packages": [{"local": str(ROOT)}]}


@pytest.fixture(scope="class")
def tables() -> tuple[str, ...]:
    """The statements that make what the models read."""
    return ()


@pytest.fixture(scope="class")
def sql(project: Any, spark: Any, tables: tuple[str, ...]) -> Callable[[str], list[tuple[Any, ...]]]:
    def run(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(statement.replace("{s}", project.test_schema)).collect()]

    for statement in tables:
        run(statement)
    return run


@pytest.fixture(scope="class")
def run(project: Any, sql: Any) -> Iterator[Callable[..., Any]]:
    run_dbt(["deps"])

    def once(by: str, day: int, *more: str, model: str = "mv", ok: bool = True, **variables: Any) -> Any:
        said = json.dumps({"as_of": DAYS[day - 1], "allow_future_as_of": True, **variables})
        results = run_dbt(["run", "--target", by, "--select", model, "--vars", said, *more], expect_pass=None).results
        assert (results[0].status == "success") == ok, results[0].message
        return results[0].adapter_response if ok else results[0].message

    yield once
    run_dbt(["parse"])  # the adapter that drops the schema is that of the last command


@pytest.fixture(scope="class")
def plan(project: Any, run: Any) -> Callable[..., Any]:
    def once(*more: str) -> Any:
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        return CliRunner().invoke(main, ["plan", *where, *more])

    return once
