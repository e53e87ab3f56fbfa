"""Tests of the standard adapter suite where `file_format: iceberg` stands in the profile: tables, incremental models,
seeds and snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.adapter.conftest import project_speaks_spark
from integration_tests.adapter.test_basic import (
    TestIncremental,
    TestSimpleMaterializations,
    TestSnapshotCheckCols,
    TestSnapshotTimestamp,
)
from integration_tests.adapter.test_incremental import TestMergeExcludeColumns

__all__ = [
    "TestIncremental",
    "TestMergeExcludeColumns",
    "TestSimpleMaterializations",
    "TestSnapshotCheckCols",
    "TestSnapshotTimestamp",
    "project_speaks_spark",
]


@pytest.fixture(scope="class")
def dbt_profile_target(dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
    return {**dbt_profile_target, "file_format": "iceberg"}


class TestAnotherType:
    """Between types which Iceberg itself does not widen."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "config(materialized='incremental', unique_key='id', on_schema_change='sync_all_columns')"
        return {
            "typed.sql": "{{ " + config + " }} select {{ var('id', 1) }} as id, {{ var('value', '1') }} as v, 'x' as w"
        }

    def test_a_column_gets_it(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{id: 2, value: \"'a'\"}"])
        assert sorted(project.run_sql("select id, v, w from {schema}.typed", fetch="all")) == [
            (1, "1", "x"),
            (2, "a", "x"),
        ]
