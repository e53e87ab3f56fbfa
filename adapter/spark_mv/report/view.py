"""From facts to what the page shows: texts and numbers in their places, nothing to decide any more."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from spark_mv.report.charts import Chart, model_charts, project_charts
from spark_mv.report.condition import Condition, Health, instant
from spark_mv.report.facts import AiUse, ModelFacts, ProjectFacts, RunRow
from spark_mv.report.quality import QualityView, quality
from spark_mv.report.sql_places import Judged, judged
from spark_mv.report.status import judged as judged_models
from spark_mv.report.words import NOTHING, ago, count, cut, first_line, moment, money, plain, span

MOST_RUNS = 200
"""Rows of a table of runs; all of them are in mv_runs."""
TONES = {
    Condition.FAILED: "bad",
    Condition.AI_ERRORS: "bad",
    Condition.NEVER_RUN: "warn",
    Condition.FOREIGN: "warn",
    Condition.DUE: "next",
    Condition.PENDING: "next",
    Condition.FRESH: "good",
}


@dataclass(frozen=True)
class Moment:
    """An instant for people, and for machines (ISO 8601; empty: none)."""

    text: str
    iso: str = ""
    away: str = ""


@dataclass(frozen=True)
class RunView:
    """One line of the table of runs. `others`: strategies that were not taken, with the reasons; `numbers`: of RUN_NUMBERS, each
    with what stands below it."""

    started: Moment
    as_of: str
    failed: bool
    strategy: str
    reasons: str
    others: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, str], ...]
    message: str


RUN_NUMBERS = ("time", "rows to read", "inserted", "updated", "deleted", "kept", "AI calls", "cost")


@dataclass(frozen=True)
class SourceView:
    """What a model reads; `version` as its last run read it."""

    name: str
    kind: str
    version: str
    at: str
    rows: str


@dataclass(frozen=True)
class ModelView:
    """A section of the page."""

    anchor: str
    name: str
    relation: str
    description: str
    condition: str
    tone: str
    sentence: str
    last: Moment
    strategy: str
    rows: str
    upcoming: Moment
    calls: str
    cost: str
    waiting: str
    error: str
    figures: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    strategies: tuple[tuple[str, str, str], ...]
    runs: tuple[RunView, ...]
    more_runs: int
    ai: tuple[tuple[str, ...], ...]
    shared: bool
    sources: tuple[SourceView, ...]
    read_by: tuple[str, ...]
    judged: Judged
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    project: str
    target: str
    connection: str
    zone: str
    read_at: Moment
    states: tuple[tuple[str, str, int], ...]
    models: tuple[ModelView, ...]
    charts: tuple[Chart, ...]
    totals: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    quality: tuple[tuple[Moment, QualityView], ...]


def page_view(project: ProjectFacts) -> PageView:
    """As of the instant at which the facts were read, so that equal facts give equal pages."""
    now, zone = project.read_at, project.time_zone
    found = judged_models(project, now)
    own, shared = _attributed(project)
    models = tuple(
        _model(f"model-{n}", model, health, own.get(model.unique_id, ()), model.unique_id in shared, project)
        for n, (model, health) in enumerate(found, start=1)
    )
    states = Counter((health.condition, TONES[health.condition]) for _, health in found)
    runs = [run for model in project.models for run in model.runs]
    return PageView(
        project=plain(project.name),
        target=plain(project.target),
        connection=plain(project.connection),
        zone=plain(zone),
        read_at=_moment(now, now, zone),
        states=tuple((c.value, tone, n) for (c, tone), n in sorted(states.items(), key=lambda pair: pair[0][0].rank)),
        models=models,
        charts=project_charts([m for m, _ in found], project.ai, zone),
        totals=(
            ("models", count(len(models))),
            ("rows", count(sum(health.rows or 0 for _, health in found))),
            ("runs", count(len(runs))),
            ("failed runs", count(sum(run.failed for run in runs))),
            ("AI calls", count(sum(run.ai_calls or 0 for run in runs))),
            ("AI cost", money(sum(use.cost for use in project.ai))),
        ),
        notes=tuple(cut(note, 500) for note in project.notes),
        quality=tuple((_moment(one.at, now, zone), one) for one in quality(project.evaluations)),
    )


def _attributed(project: ProjectFacts) -> tuple[Mapping[str, Sequence[AiUse]], frozenset[str]]:
    """Answers of each model, and the models that asked in an invocation together with others: ai_results knows invocations,
    so that what several models asked for in one of them is nobody's alone."""
    asking: dict[str, set[str]] = defaultdict(set)
    for model in project.models:
        for run in model.runs:
            if run.ai_calls:
                asking[run.invocation_id].add(model.unique_id)
    own: dict[str, list[AiUse]] = defaultdict(list)
    for use in project.ai:
        names = asking.get(use.invocation_id, set())
        if len(names) == 1:
            own[next(iter(names))].append(use)
    return own, frozenset(name for names in asking.values() if len(names) > 1 for name in names)


def _model(
    anchor: str, model: ModelFacts, health: Health, ai: Sequence[AiUse], shared: bool, project: ProjectFacts
) -> ModelView:
    now, zone = project.read_at, project.time_zone
    paid: dict[str, float] = defaultdict(float)
    for use in ai:
        paid[use.invocation_id] += use.cost
    last, record = health.last, model.record
    upcoming = Moment("at every run") if health.follows_clock else _moment(health.next_change, now, zone)
    calls = sum(run.ai_calls or 0 for run in model.runs)
    reused = sum(run.ai_reused or 0 for run in model.runs)
    succeeded = _moment(health.succeeded_at, now, zone)
    # a model that keeps nothing has lost nothing: a zero would look as if
    keeps = bool((record and record.kept) or (last and last.values_kept))
    return ModelView(
        anchor=anchor,
        name=plain(model.name),
        relation=plain(model.relation),
        description=cut(model.description, 1000),
        condition=health.condition.value,
        tone=TONES[health.condition],
        sentence=health.sentence,
        last=_moment(last.started_at if last else health.succeeded_at, now, zone),
        strategy=plain(last.strategy if last else record.strategy if record else NOTHING),
        rows=count(health.rows),
        upcoming=upcoming,
        calls=count(calls),
        cost=money(sum(use.cost for use in ai)) if ai else NOTHING,
        waiting=health.waiting,
        error=cut(last.message) if last and last.failed else "",
        figures=(
            ("rows", count(health.rows)),
            ("last success", succeeded.away or NOTHING),
            ("next change by the clock", upcoming.away or upcoming.text),
            *((("values kept by the last run", count(last.values_kept if last else None)),) if keeps else ()),
            ("AI calls, all runs", count(calls)),
            ("answered without a call", f"{reused / (calls + reused):.0%}" if calls + reused else NOTHING),
        ),
        settings=(
            ("unique_key", ", ".join(model.unique_key) or NOTHING),
            *((("freeze", ", ".join(model.freeze)),) if model.freeze else ()),
            *((name, cut(value, 200)) for name, value in sorted(model.settings.items())),
            ("as-of instant", moment(instant(record.as_of), zone) if record else NOTHING),
            ("file", model.path or NOTHING),
            ("table version", count(model.version)),
        ),
        strategies=_strategies(model.runs),
        runs=tuple(_run(run, paid, now, zone) for run in model.runs[:MOST_RUNS]),
        more_runs=max(0, len(model.runs) - MOST_RUNS),
        ai=_ai(ai),
        shared=shared,
        sources=_sources(model),
        read_by=model.read_by,
        judged=judged(model, project),
        charts=model_charts(model, paid, zone),
    )


def _moment(at: float | None, now: float, zone: str) -> Moment:
    if at is None:
        return Moment(NOTHING)
    iso = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")
    return Moment(moment(at, zone), iso, ago(at, now))


def _run(run: RunRow, paid: Mapping[str, float], now: float, zone: str) -> RunView:
    expected = "" if run.estimated_seconds is None else f"expected {span(run.estimated_seconds)}"
    cost = paid.get(run.invocation_id) if run.ai_calls else None
    return RunView(
        started=_moment(run.started_at, now, zone),
        as_of=moment(run.as_of, zone),
        failed=run.failed,
        strategy=plain(run.strategy) or NOTHING,
        reasons=plain(run.reasons),
        others=_others(run),
        numbers=(
            (span(run.seconds), expected),
            (count(run.estimated_cost), ""),
            (count(run.rows_inserted), ""),
            (count(run.rows_updated), ""),
            (count(run.rows_deleted), f"{count(run.rows_evicted)} evicted" if run.rows_evicted else ""),
            (count(run.values_kept), ""),
            (count(run.ai_calls), f"{count(run.ai_reused)} reused" if run.ai_reused else ""),
            (money(cost), ""),
        ),
        message=cut(run.message, 1500) if run.failed else first_line(run.message),
    )


def _others(run: RunRow) -> tuple[tuple[str, str], ...]:
    """Strategies with what was said of each; nothing where the recorded text is none that can be read."""
    try:
        found = json.loads(run.candidates) if run.candidates else []
        return tuple(
            (
                plain(str(c["strategy"])),
                first_line("; ".join(str(r["sentence"]) for r in c["reasons"]) or ("possible" if c["applies"] else "no"), 400)
                + (f" (estimate {count(float(c['cost']))})" if c.get("cost") else ""),
            )
            for c in found
        )  # fmt: skip
    except (ValueError, TypeError, KeyError):
        return ()


def _strategies(runs: Sequence[RunRow]) -> tuple[tuple[str, str, str], ...]:
    """Each strategy with its number of runs and their median time."""
    times: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if not run.failed:
            times[run.strategy].append(run.seconds or 0)
    ordered = sorted(times.items(), key=lambda pair: -len(pair[1]))
    return tuple((plain(name), count(len(some)), span(sorted(some)[len(some) // 2])) for name, some in ordered)


def _ai(ai: Sequence[AiUse]) -> tuple[tuple[str, ...], ...]:
    """By function, model and status: answers, attempts, tokens in and out, cost."""
    sums: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0] * 5)
    for use in ai:
        name = f"{use.model} {use.model_version}".strip()
        values = (use.answers, use.attempts, use.input_tokens, use.output_tokens, use.cost)
        sums[use.function, name, use.status] = [
            a + b for a, b in zip(sums[use.function, name, use.status], values, strict=True)
        ]
    return tuple((*map(plain, key), *map(count, row[:4]), money(row[4])) for key, row in sorted(sums.items()))


def _sources(model: ModelFacts) -> tuple[SourceView, ...]:
    record = model.record
    versions = {name.lower(): (name, version) for name, version in (record.sources if record else {}).items()}
    rows = {name.lower(): number for name, number in (record.source_rows if record else {}).items()}
    kinds = {name.lower(): (name, kind) for name, kind in model.reads.items()}
    found = []
    for key in sorted({*versions, *kinds}):
        name, kind = kinds.get(key, (versions[key][0] if key in versions else key, "table"))
        version = versions[key][1] if key in versions else None
        at = f"{version.timestamp[:19]} UTC" if version else ""
        found.append(
            SourceView(
                plain(name), plain(kind), count(version.version if version else None), plain(at), count(rows.get(key))
            )
        )
    return tuple(found)  # fmt: skip
