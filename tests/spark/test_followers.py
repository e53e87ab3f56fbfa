"""Who reads a model's changes."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.spark.adapter.followers import followed

pytestmark = pytest.mark.unit


def node(kind: str, *reads: str) -> dict[str, Any]:
    return {"config": {"materialized": kind}, "depends_on": {"nodes": [*reads]}}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({"b": ("table", "a")}, False),
        ({"b": ("nondeterministic_mv", "a")}, True),
        ({"b": ("view", "a"), "c": ("table", "b")}, False),
        # through views, in whatever order the graph names them
        ({"d": ("nondeterministic_mv", "c"), "c": ("ephemeral", "b"), "b": ("view", "a")}, True),
        ({"b": ("table", "a"), "c": ("nondeterministic_mv", "b")}, False),
        ({"b": ("incremental", "a"), "t": ("test", "a"), "c": ("nondeterministic_mv", "x")}, False),
    ],
)
def test_followed(kinds: dict[str, tuple[str, ...]], expected: bool) -> None:
    nodes = {"a": node("nondeterministic_mv"), **{name: node(*words) for name, words in kinds.items()}}
    assert followed("a", nodes) is expected


def test_a_model_does_not_follow_itself() -> None:
    assert not followed("a", {"a": node("nondeterministic_mv", "x"), "s": {"config": None, "depends_on": None}})
