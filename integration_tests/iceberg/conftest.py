"""Iceberg beside Delta in the embedded session. A process of its own: Spark is started with Iceberg or without it."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.materialization.conftest import mv, operation, sql

__all__ = ["mv", "operation", "sql"]


@pytest.fixture(scope="class")
def dbt_profile_target(dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
    return {**dbt_profile_target, "formats": ["delta", "iceberg"]}
