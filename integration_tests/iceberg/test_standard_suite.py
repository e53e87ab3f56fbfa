"""Tests of the standard adapter suite where `file_format: iceberg` stands in the profile: tables, incremental models,
seeds and snapshots."""

from __future__ import annotations

from typing import Any

import pytest
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
