"""Names of jobs, as a session is told them."""

from __future__ import annotations

import pytest

from spark_mv.spark.session.job_names import label

pytestmark = pytest.mark.unit


class _Context:
    def __init__(self) -> None:
        self.set: dict[str, str | None] = {}

    def setLocalProperty(self, key: str, value: str | None) -> None:
        self.set[key] = value


class _Session:
    def __init__(self) -> None:
        self.sparkContext = _Context()


def test_group_and_description() -> None:
    session = _Session()
    label(session, "model.shop.orders")
    assert session.sparkContext.set == dict.fromkeys(
        ("spark.jobGroup.id", "spark.job.description"), "dbt model.shop.orders"
    )
    label(session, None)
    assert set(session.sparkContext.set.values()) == {None}


def test_a_name_that_cannot_be_told_stops_nothing() -> None:
    label(object(), "model.shop.orders")
