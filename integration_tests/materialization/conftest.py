"""Helpers for tests that run models through dbt on real tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from integration_tests.under_format import FORMAT, VERSION, in_format


@pytest.fixture(scope="class")
def sql(project: Any) -> Callable[[str], list[tuple[Any, ...]]]:
    """Run one statement and return its rows; `{schema}` stands for the test's schema."""

    def run(statement: str) -> list[tuple[Any, ...]]:
        rows = project.run_sql(in_format(statement).replace("{schema}", project.test_schema), fetch="all")
        return [tuple(row) for row in rows or []]

    return run


class Mv:
    """One model under test: run it at an instant, read its rows, its response and its table's versions."""

    def __init__(
        self, sql: Callable[[str], list[tuple[Any, ...]]], name: str = "mv", table_format: str = FORMAT
    ) -> None:
        self.sql, self.name, self.format = sql, name, table_format

    def run(self, as_of: str = "2026-02-01 06:00:00", *args: str, expect_pass: bool = True, **variables: Any) -> Any:
        """Run the model; returns its adapter response as a dictionary, or the error text when it fails."""
        command = [
            "run",
            "--select",
            self.name,
            "--vars",
            json.dumps({"as_of": as_of, "allow_future_as_of": True, **variables}),
            *args,
        ]
        results = run_dbt(command, expect_pass=expect_pass)
        result = next(r for r in results if r.node.name == self.name)
        return result.adapter_response if expect_pass else result.message

    def rows(self, columns: str = "*", where: str = "true") -> Counter[tuple[Any, ...]]:
        return Counter(self.sql(f"select {columns} from {{schema}}.{self.name} where {where}"))

    def by_id(self, columns: str) -> dict[Any, tuple[Any, ...]]:
        return {row[0]: row[1:] for row in self.sql(f"select id, {columns} from {{schema}}.{self.name}")}

    def version(self) -> int:
        """A number that each commit to the table raises by one."""
        return int(self.sql(VERSION[self.format].format(table=f"{{schema}}.{self.name}"))[0][0])


@pytest.fixture(scope="class")
def mv(sql: Callable[[str], list[tuple[Any, ...]]]) -> Mv:
    return Mv(sql)


@pytest.fixture
def operation(project: Any) -> Callable[..., str]:
    """Run an operation and return what dbt printed."""

    def run(name: str, args: dict[str, Any], expect_pass: bool = True, **variables: Any) -> str:
        command = ["run-operation", name, "--args", json.dumps(args), "--vars", json.dumps(variables)]
        _, output = run_dbt_and_capture(command, expect_pass=None)
        assert ("Encountered an error" not in output) == expect_pass, output
        return str(output)

    return run
