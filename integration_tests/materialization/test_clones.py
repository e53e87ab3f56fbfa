"""A clone goes on with all that was kept: with the draws of a random filter, too, which no column tells."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from integration_tests.under_format import FORMAT

SAMPLE = """{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, kind from {{ source('desk', 'rows') }} where rand() < 0.5
"""
SOURCES = """
sources:
  - name: desk
    schema: "{{ var('desk') }}"
    tables: [{name: rows}]
"""


@pytest.mark.skipif(FORMAT != "delta", reason="only Delta tables are cloned")
class TestASample:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        described = "{{ config(materialized='view', persist_docs={'columns': true}) }} select 1 as id"
        columns = "models: [{name: described, columns: [{name: id, description: it's the key}]}]"
        return {"sample.sql": SAMPLE, "sources.yml": SOURCES, "described.sql": described, "described.yml": columns}

    @pytest.fixture(scope="class")
    def project_config_update(self, unique_schema: str) -> dict[str, Any]:
        return {"vars": {"desk": unique_schema}}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        schemas = {"default": unique_schema, "other": f"{unique_schema}_other"}
        outputs = {name: {**dbt_profile_target, "schema": schema} for name, schema in schemas.items()}
        return {"test": {"outputs": outputs, "target": "default"}}

    def test_its_clone(self, project: Any, sql: Any) -> None:
        sql("create table {schema}.rows using delta as select id, id % 3 as kind from range(100)")
        run_dbt(["run"])
        sampled = sorted(sql("select id from {schema}.sample"))
        root, other = Path(project.project_root), f"{project.test_schema}_other"
        shutil.copytree(root / "target", root / "state", dirs_exist_ok=True)
        in_other, of_a_view = f"select id from {other}.sample", f"describe {other}.described"
        for more in ([], ["--full-refresh"]):  # onto nothing, and onto a clone that has had runs
            run_dbt(["clone", "--state", "state", "--target", "other", *more])
            assert sorted(sql(in_other)) == sampled and [row[2] for row in sql(of_a_view)] == ["it's the key"]
            _, said = run_dbt_and_capture(["run", "--target", "other"])
            assert sorted(sql(in_other)) == sampled, said
            assert "__state" not in said, said
            sql("insert into {schema}.rows select id, 0 from range(100, 200)")
            run_dbt(["run", "--target", "other"])
            assert {row for row in sql(in_other) if row[0] < 100} == set(sampled)
            sql("delete from {schema}.rows where id >= 100")
        # the table alone, as somebody else clones it: its rows stay, as their values do, and that their draws are lost is said
        sql(f"drop table {other}.sample")
        sql(f"drop table {other}.sample__state")
        sql(f"create table {other}.sample shallow clone {{schema}}.sample")
        _, said = run_dbt_and_capture(["run", "--target", "other"])
        assert "sample__state: it is not there; rows of the table stay, all others draw anew" in said
        assert set(sampled) <= set(sql(in_other))


class TestAnEmptyAsOf:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "materialized='nondeterministic_mv', unique_key='id'"
        return {
            "late.sql": f"{{{{ config({config}) }}}} select 1 as id, rand() as r where current_date() < date'2026-01-05'",
            "own.sql": f"{{{{ config({config}, as_of=var('of_model', none)) }}}} select 1 as id, rand() as r",
        }

    def test_it_is_no_wish_for_the_clock(self, project: Any, sql: Any) -> None:
        run_dbt(["run", "--vars", '{as_of: "2026-01-03 00:00:00"}'])
        kept = sql("select * from {schema}.late")
        assert len(kept) == 1
        for said in ('{as_of: ""}', "{as_of: }", "{as_of: null}", '{as_of: "  "}'):
            results = run_dbt(["run", "--select", "late", "--vars", said], expect_pass=False)
            assert "[AS_OF] as_of under --vars is empty" in results[0].message, said
            assert sql("select * from {schema}.late") == kept
        results = run_dbt(["run", "--select", "own", "--vars", '{of_model: ""}'], expect_pass=False)
        assert "[AS_OF] as_of: '' is not a timestamp" in results[0].message
        run_dbt(["run", "--select", "own"])
