"""Statements that are sent while others run, on every release of PySpark that is allowed."""

from __future__ import annotations

from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.spark.run.planning import ask_ahead

pytestmark = pytest.mark.unit


class OfSpark3(Thread):
    """As PySpark 3.5 has it: what it does not know, it hands on."""

    def __init__(self, target: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(target=target, *args, **kwargs)  # noqa: B026


class OfSpark4(OfSpark3):
    def __init__(self, target: Any, *args: Any, session: Any = None, **kwargs: Any) -> None:
        assert session is not None
        super().__init__(target, *args, **kwargs)


@pytest.mark.parametrize("thread", [OfSpark3, OfSpark4])
def test_a_thread_gets_the_session_where_it_takes_one(thread: type[Thread], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.util.InheritableThread", thread)
    rows = SimpleNamespace(collect=lambda: [SimpleNamespace(asDict=lambda: {"n": 1})])
    spark = SimpleNamespace(sparkContext=object(), _jvm=object(), sql=lambda sql: rows)
    asked = ask_ahead(spark, "select 1 as n")
    assert asked is not None and asked.result(10) == [{"n": 1}]
