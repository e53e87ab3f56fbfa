"""Python models, run in dbt's own process on the connection's Spark session."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.util import run_dbt


class TestPythonModel(BasePythonModelTests):
    pass


class TestPythonIncremental(BasePythonIncrementalTests):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {"models": {"+incremental_strategy": "merge"}}


class TestPySpark(BasePySparkTests):
    def test_different_dataframes(self, project: Any) -> None:
        """Koalas has become pandas on Spark."""
        assert len(run_dbt(["run", "--exclude", "koalas_df"])) == 3


class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


class TestPythonEmpty(BasePythonEmptyTests):
    pass


class TestPythonSample(BasePythonSampleTests):
    pass
