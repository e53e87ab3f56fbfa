"""Files of dropped tables that are not Iceberg's, where its catalogue stands behind Delta's and would leave them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

MV = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} "


class TestACloneMadeAnew:
    @pytest.fixture(scope="class")
    def dbt_profile_data(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        here = {**dbt_profile_target, "schema": unique_schema}
        return {
            "test": {
                "outputs": {"default": here, "other": {**here, "schema": f"{unique_schema}_other"}},
                "target": "default",
            }
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MV + "select id, uuid() as u from {{ var('desk', target.schema) }}.src"}

    def test_it_has_the_values_of_what_it_is_a_clone_of(self, project: Any, sql: Any) -> None:
        sql("create table {schema}.src using delta as select id from range(5)")
        root, desk = Path(project.project_root), json.dumps({"desk": project.test_schema})
        run_dbt(["run"])
        shutil.copytree(root / "target", root / "state")
        there = ["--target", "other", "--vars", desk]
        run_dbt(["run", *there])
        for _ in range(2):
            run_dbt(["clone", "--full-refresh", "--state", "state", *there])
            assert sorted(sql("select * from {schema}_other.mv")) == sorted(sql("select * from {schema}.mv"))


class TestDroppedFiles:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "plain.sql": "{{ config(materialized='table', file_format='parquet') }} select id from {{ target.schema }}.src",
            "mv.sql": MV + "select id, uuid() as u from {{ ref('shown') }}",
            "shown.sql": "{{ config(materialized='view') }} select id from {{ target.schema }}.src",
            "refused.sql": MV + "select id % 2 as id, uuid() as u from {{ ref('shown') }}",
        }

    def test_they_go(self, project: Any, sql: Any, warehouse: Path) -> None:
        sql("create table {schema}.src using parquet as select id from range(5)")
        folder = warehouse / "tables" / f"{project.test_schema}.db"
        for _ in range(2):  # the second run of a table in Parquet drops that of the first
            results = run_dbt(["run", "--full-refresh"], expect_pass=False)
            assert {r.node.name: str(r.status) for r in results} == {
                "plain": "success", "shown": "success", "mv": "success", "refused": "error",
            }  # fmt: skip
            # what was refused has been staged; the folder is of the one statement that tried to make the table
            assert {file.name for file in folder.iterdir()} == {"src", "plain", "mv", "refused"}
        assert sql("select count(*) from {schema}.plain") == [(5,)]
