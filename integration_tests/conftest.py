"""Real Spark for every test here: one Spark per test process, its tables and catalogue in a temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from integration_tests.quick_java import QUICK_JAVA
from integration_tests.under_format import FORMAT

from spark_mv.spark.session.iceberg import FORMATS

pytest_plugins = ["dbt.tests.fixtures.project"]

#: tiny data: one task each is quickest. Most statements run once: interpreting them takes a third less time than compiling
#: them. Compiled, as a user has it: quickstart, jaffle_shop and servers, and all with COMPILED=1
COMPILED = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "2g",
}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}
SETTINGS = COMPILED if os.environ.get("COMPILED") else {**COMPILED, **INTERPRETED}

_home = Path(tempfile.gettempdir()) / "dbt-spark-mv-tests"


def pytest_configure(config: pytest.Config) -> None:
    global _home
    _home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-tests-"))


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_home, ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> str:
    names = ("dbt-core", "dbt-spark", "dbt-tests-adapter", "pyspark", "sqlglot")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} -")
    return "engines: " + ", ".join(found)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def warehouse() -> Path:
    """The folder of this test run's tables and catalogue."""
    return _home / "warehouse"


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: Path) -> dict[str, Any]:
    return {
        "type": "spark_mv",
        "method": "session",
        "warehouse": str(warehouse),
        "threads": 2,
        "run_history": False,
        "choose_by": "rows",  # the same strategy on any machine, whatever the table's size
        "second_reading": False,  # statements are counted; test_second_reading.py has it on
        **({} if FORMAT == "delta" else {"formats": ["delta", FORMAT], "file_format": FORMAT}),
        "spark_config": dict(SETTINGS),
    }


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[Any]:
    """A session of the shared Spark, for tests that use no dbt. The same tables are seen by dbt's connections."""
    from spark_mv.spark.session.session import open_session

    formats = {} if FORMAT == "delta" else {FORMATS: f"delta,{FORMAT}"}
    yield open_session({**SETTINGS, **formats}, warehouse, _home / "spark.log")
