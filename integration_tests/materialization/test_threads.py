"""Several models at once: each connection has a Spark session of its own, so settings never leak into another's commit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.under_format import COMMITS, FORMAT

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', pre_hook=["set `my.setting.%(n)d` = `%(n)d`"]) }}
select id, name, uuid() as drawn_%(n)d, '{{ '${my.setting.%(n)d}' }}' as own,
       current_timestamp() as seen_%(n)d
from {{ target.schema }}.src_%(n)d
"""
PLAIN = "{{ config(materialized='table') }} select id from {{ target.schema }}.src_0"
MODELS = 2


class TestThreads:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "threads": MODELS + 1}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        mvs = {f"mv_{n}.sql": MODEL % {"n": n} for n in range(MODELS)}
        return {**mvs, "plain.sql": PLAIN}

    def test_each_records_its_own(self, project: Any, sql: Any) -> None:
        for n in range(MODELS):
            sql(f"create table {{schema}}.src_{n} using delta as select id, 'a' as name from range({10 + n})")
        for round_ in range(2):
            if round_:
                for n in range(MODELS):
                    sql(f"update {{schema}}.src_{n} set name = 'b{round_}' where id < {n + 1}")
            results = run_dbt(["run", "--vars", json.dumps({"as_of": f"2026-02-0{round_ + 1} 06:00:00"})])
            answers = {r.node.name: r.adapter_response for r in results}
            for n in range(MODELS):
                newest = sql(COMMITS[FORMAT].format(table=f"{{schema}}.mv_{n}"))[0]
                text = next(v for v in newest if isinstance(v, str) and v.startswith('{"') and "spark_mv" in v)
                # in Iceberg it is one of the properties of the snapshot
                record = json.loads(text if FORMAT == "delta" else json.loads(text)["spark_mv"])
                assert list(record["sources"]) == [f"{project.test_schema}.src_{n}"]
                assert set(record["kept"]) == {f"drawn_{n}"}
                if FORMAT == "delta":  # others do not count versions
                    assert record["sources"][f"{project.test_schema}.src_{n}"]["version"] == round_
                assert record["as_of"].startswith(f"2026-02-0{round_ + 1} 06:00:00")
                assert sql(f"select distinct own from {{schema}}.mv_{n}") == [(str(n),)]
                if round_:
                    assert answers[f"mv_{n}"]["rows_updated"] == 10 + n
            history = sql(COMMITS[FORMAT].format(table="{schema}.plain"))
            assert not [v for row in history for v in row if isinstance(v, str) and "spark_mv" in v]
