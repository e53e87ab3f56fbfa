"""The first result of a strategy is read twice: what is wrong is repaired, and that strategy is not taken again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.incremental.conftest import Engine
from integration_tests.materialization.test_audit import FEED, Faulty


@pytest.fixture
def engine(project: Any) -> Iterator[Engine]:
    with project.adapter.connection_named("second_reading"):
        found = Engine(Faulty(project.adapter), project.test_schema)
        found.profile = {"embedded": True}  # it is on where nobody says otherwise
        found.query(
            f"create or replace table {{schema}}.src {FEED} as select id, id % 5 as g, id % 7 as v from range(60)"
        )
        found.model("select id, g, v + 1 as w, rand() as r from {schema}.src", refresh="incremental")
        found.run()
        yield found
        found.query("drop table {schema}.mv")


def right(engine: Engine, sql: str) -> bool:
    return Counter(engine.rows_of(f"select id, g, w from {engine.table}")) == Counter(engine.rows_of(sql))


SQL = "select id, g, v + 1 as w from {schema}.src"


def test_a_right_result_costs_no_commit_and_is_read_twice_once(engine: Engine) -> None:
    engine.query("update {schema}.src set v = v + 1 where id % 11 = 0")
    before = engine.version()
    run = engine.run()
    assert run.plan.strategy == "ROW_BASED" and engine.version() == before + 1
    assert run.auditor is not None and run.auditor.findings.rows == 0
    assert run.response().audit_differences == 0 and "audit" not in run.response()._message
    engine.query("update {schema}.src set v = v + 1 where id % 13 = 0")
    run = engine.run()
    assert run.plan.strategy == "ROW_BASED" and run.auditor is None
    assert right(engine, SQL) and engine.warnings == []


def test_a_wrong_result_is_repaired_and_the_strategy_distrusted(engine: Engine) -> None:
    engine.query("update {schema}.src set v = v + 1 where id % 11 = 0")
    engine.adapter.fault = lambda body: f"select * from ({body}) where id <> 11"
    run = engine.run()
    engine.adapter.fault = None
    assert run.auditor is not None and run.auditor.findings.rows == 1
    assert right(engine, SQL)
    assert any("ROW_BASED is not taken again" in text for text in engine.warnings)
    engine.query("update {schema}.src set v = v + 1 where id % 13 = 0")
    engine.config = {**engine.config, "refresh": "auto"}
    run = engine.run()
    doubted = {c.strategy: [r.code for r in c.reasons] for c in run.plan.candidates}
    assert run.plan.strategy == "COMPLETE_RECOMPUTE" and doubted["ROW_BASED"] == ["SECOND_READING"]
    assert right(engine, SQL)
    engine.model("select id, g, v + 2 as w, rand() as r from {schema}.src", refresh="auto")
    engine.run()  # another query
    engine.query("update {schema}.src set v = v + 1 where id % 13 = 0")
    engine.config = {**engine.config, "refresh": "incremental"}
    assert engine.run().plan.strategy == "ROW_BASED"
    assert right(engine, SQL.replace("+ 1", "+ 2"))


def test_answers_that_are_no_more_known_stay_in_the_table(engine: Engine) -> None:
    """An audit asks nothing: where `ai_results` has lost an answer, its recompute has NULL, and that is no better than the table."""
    ai = {"provider": "scripted", "model": "test", "ask_from": "driver"}
    engine.profile = {"embedded": True, "ai": ai}
    engine.model("select id, v, ai_gen(concat('n', id)) as answer from {schema}.src", refresh="incremental")
    engine.run()
    kept = engine.rows("mv", "id, answer")
    engine.query("delete from {schema}.ai_results where value like '%n1%'")
    engine.query("update {schema}.src set v = v + 1 where id = 2")
    run = engine.run()
    assert run.plan.strategy == "ROW_BASED" and run.auditor is not None
    assert engine.rows("mv", "id, answer") == kept and None not in {row[1] for row in kept}
    assert any("11 AI inputs have no answer in" in text for text in engine.warnings), engine.warnings
    assert not run.auditor.findings.repaired and "no answer in" in run.auditor.findings.failed
    # they are asked for again where a run reads the whole query
    engine.config = {**engine.config, "refresh": "full"}
    assert engine.run().response().ai_calls == 11
    assert engine.rows("mv", "id, answer") == kept
    engine.query("drop table {schema}.ai_results")
