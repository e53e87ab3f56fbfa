"""The arguments of a step as the macros see them: relations by their names, columns with the texts that are said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from spark_mv.maintenance.columns import StagedColumn
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.steps.kinds import RELATIONS, TEXTS
from spark_mv.maintenance.steps.stage_texts import differences, staging
from spark_mv.query.syntax.reserved import filled


def step_args(step: Step, relations: Mapping[str, str]) -> dict[str, Any]:
    """`relations`: the rendered name of each symbolic relation."""
    args = _named(step.args, relations)
    if step.kind == "stage_changes":
        args |= staging(step.args)
    if step.kind.startswith("audit_") and "columns" in step.args:
        args |= differences(step.args["columns"])
    if "inline" in step.args:
        args["inline"] = _named(step.args["inline"], relations) | staging(step.args["inline"])
    if step.args.get("into") == "state":
        args["into"] = "state"
    return args


def _named(given: Mapping[str, Any], relations: Mapping[str, str]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for name, value in given.items():
        if name in RELATIONS and isinstance(value, str) and not (name == "target" and value not in relations):
            args[name] = relations[value]
        elif name in (*TEXTS, "target") and isinstance(value, str):
            args[name] = filled(value, relations)
        elif name == "calls":
            args[name] = tuple(replace(c, request_sql=filled(c.request_sql, relations)) for c in value)
        elif isinstance(value, tuple) and value and isinstance(value[0], StagedColumn):
            args[name] = [{**asdict(column), "role": column.role.value} for column in value]
        else:
            args[name] = value
    return args
