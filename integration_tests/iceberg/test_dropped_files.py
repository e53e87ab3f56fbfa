"""Files of dropped tables that are not Iceberg's, where its catalogue stands behind Delta's and would leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

MV = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} "


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
