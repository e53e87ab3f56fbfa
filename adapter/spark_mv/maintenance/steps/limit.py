"""The step that stops a run which would change too many rows: behind the checks, before anything is published."""

from __future__ import annotations

from dataclasses import replace

from spark_mv.maintenance.plan import Plan, Step
from spark_mv.maintenance.row_limit import RowLimit
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.steps.kinds import KINDS


def limited(plan: Plan, limit: RowLimit | None) -> Plan:
    """The plan, and those behind it, with a look at the number of changed rows before the first step that publishes."""
    if limit is None or limit.everything or plan.record is None or plan.record.base_version is None:
        return plan
    fallback = limited(plan.fallback, limit) if plan.fallback is not None else None
    staged = next((s for s in plan.steps if s.kind == "stage_changes" and s.args["into"] == "stage"), None)
    there = (staged and staged.args["target"]) or "target"
    steps = [_counting(step, limit, there) for step in plan.steps]
    known = next((s.args.get("target_rows") for s in steps if "target_rows" in s.args), None)
    first = next((k for k, step in enumerate(steps) if _publishes(step, "target")), None)
    if first is not None:
        steps.insert(first, Step("check_limit", {"limit": limit.written}))
        # the state goes first: what changes in it would change in the table
        state = next((k for k, step in enumerate(steps[:first]) if _publishes(step, "state")), None)
        if state is not None:
            of_state = {"limit": limit.written, "target": "target", "rows_before": known}
            steps.insert(state, Step("check_limit", of_state, when=When.STATE_UPDATED))
    return replace(plan, steps=tuple(steps), fallback=fallback)


def _publishes(step: Step, relation: str) -> bool:
    return KINDS[step.kind].publishes and step.args["relation"] == relation


def _counting(step: Step, limit: RowLimit, there: str) -> Step:
    """The step, marking the rows whose values change, or counting them and the rows of the relation `there`, the table
    before the run."""
    if step.kind == "stage_changes" and step.args["into"] == "stage":
        return replace(step, args={**step.args, "marks": True})
    if step.kind == "check_stage" and step.args["stage"] == "stage":
        staged = "inline" not in step.args and "sure" not in step.args
        unknown = limit.share is not None and step.args["target_rows"] is None
        count = there if unknown else step.args.get("count_target")
        return replace(step, args={**step.args, "marks": staged, "count_target": count})
    return step
