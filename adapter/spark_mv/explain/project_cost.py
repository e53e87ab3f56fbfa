"""What `spark-mv cost` says: calls, tokens and money of the next run of each model, by column, and what budgets leave of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spark_mv.ai.forecast import CallForecast
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.project_budget import Spent, with_what_is_left
from spark_mv.ai.settings import PERIODS, AiSettings
from spark_mv.explain.ai_cost import cost_data, cost_lines, money_text

_SUMS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "cost")


def model_cost(
    name: str,
    settings: AiSettings | None,
    found: Sequence[CallForecast],
    counted: AiOutcome | None,
    spent: Mapping[str, Spent],
) -> dict[str, Any]:
    """Of one model, as JSON. `total` is what all calls would take that have no answer yet; `next_run`, what budgets let the next run
    spend of it: `cost` is the price of the way that the model asks in. Without `settings`, it calls no AI functions."""
    if settings is None:
        return {"model": name, "calls": []}
    in_batches = settings.mode == "batch"
    costs = [one.batch_cost if in_batches and one.batch_cost is not None else one.cost for one in found]
    total: dict[str, Any] = {what: sum(getattr(one, what) for one in found) for what in _SUMS[:-1]}
    total["cost"] = None if all(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs)
    return {
        "model": name,
        "calls": cost_data([one for one in found if one.calls]),
        "mode": settings.mode,
        "answered": counted.reused if counted else 0,
        "waiting": counted.blocked + counted.under_way if counted else 0,
        "total": total,
        "next_run": _within(settings, spent, found, total),
        "spent": {period: vars(used) for period, used in spent.items()},
        "budgets": {
            **{f"max_ai_{what}": getattr(settings, f"max_ai_{what}") for what in ("calls", "tokens", "cost")},
            **{
                f"max_ai_{what}_per_{period}": limit
                for period in PERIODS
                for what, limit in settings.of_period(period).items()
            },
        },
    }


def _within(
    settings: AiSettings, spent: Mapping[str, Spent], found: Sequence[CallForecast], total: Mapping[str, Any]
) -> dict[str, Any]:
    """What of the total the tightest budget lets through. A cascade takes as many requests as its forecast says."""
    left = with_what_is_left(settings, spent)
    requests = sum(
        sum(one.cascade.expected or (one.cascade.most_requests,)) if one.cascade else one.calls for one in found
    )
    wanted = {"calls": requests, "tokens": total["input_tokens"] + total["output_tokens"], "cost": total["cost"] or 0.0}
    shares = {
        what: limit / wanted[what]
        for what in wanted
        if (limit := getattr(left, f"max_ai_{what}")) is not None and wanted[what] > limit
    }
    share = min(shares.values(), default=1.0)
    what = min(shares, key=lambda one: shares[one]) if shares else None
    return {
        "calls": int(total["calls"] * share),
        "tokens": int(wanted["tokens"] * share),
        "cost": None if total["cost"] is None else total["cost"] * share,
        "stopped_by": None if what is None else _name(what, settings, spent, left),
    }


def _name(what: str, settings: AiSettings, spent: Mapping[str, Spent], left: AiSettings) -> str:
    """The budget that ends the run."""
    limit = getattr(left, f"max_ai_{what}")
    for period, used in spent.items():
        of_period = settings.of_period(period)[what]
        if of_period is not None and max(0, of_period - getattr(used, what)) == limit:
            return f"max_ai_{what}_per_{period}"
    return f"max_ai_{what}"


def costs_text(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The models with something to ask, each with its table, and the sum; then the others."""
    models = sorted(found.values(), key=lambda one: str(one["model"]))
    lines: list[str] = []
    for one in models:
        if due := [CallForecast(**_call(call)) for call in one.get("calls", ())]:
            lines += [f"{one['model']}: {_model_line(one)}", *cost_lines(due), *_budget_lines(one), ""]
    asking = [one for one in models if one.get("calls")]
    if len(asking) > 1:
        lines += [f"together: {_sum_line([one['next_run'] for one in asking])}", _TWICE, ""]
    if quiet := [str(one["model"]) for one in models if "error" not in one and not one.get("calls")]:
        lines += [f"nothing to ask: {', '.join(quiet)}"]
    lines += [f"{one['model']}: {one['error']}" for one in models if "error" in one]
    return "\n".join(lines).rstrip() or "the project has no nondeterministic_mv"


_TWICE = (
    "  An input that two models ask about is counted with both and paid once; models see their sources as they are now."
)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    from spark_mv.ai.forecast import Range

    return {**call, "cascade": None if call["cascade"] is None else Range(**call["cascade"])}


def _model_line(one: Mapping[str, Any]) -> str:
    total = one["total"]
    said = f"{total['calls']:,} AI calls without an answer, {one['answered']:,} with one"
    if one["waiting"]:
        said += f", {one['waiting']:,} that wait"
    money = (
        ""
        if total["cost"] is None
        else f"; {money_text(total['cost'])}{' in batches' if one['mode'] == 'batch' else ''}"
    )
    return f"{said}{money}"


def _budget_lines(one: Mapping[str, Any]) -> list[str]:
    lines = []
    for period, used in one["spent"].items():
        limits = [
            f"{_figure(what, used[what])} of {_figure(what, limit)} {what}"
            for what in ("calls", "tokens", "cost")
            if (limit := one["budgets"][f"max_ai_{what}_per_{period}"]) is not None
        ]
        lines.append(f"  spent of the project's {period}: {', '.join(limits)}")
    if stopped := one["next_run"]["stopped_by"]:
        lines.append(f"  the next run: {_sum_line([one['next_run']])}, then {stopped} is used up")
    return lines


def _sum_line(runs: Sequence[Mapping[str, Any]]) -> str:
    costs = [run["cost"] for run in runs if run["cost"] is not None]
    money = f", {money_text(sum(costs))}" if costs else ""
    return f"about {sum(run['calls'] for run in runs):,} calls, {sum(run['tokens'] for run in runs):,} tokens{money}"


def _figure(what: str, value: float) -> str:
    return money_text(value) if what == "cost" else f"{value:,.0f}"


def costs_json(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The models by unique_id."""
    return json.dumps(found, indent=2, sort_keys=True)
