"""A run that dies, at whatever statement, leaves the table as it was or as it should be, and the next run is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.run import publish
from spark_mv.spark.run.execute import MvRun

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', on_source_delete=var('lost', 'delete')) }}
select id, name, d, rand() as split from {{ target.schema }}.src
where d > current_date() - interval 5 days
"""
ROWS = "create or replace table {schema}.src using delta as select id, concat('n', id) as name, date'2026-02-01' - cast(id % 9 as int) as d from range(40)"


class Died(RunFailed):
    """Stands for the death of the process: no statement and no clean-up of ours comes after it."""


class Death:
    """Lets the run die before its n-th statement, which is after the one before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.seen = 0, 0
        original, drop = MvRun.statement, MvRun._drop_stages

        def statement(run: MvRun, sql: str, *send: Any) -> Any:
            self.seen += 1
            if self.at and self.seen >= self.at:
                raise Died("KILLED", "killed")
            return original(run, sql, *send)

        def drop_stages(run: MvRun) -> None:
            if not self.at or self.seen < self.at:
                drop(run)

        monkeypatch.setattr(MvRun, "statement", statement)
        monkeypatch.setattr(MvRun, "_drop_stages", drop_stages)

    def before(self, number: int) -> None:
        self.at, self.seen = number, 0

    def never(self) -> None:
        self.before(0)


@pytest.fixture
def death(monkeypatch: pytest.MonkeyPatch) -> Iterator[Death]:
    yield Death(monkeypatch)


class TestCrash:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    def wanted(self, sql: Any) -> Counter[tuple[Any, ...]]:
        return Counter(sql("select id, name, d from {schema}.src where d > date'2026-02-01' - interval 5 days"))

    def check(self, mv: Any, sql: Any, drawn: dict[Any, Any]) -> None:
        assert mv.rows("id, name, d") == self.wanted(sql)
        now = mv.by_id("split")
        assert {key: now[key] for key in drawn if key in now} == {key: drawn[key] for key in drawn if key in now}
        names = [row[1] for row in sql("show tables in {schema}")]
        assert not [name for name in names if "__mv_stage_" in name]

    def test_at_every_statement(self, mv: Any, sql: Any, death: Death) -> None:
        sql(ROWS)
        # the first run
        death.before(1)
        assert "killed" in mv.run(expect_pass=False)
        death.never()
        mv.run()
        drawn = mv.by_id("split")
        self.check(mv, sql, {})

        number = 1
        while True:
            sql(f"update {{schema}}.src set name = concat(name, '+') where id % 3 = {number % 3}")
            before = mv.rows()
            version = mv.version()
            death.before(number)
            mv.run(expect_pass=None)
            if death.seen < number:
                break
            published = mv.version() != version
            death.never()
            assert published or mv.rows() == before
            answer = mv.run()
            assert published == (answer["strategy"] == "NO_OP")
            self.check(mv, sql, drawn)
            number += 1
        assert number > 3

    def test_two_runs_at_once(self, mv: Any, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Both stage from the same state; the one that comes second changes nothing and says so."""
        sql(ROWS)
        mv.run()
        drawn = mv.by_id("split")
        sql("update {schema}.src set name = 'new' where id = 2")
        original = publish.publish
        other: list[int] = []

        def twice(run: MvRun, step: Any, statement: str) -> None:
            if not other:
                other.append(1)
                assert run.plan.record is not None
                record = replace(run.plan.record, invocation_id="other")
                rival = replace(run, invocation_id="other", plan=replace(run.plan, record=record))
                original(rival, step, statement)  # the other run is quicker by a moment
            original(run, step, statement)

        monkeypatch.setattr("spark_mv.spark.run.execute.publish", twice)
        version = mv.version()
        message = mv.run(expect_pass=False)
        assert "another run published a new version of the table" in message
        assert mv.version() == version + 1
        monkeypatch.undo()
        assert mv.run()["strategy"] == "NO_OP"
        self.check(mv, sql, drawn)
