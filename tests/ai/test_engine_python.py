"""When the executors cannot ask: what Spark says then, and what is done about tasks that may run twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.ai.engine_python import WorkersCannot, refuse_repeats, why_workers_cannot


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
            "PYTHON_VERSION_MISMATCH",
        ),
        ("Job aborted.\nModuleNotFoundError: No module named 'pandas'\n\tat org…", "No module named 'pandas'"),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed", "PACKAGE_NOT_INSTALLED"),
        ('java.io.IOException: Cannot run program "python3": error=2', 'Cannot run program "python3"'),
    ],
)
def test_what_python_on_the_engine_lacks(said: str, reason: str) -> None:
    assert reason in (why_workers_cannot(RuntimeError(said)) or "")


@pytest.mark.parametrize("said", ["[DELTA_CONCURRENT_APPEND] …", "Job aborted due to stage failure: disk is full", ""])
def test_other_failures_are_no_reason_to_ask_elsewhere(said: str) -> None:
    assert why_workers_cannot(RuntimeError(said)) is None


def spark(**conf: str) -> Any:
    words = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: words.get(name, default)))


def test_speculation_takes_barrier_tasks_and_those_no_dynamic_allocation() -> None:
    assert refuse_repeats(spark()) is False
    assert refuse_repeats(spark(dynamicAllocation_enabled="true")) is False
    assert refuse_repeats(spark(speculation="true")) is True
    with pytest.raises(WorkersCannot, match="pay twice"):
        refuse_repeats(spark(speculation="True", dynamicAllocation_enabled="true"))
