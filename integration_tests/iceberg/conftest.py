"""Iceberg beside Delta in the embedded session. A process of its own: Spark is started with Iceberg or without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration_tests.conftest import SETTINGS
from integration_tests.materialization.conftest import mv, operation, sql

from spark_mv.spark.session.iceberg import FORMATS

sys.path.append(str(Path(__file__).parents[1] / "incremental"))  # direct.py: models without dbt around them

__all__ = ["mv", "operation", "sql"]

_AGAIN = ("TestSimpleMaterializations", "TestSnapshotCheckCols", "TestSnapshotTimestamp")
"""Classes of the standard suite that CI runs on Delta only; here before a release (`-m slow`)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/iceberg/" in item.nodeid and any(f"::{name}" in item.nodeid for name in _AGAIN):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="class")
def dbt_profile_target(dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
    return {**dbt_profile_target, "formats": ["delta", "iceberg"]}


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[Any]:
    from spark_mv.spark.session.session import open_session

    yield open_session({**SETTINGS, FORMATS: "delta,iceberg"}, warehouse, warehouse.parent / "spark.log")
