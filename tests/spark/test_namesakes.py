"""Nodes of a project that would write one table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.adapter.namesakes import namesakes, other_models
from spark_mv.spark.run.own_name import refuse_namesake

pytestmark = pytest.mark.unit


def node(alias: str, schema: str = "s", kind: str = "model", materialized: str = "table") -> dict[str, Any]:
    return {
        "alias": alias,
        "schema": schema,
        "database": None,
        "resource_type": kind,
        "config": {"materialized": materialized},
    }


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (node("FOO"), {"table": "other"}),
        (node("Foo", schema="S"), {"table": "other"}),
        (node("foo", kind="seed", materialized="seed"), {"table": "other"}),
        (node("foo", schema="elsewhere"), {}),
        (node("foo", materialized="ephemeral"), {}),
        (node("foo", kind="test", materialized="test"), {}),
        (node("Foo__STATE"), {"state": "other"}),
        (node("foo__state_2"), {}),
    ],
)
def test_namesakes(other: dict[str, Any], expected: dict[str, str]) -> None:
    assert namesakes("own", {"own": node("foo", materialized="nondeterministic_mv"), "other": other}) == expected
    assert namesakes("unknown", {"other": other}) == {}


def test_a_model_of_such_a_name_is_refused() -> None:
    invocation: Any = SimpleNamespace(name="m", identifier="foo", namesakes={"table": "model.p.Foo2"})
    with pytest.raises(
        RefusedError, match=r"OWN_NAME.*model m: its table is called foo.*model\.p\.Foo2.*another alias"
    ):
        refuse_namesake(invocation, "table", invocation.identifier)


def test_other_models_of_the_kind() -> None:
    kind = "nondeterministic_mv"
    nodes = {"own": node("a", materialized=kind), "b": node("b", materialized=kind), "c": node("c"), "d": {}}
    assert other_models("own", nodes) == ["b"]
