"""Iceberg beside Delta in the embedded session. A process of its own: Spark is started with Iceberg or without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from integration_tests.conftest import SETTINGS
from integration_tests.materialization.conftest import mv, operation, sql

__all__ = ["mv", "operation", "sql"]


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: Path) -> dict[str, Any]:
    return {
        "type": "spark_mv",
        "method": "session",
        "warehouse": str(warehouse),
        "threads": 2,
        "run_history": False,
        "choose_by": "rows",
        "second_reading": False,
        "formats": ["delta", "iceberg"],
        "spark_config": dict(SETTINGS),
    }
