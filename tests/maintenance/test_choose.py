"""Which strategy is taken: the one that is expected to be done first, and what the line says of one that is slower than before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan_cases import plan_of
from test_marts import SPEC, case_of

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.steps.fixed_cost import fixed_units

pytestmark = pytest.mark.unit

CUSTOMERS = SPEC["marts"]["customers"]


def day(times: int, **more: Any) -> dict[str, Any]:
    """A day of the customers mart in a shop so many times as large."""
    case = case_of(CUSTOMERS, SPEC["changed"])
    case["rows"] *= times
    case["source_rows"] = {name: rows * times for name, rows in case["source_rows"].items()}
    case["config"] = {"choose_by": "seconds", **more.pop("config", {})}
    return {**case, **more}


def seconds(case: dict[str, Any]) -> dict[str, float]:
    return {c.strategy: c.seconds for c in plan_of(case).candidates if c.seconds is not None}


def test_a_small_table_is_recomputed_and_a_large_one_followed() -> None:
    """By rows, following what changed is the cheaper way at every size: it was taken, and took twice the time."""
    assert plan_of(day(1, config={"choose_by": "rows"})).strategy == "GROUP_AGGREGATE"
    assert plan_of(day(1)).strategy == "COMPLETE_RECOMPUTE"
    assert plan_of(day(100)).strategy == "GROUP_AGGREGATE"
    small = seconds(day(1))
    assert 0.5 < small["COMPLETE_RECOMPUTE"] < small["GROUP_AGGREGATE"] < 6


def test_statements_that_are_quick_in_this_session_are_worth_more_of_them() -> None:
    large = day(15)
    assert plan_of(large).strategy == "COMPLETE_RECOMPUTE"
    assert plan_of({**large, "facts": {"fixed_seconds": 0.05}}).strategy == "GROUP_AGGREGATE"
    assert plan_of({**large, "record": {"pace": {"FIXED": 0.05}}}).strategy == "GROUP_AGGREGATE"


def test_what_the_user_asked_for_wins() -> None:
    plan = plan_of(day(1, config={"refresh": "incremental"}))
    assert (plan.strategy, plan.remark, plan.fallback) == ("GROUP_AGGREGATE", "", None)


def test_the_record_says_what_was_expected() -> None:
    plan = plan_of(day(100))
    assert plan.record is not None and plan.chosen is not None
    assert (plan.record.cost, plan.record.units) == (plan.chosen.cost, plan.chosen.units)
    assert plan.record.units and plan.record.pace["FIXED"] > 0
    behind = plan.fallback and plan.fallback.record
    assert behind is not None and behind.cost != plan.record.cost


LAST = {"strategy": "GROUP_AGGREGATE", "started_at": "2026-02-01 11:00:00.000000"}
AT = {"record_at": "2026-02-01 11:00:00.400000"}


def test_a_recompute_that_takes_longer_than_the_last_run_says_why() -> None:
    slower = plan_of(day(1, record=LAST, target=AT))
    assert slower.strategy == "COMPLETE_RECOMPUTE"
    assert slower.remark.startswith("recomputed completely, about ")
    assert "(the last run, GROUP_AGGREGATE, took 0.4 s): GROUP_AGGREGATE is estimated at " in slower.remark
    changed = plan_of(day(100, record={**LAST, "query": "another"}, target=AT))
    assert changed.remark.endswith("the model's SQL changed")


def test_a_recompute_like_the_last_or_quicker_says_nothing() -> None:
    assert plan_of(day(1)).remark == ""
    assert plan_of(day(1, record=LAST, target={"record_at": "2026-02-01 11:01:00.000000"})).remark == ""
    assert plan_of(day(100, record=LAST, target=AT)).remark == ""


def test_fixed_cost_counts_what_is_sure_to_be_sent() -> None:
    stage = Step("stage_changes", {"query": "select * from a join (select 1 from b) x on true"})
    publish = Step("append", {}), Step("merge_into", {})
    assert fixed_units((stage, *publish)) == 3.25
    assert fixed_units((stage, *publish, stage)) == 4.5
    assert fixed_units((stage, replace(stage, kind="ai_round"))) is None


ONLY: dict[str, Any] = {
    "sql": "select id, x from t",
    "columns": {"id": "bigint", "x": "int"},
    "config": {"refresh": "incremental"},
}


@pytest.mark.parametrize(
    "asked",
    [
        {"record": {"ai_pending": 3}},
        {"target": {"ask_again": "now"}},
        {"target": {"forget": [{"id": "1", "columns": ["x"]}]}},
    ],
)
def test_incremental_takes_a_recompute_for_what_is_to_come(asked: dict[str, Any]) -> None:
    """Refused, the values would not come until the table is made anew."""
    case = {**ONLY, **asked}
    assert plan_of(case).strategy == "COMPLETE_RECOMPUTE"
    with pytest.raises(RefusedError, match="QUERY_CHANGED"):
        plan_of({**case, "record": {**case.get("record", {}), "query": "another"}})
