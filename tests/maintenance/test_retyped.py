"""A column that gets a type to which the table's values cannot be cast starts anew; all others are cast."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.columns import ColumnPlan, plan_columns
from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

WAS = (Column("id", "bigint"), Column("z", "double"), Column("f", "double"))


def planned(policy: str = "sync_all_columns", now: str = "date") -> ColumnPlan:
    config = read_config("m", {"unique_key": "id", "freeze": ["f"], "on_schema_change": policy})
    analysis = analyze(
        "SELECT id, x AS z, x AS f FROM t", unique_key=["id"], freeze=["f"], schemas={"t": {"id": "bigint", "x": now}}
    )
    query = (Column("id", "bigint"), Column("z", now), Column("f", now))
    target = TargetFacts(exists=True, ours=True, columns=WAS, uncastable=frozenset({("double", "date")}))
    return plan_columns(analysis, query, target, config, None)


def test_no_value_is_cast_that_cannot_be() -> None:
    plan = planned()
    assert [(c.name, c.type, c.in_target, c.retyped) for c in plan.columns] == [
        ("id", "bigint", True, False),
        ("z", "date", False, False),
        ("f", "date", False, False),
    ]
    assert (plan.replace, plan.problems) == (True, ())
    assert plan.drawn_anew == {"f": "what it was, double, cannot be cast to date"}
    cast = planned(now="float")
    assert [(c.name, c.in_target, c.retyped) for c in cast.columns[1:]] == [("z", True, True), ("f", True, True)]
    assert cast.drawn_anew == {}


@pytest.mark.parametrize("policy", ["ignore", "append_new_columns", "fail"])
def test_where_the_table_s_types_are_to_stay(policy: str) -> None:
    (problem,) = planned(policy).problems
    assert "full-refresh" in problem and "z" in problem
    assert planned(policy, now="float").problems == () or policy == "fail"
