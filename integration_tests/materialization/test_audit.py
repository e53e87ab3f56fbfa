"""The audit finds what a wrong run left, repairs it in one commit and says so; on right tables it finds nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.incremental.conftest import Engine

from spark_mv.maintenance.audit import Findings
from spark_mv.maintenance.errors import RunFailed

Fault = Callable[[str], str]


class Faulty:
    """dbt's adapter with a fault in what a run stages, never in what an audit does."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.fault: Fault | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.adapter, name)

    def execute_macro(self, name: str, kwargs: dict[str, Any], **more: Any) -> Any:
        sql, step = self.adapter.execute_macro(name, kwargs=kwargs, **more), kwargs["step"]
        if self.fault and step.kind == "stage_changes" and not step.args["into"].endswith("_audit`"):
            head, kind, body = re.split(r"( using (?:parquet|memory) as)", str(sql), maxsplit=1)
            sql = f"{head}{kind} {self.fault(body)}"
        return sql


@pytest.fixture(scope="class")
def engine(project: Any) -> Iterator[Engine]:
    with project.adapter.connection_named("audit"):
        yield Engine(Faulty(project.adapter), project.test_schema)


def run(engine: Engine, as_of: str = "2026-02-01 06:00:00", fault: Fault | None = None, **config: Any) -> Findings:
    engine.config = {**engine.config, **config}
    engine.adapter.fault = fault
    done = engine.run(as_of)
    engine.adapter.fault = None
    assert done.auditor is not None and done.auditor.findings is not None
    found = done.auditor.findings
    assert not found.failed, found
    assert found.strategy == done.plan.strategy
    return found


FEED = "using delta tblproperties (delta.enableChangeDataFeed = true)"


class TestOnRightTables:
    """Nothing is found, and nothing is committed."""

    @pytest.mark.parametrize(
        ("strategy", "sql", "config"),
        [
            ("APPEND_ONLY", "select id, g, v, m, rand() as r from {schema}.src", {}),
            ("ROW_BASED", "select id, g, v, f, m, uuid() as u from {schema}.src where v < 90", {}),
            ("GROUP_AGGREGATE", "select g, sum(v) as s, avg(f) as a, count(*) as n, rand() as r from {schema}.src group by g",
             {"unique_key": "g"}),
            ("WINDOW_FUNCTION", "select id, g, v, row_number() over (partition by g order by v, id) as n from {schema}.src", {}),
            ("ROW_BASED", "select id, d, uuid() as u from {schema}.src where d > date_sub(current_date(), 3)", {}),
            ("COMPLETE_RECOMPUTE", "select id, v from {schema}.src where rand() < 0.5", {}),
            ("COMPLETE_RECOMPUTE", "select id, d, rand() as r from {schema}.src where d > date_sub(current_date(), 3)",
             {"on_source_delete": "keep"}),
        ],
    )  # fmt: skip
    def test_nothing_is_found(self, engine: Engine, strategy: str, sql: str, config: dict[str, Any]) -> None:
        engine.query(f"create or replace table {{schema}}.src {FEED} as select id, id % 5 as g, id % 7 as v, id / 4 as f, "
                     "map('a', id) as m, date_add(date'2026-01-30', cast(id % 6 as int)) as d from range(60)")  # fmt: skip
        engine.model(sql, audit=True, **config)
        assert run(engine).rows == 0
        if strategy != "APPEND_ONLY":
            engine.query("update {schema}.src set v = v + 1, f = f * 3 where id % 11 = 0")
            engine.query("delete from {schema}.src where id = 13")
        engine.query("insert into {schema}.src select id, 2, 50, 0.125, map(), date'2026-02-01' from range(100, 110)")
        before = engine.version()
        # so few rows are as quickly read whole
        only = {} if strategy == "COMPLETE_RECOMPUTE" else {"refresh": "incremental"}
        found = run(engine, "2026-02-02 06:00:00", **only)
        assert (found.strategy, found.rows, found.unordered) == (strategy, 0, 0)
        assert engine.version() == before + 1
        found = run(engine, "2026-02-02 07:00:00")
        assert (found.strategy, found.rows) == ("NO_OP", 0)
        assert engine.version() == before + 1


class TestOnWrongTables:
    def build(self, engine: Engine, **config: Any) -> None:
        engine.query(
            f"create or replace table {{schema}}.src {FEED} as select id, id % 5 as v, id / 3 as f from range(20)"
        )
        engine.model("select id, v, rand() as r from {schema}.src", **config)
        engine.run()

    def repaired(self, engine: Engine, fault: Fault, **config: Any) -> Findings:
        draws = dict(engine.rows_of(f"select id, r from {engine.table}"))
        before = engine.version()
        found = run(engine, fault=fault, audit=True, **config)
        assert found.repaired and engine.version() == before + 2  # the run's commit, and one
        rows = engine.rows_of(f"select id, v, r from {engine.table}")
        assert Counter(r[:2] for r in rows) == Counter(engine.rows_of("select id, v from {schema}.src"))
        assert all(draws.get(id_, r) == r for id_, _, r in rows)  # kept values stay what they are
        assert any("AUDIT" in text and "differed" in text for text in engine.warnings)
        assert run(engine).rows == 0
        return found

    def test_an_update_that_was_forgotten(self, engine: Engine) -> None:
        self.build(engine)
        engine.query("update {schema}.src set v = 77 where id in (3, 4)")
        found = self.repaired(engine, lambda q: f"select * from ({q}) where id <> 3")
        assert (found.different, found.missing, found.extra, found.strategy) == (1, 0, 0, "ROW_BASED")
        assert found.examples == ({"key": '{"id":3}', "what": "v"},)
        assert "stage_changes" in found.steps

    def test_rows_that_are_missing_and_rows_too_many(self, engine: Engine) -> None:
        self.build(engine)
        engine.query("insert into {schema}.src values (100, 1, 0), (101, 1, 0)")
        engine.query("delete from {schema}.src where id in (5, 6)")
        found = self.repaired(engine, lambda q: f"select * from ({q}) where id not in (5, 100)")
        assert (found.different, found.missing, found.extra) == (0, 1, 1)

    def test_a_row_twice(self, engine: Engine) -> None:
        """A bag, not a set."""
        self.build(engine)
        engine.query("update {schema}.src set v = 78 where id in (7, 8)")
        engine.query("insert into {schema}.src values (102, 1, 0)")
        twice = "select * from ({0}) union all select * from ({0}) where id = 102"
        found = self.repaired(engine, lambda q: twice.format(q))
        assert (found.different, found.missing, found.extra) == (0, 0, 1)

    def test_the_audit_of_a_run_that_has_nothing_to_do(self, engine: Engine) -> None:
        self.build(engine)
        engine.query("update {schema}.src set v = 79 where id in (9, 10)")
        engine.adapter.fault = lambda q: f"select * from ({q}) where id <> 10"
        engine.run()
        engine.adapter.fault = None
        before = engine.version()
        found = run(engine, audit=True)
        assert (found.strategy, found.rows, found.repaired, engine.version()) == ("NO_OP", 1, True, before + 1)

    @pytest.mark.slow
    def test_every_so_many_runs(self, engine: Engine) -> None:
        self.build(engine)
        engine.config["audit"] = {"every": 3}
        due, versions = [], []
        for n in range(5):
            engine.query(f"update {{schema}}.src set v = {n} + 200 where id = 1")
            done = engine.run()
            due.append(done.auditor is not None)
            versions.append(engine.version())
            assert done.plan.record is not None
        assert due == [False, True, False, False, True]
        assert [b - a for a, b in pairwise(versions)] == [2, 1, 1, 2]
        engine.config["audit"] = {"every": 1}
        assert engine.run().auditor is not None  # a NO_OP, too

    def test_what_depends_on_an_order_is_reported_and_left(self, engine: Engine) -> None:
        engine.query(
            f"create or replace table {{schema}}.src {FEED} as select id, id % 2 as g, id / 3 as f from range(20)"
        )
        engine.model("select g, collect_list(id) as ids, sum(f) as s, count(*) as n from {schema}.src group by g",
                     unique_key="g", audit=True)  # fmt: skip
        run(engine)
        engine.query("insert into {schema}.src values (100, 0, 0.5), (101, 1, 0.5)")
        other = "reverse(array_sort(ids)) as ids, if(g = 0, s * (1 + 1e-14), s) as s, if(g = 1, n + 1, n) as n"
        before = engine.version()
        found = run(engine, fault=lambda q: f"select __mv_op, g, {other}, __mv_n from ({q})")
        assert (found.different, found.unordered, found.repaired) == (1, 2, True)
        assert found.examples[0]["what"] == "n"
        found = run(engine)
        assert (found.rows, found.unordered) == (0, 2)
        assert engine.version() == before + 2

    @pytest.mark.slow
    def test_the_limit_holds_for_the_repair(self, engine: Engine) -> None:
        # a run that writes the whole table would lose the rows that the fault hides: then the repair only adds rows
        self.build(engine, audit=True, max_rows_changed=3, refresh="incremental")
        engine.query("update {schema}.src set v = 500 where id < 6")
        before = engine.version()
        engine.adapter.fault = lambda q: f"select * from ({q}) where id < 2"
        with pytest.raises(RunFailed, match="the run itself is done; of its audit"):
            engine.run()
        engine.adapter.fault = None
        assert engine.version() == before + 1


MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }} select id, v, rand() as r from {{ target.schema }}.src
where valid_to > current_date()
"""
TESTS = """
models:
  - name: mv
    data_tests:
      - matches_recompute
      - matches_recompute: {name: sampled, arguments: {sample: 0.5}}
      - matches_recompute: {name: filtered, config: {where: "id < 2"}}
  - name: v
    data_tests:
      - matches_recompute: {name: of_a_view}
  - name: united
    data_tests:
      - matches_recompute: {name: of_a_union, arguments: {sample: 0.9}}
"""
UNITED = """
{{ config(materialized='nondeterministic_mv', unique_key=['id', 'kind']) }}
with s as (select id, (select max(b.v) from {{ target.schema }}.src b where b.id <= a.id) as most from {{ target.schema }}.src a)
select u.*, rand() as r from (select id, 0 as kind, most from s union all select id, 1, most from s) as u
"""


class TestFromTheOutside:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL, "v.sql": "select 1 as id", "united.sql": UNITED, "tests.yml": TESTS}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "run_history": True, "audit": {"every": 2}}

    def test_what_a_run_says(self, project: Any, mv: Any, sql: Callable[[str], Any]) -> None:
        from spark_mv.spark.run import run_history

        feed = "tblproperties (delta.enableChangeDataFeed = true)"
        rows = "select id, id as v, date'2026-02-03' as valid_to from range(5)"
        sql(f"create table {{schema}}.src using delta {feed} as {rows}")
        old = {n: k for n, k in run_history.COLUMNS.items() if not n.startswith("audit")}
        sql(f"create table {{schema}}.mv_runs ({', '.join(f'{n} {k}' for n, k in old.items())}) using delta")
        assert mv.run().get("audit_differences") is None  # off, or not due
        sql("insert into {schema}.src values (5, 5, date'2026-02-03')")
        done = mv.run()
        assert done["audit_differences"] == 0 and "audit: no difference" in done["_message"]
        assert mv.run().get("audit_differences") is None
        assert mv.run(audit=True)["audit_differences"] == 0
        assert "is not true (every run)" in mv.run(audit="sometimes", expect_pass=False)
        rows = sql("select strategy, audit_differences, audit from {schema}.mv_runs order by started_at")
        assert [row[:2] for row in rows][:4] == [
            ("COMPLETE_RECOMPUTE", None), ("APPEND_ONLY", 0), ("NO_OP", None), ("NO_OP", 0)
        ]  # fmt: skip
        assert json.loads(rows[1][2])["steps"]

    def test_matches_recompute(self, project: Any, mv: Any, sql: Callable[[str], Any]) -> None:
        def tested(select: str = "mv") -> dict[str, tuple[str, int | None]]:
            results = run_dbt(
                ["test", "--select", select, "--vars", '{as_of: "2026-02-09 00:00:00"}'], expect_pass=None
            )
            return {r.node.name: (str(r.status), r.failures) for r in results}

        sql(
            "create or replace table {schema}.src using delta as select id, id as v, date'2026-02-03' as valid_to from range(40)"
        )
        mv.run()
        # the sources and the clock have moved since: it is the last run that is looked at
        sql("update {schema}.src set v = v + 1")
        name = "matches_recompute_mv_"
        assert tested() == {name: ("pass", 0), "sampled": ("pass", 0), "filtered": ("pass", 0)}
        sql("update {schema}.mv set v = 100 where id in (1, 30)")
        sql("delete from {schema}.mv where id = 31")
        sql("insert into {schema}.mv select * from {schema}.mv where id = 32")
        sql("insert into {schema}.mv values (500, 1, 0.5)")
        found = tested()
        assert (found[name], found["filtered"]) == (("fail", 5), ("fail", 1))
        found = tested("mv v")
        assert found["of_a_view"][0] == "error"
        assert mv.run()["strategy"] == "COMPLETE_RECOMPUTE"
        assert tested()[name] == ("pass", 0)

    def test_a_union_with_a_correlated_subquery(self, project: Any, sql: Callable[[str], Any]) -> None:
        """Spark plans the check of its keys, and the comparison, only without inference of constraints; the session keeps its own setting."""
        sql(
            "create or replace table {schema}.src using delta as select id, id as v, date'2026-02-03' as valid_to from range(4)"
        )
        for change in ("", "update {schema}.src set v = 9 where id = 1"):
            if change:
                sql(change)
            run_dbt(["run", "--select", "united"])
            (result,) = run_dbt(["test", "--select", "united"])
            assert (str(result.status), result.failures) == ("pass", 0)
        assert sql("select most, count(*) from {schema}.united group by most order by most") == [(0, 2), (9, 6)]
        assert sql("set spark.sql.constraintPropagation.enabled")[0][1] != "false"
