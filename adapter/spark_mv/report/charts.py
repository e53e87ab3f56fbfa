"""Charts as Vega-Lite specifications: pure data. Colours are names that the page's style gives for light and dark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from spark_mv.report.facts import AiUse, ModelFacts, RunRow
from spark_mv.report.words import count, moment, money, span

MOST_BARS = 90
"""Runs in one chart: older ones are in the tables only."""
Values = Sequence[Mapping[str, Any]]
Read = Callable[[RunRow], float | None]


@dataclass(frozen=True)
class Chart:
    """`summary` says in words what is to be seen: for those who do not see it."""

    title: str
    summary: str
    spec: Mapping[str, Any]


def model_charts(model: ModelFacts, paid: Mapping[str, float], zone: str) -> tuple[Chart, ...]:
    """Of one model's runs, oldest first: rows, time, what was estimated, AI calls, cost. None of what never was."""
    runs = list(reversed(model.runs[:MOST_BARS]))
    names = [f"{n:05d} {moment(run.started_at, zone)}" for n, run in enumerate(runs)]
    worked = [(name, run) for name, run in zip(names, runs, strict=True) if not run.failed]
    found = [
        _stacked("Rows written by each run", "rows", worked, {
            "inserted": lambda r: r.rows_inserted, "updated": lambda r: r.rows_updated,
            "deleted": lambda r: (r.rows_deleted or 0) - (r.rows_evicted or 0), "evicted": lambda r: r.rows_evicted,
        }),
        _seconds(names, runs),
        _single("Estimated cost of the chosen strategy", "rows to read", worked, lambda r: r.estimated_cost),
        _stacked("AI answers by each run", "answers", worked, {
            "asked": lambda r: r.ai_calls, "reused": lambda r: r.ai_reused, "errors": lambda r: r.ai_errors,
        }),
        _single("AI cost of each run", "cost", worked, lambda r: paid.get(r.invocation_id)),
    ]  # fmt: skip
    return tuple(chart for chart in found if chart is not None)


def project_charts(models: Sequence[ModelFacts], ai: Sequence[AiUse], zone: str) -> tuple[Chart, ...]:
    """Of all models, by day, or by week where there are many days: time that runs took, AI calls, cost."""
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    calls: dict[tuple[str, str], float] = defaultdict(float)
    for model in models:
        for run in model.runs:
            day = moment(run.started_at, zone)[:10]
            seconds[day, model.name] += run.seconds or 0
            calls[day, model.name] += run.ai_calls or 0
    cost: dict[tuple[str, str], float] = defaultdict(float)
    for use in ai:
        if use.called_at is not None:
            cost[moment(use.called_at, zone)[:10], use.model or "unnamed"] += use.cost
    found = [
        _over_time("Seconds that runs took, by", "seconds", seconds, "model"),
        _over_time("AI calls by", "calls", calls, "model"),
        _over_time("AI cost by", "cost", cost, "AI model"),
    ]
    return tuple(chart for chart in found if chart is not None)


def _over_time(title: str, unit: str, by_day: Mapping[tuple[str, str], float], by: str) -> Chart | None:
    """`by_day`: (day, kind) → value. What the chart leaves out for its age is not in its sum either."""
    period, sums = "day", by_day
    if len({day for day, _ in by_day}) > MOST_BARS:
        period, sums = "week", defaultdict(float)
        for (day, name), value in by_day.items():
            monday = date.fromisoformat(day) - timedelta(days=date.fromisoformat(day).weekday())
            sums[monday.isoformat(), name] += value
    starts = sorted({start for start, _ in sums})[-MOST_BARS:]
    shown = {(start, name): value for (start, name), value in sums.items() if start in starts}
    if not any(shown.values()):
        return None
    totals: dict[str, float] = defaultdict(float)
    for (_, name), value in shown.items():
        totals[name] += value
    first = sorted(totals, key=lambda name: (-totals[name], name))[:5]
    merged: dict[tuple[str, str], float] = defaultdict(float)
    for (start, name), value in shown.items():
        if value:
            merged[start, name if name in first else "all others"] += value
    values = [{"x": start, "kind": name, "y": value} for (start, name), value in sorted(merged.items())]
    kinds = [name for name in (*first, "all others") if any(v["kind"] == name for v in values)]
    said = money if unit == "cost" else count
    summary = (
        f"{_many(len(starts), period)}, from {starts[0]} to {starts[-1]}; in all {said(sum(totals.values()))} {unit}."
    )
    return Chart(f"{title} {period}", summary, _bars(values, unit, kinds, by, "datum.value"))


def _stacked(title: str, unit: str, runs: Sequence[tuple[str, RunRow]], kinds: Mapping[str, Read]) -> Chart | None:
    values = [
        {"x": name, "kind": kind, "y": read(run) or 0}
        for name, run in runs
        for kind, read in kinds.items()
        if read(run)
    ]
    if not values:
        return None
    sums = {kind: sum(read(run) or 0 for _, run in runs) for kind, read in kinds.items()}
    summary = (
        f"{_many(len(runs), 'run')}: "
        + ", ".join(f"{count(total)} {kind}" for kind, total in sums.items() if total)
        + "."
    )
    return Chart(title, summary, _bars(values, unit, [k for k in kinds if sums[k]], "kind", _TIME))


def _single(title: str, unit: str, runs: Sequence[tuple[str, RunRow]], read: Read) -> Chart | None:
    numbers = [number for _, run in runs if (number := read(run))]
    values = [{"x": name, "kind": unit, "y": read(run)} for name, run in runs if read(run)]
    if not values:
        return None
    said = money if unit == "cost" else count
    summary = f"{_many(len(values), 'run')}, between {said(min(numbers))} and {said(max(numbers))} {unit}."
    return Chart(title, summary, _bars(values, unit, [unit], "", _TIME))


def _seconds(names: Sequence[str], runs: Sequence[RunRow]) -> Chart | None:
    values: list[dict[str, Any]] = [
        {"x": name, "kind": "failed" if run.failed else run.strategy or "unknown", "y": run.seconds}
        for name, run in zip(names, runs, strict=True)
        if run.seconds is not None
    ]
    if not values:
        return None
    numbers = [run.seconds for run in runs if run.seconds is not None]
    kinds = sorted({str(v["kind"]) for v in values}, key=lambda kind: (kind == "failed", kind))
    summary = (
        f"{_many(len(values), 'run')}, between {span(min(numbers))} and {span(max(numbers))}, coloured by strategy."
    )
    spec = _bars(values, "seconds", kinds, "strategy", _TIME)
    expected: list[dict[str, Any]] = [
        {"x": name, "expected": run.estimated_seconds}
        for name, run in zip(names, runs, strict=True)
        if run.seconds is not None and run.estimated_seconds is not None
    ]
    if expected:
        most = max(e["expected"] for e in expected)
        summary = f"{summary} The line across a bar is what the run expected, {span(most)} at most."
        spec = _with_marks(spec, expected, "expected")
    return Chart("Time that each run took", summary, spec)


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _with_marks(spec: Mapping[str, Any], values: Values, name: str) -> dict[str, Any]:
    """The bars, and a line across each at the height that `name` says."""
    layer = {part: spec[part] for part in ("mark", "encoding")}
    y = {"field": name, "type": "quantitative"}
    lines = {
        "data": {"values": list(values)},
        "mark": {"type": "tick", "color": "var(--ink)", "thickness": 2},
        "encoding": {"x": {"field": "x", "type": "ordinal"}, "y": y, "tooltip": [{"field": name, "title": f"{name} seconds"}]},
    }  # fmt: skip
    return {**{part: spec[part] for part in spec if part not in layer}, "layer": [layer, lines]}


_TIME = "slice(datum.value, 11, 22)"
"""Of `00012 2026-02-14 06:00:00` the month, day, hour and minute."""


def _bars(values: Values, unit: str, kinds: Sequence[str], by: str, label: str) -> dict[str, Any]:
    colours = ["var(--bad)" if kind in ("failed", "errors") else f"var(--c{n % 6 + 1})" for n, kind in enumerate(kinds)]
    colour: dict[str, Any] = {"field": "kind", "type": "nominal", "scale": {"domain": list(kinds), "range": colours}}
    colour["legend"] = (
        {"title": None, "orient": "top", "symbolType": "square", "columns": 4} if len(kinds) > 1 else None
    )
    at = {"field": "x", "title": "run" if label == _TIME else "day"}
    tooltip = [at, {"field": "y", "title": unit}] + ([{"field": "kind", "title": by}] if len(kinds) > 1 else [])
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": 150,
        "data": {"values": list(values)},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "x",
                "type": "ordinal",
                "title": None,
                "axis": {"labelAngle": 0, "labelOverlap": "greedy", "labelExpr": label, "labelSeparation": 12, "ticks": False},
                "scale": {"paddingInner": 0.25, "paddingOuter": max(0.1, (10 - len({v["x"] for v in values})) / 2)},
            },
            "y": {"field": "y", "type": "quantitative", "title": unit, "axis": {"tickCount": 4}},
            "color": colour,
            "tooltip": tooltip,
        },
    }  # fmt: skip
