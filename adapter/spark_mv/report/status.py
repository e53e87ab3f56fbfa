"""`spark-mv status`: all models on one screen, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from spark_mv.report.condition import Condition, Health, health
from spark_mv.report.facts import ModelFacts, ProjectFacts
from spark_mv.report.words import ago, count, first_line, plain

FORMAT_VERSION = 1
STYLES = {
    Condition.FAILED: "bold red",
    Condition.AI_ERRORS: "red",
    Condition.NEVER_RUN: "yellow",
    Condition.FOREIGN: "yellow",
    Condition.DUE: "cyan",
    Condition.PENDING: "cyan",
    Condition.FRESH: "green",
}
NEEDS_SOMEBODY = frozenset({Condition.FAILED, Condition.AI_ERRORS})
"""Conditions with which `spark-mv status` ends with exit status 1."""


@dataclass(frozen=True)
class Line:
    """One model's line; `style` is rich's."""

    model: str
    condition: str
    style: str
    last_run: str
    strategy: str
    rows: str
    next_change: str
    ai: str
    error: str


def judged(project: ProjectFacts, now: float) -> tuple[tuple[ModelFacts, Health], ...]:
    """Each model with how it fares, what needs somebody first, else by name."""
    found = [(model, health(model, now)) for model in project.models]
    return tuple(sorted(found, key=lambda pair: (pair[1].condition.rank, pair[0].name)))


def needs_somebody(project: ProjectFacts, now: float) -> bool:
    """Whether a model's last run failed or had AI calls without an answer."""
    return any(found.condition in NEEDS_SOMEBODY for _, found in judged(project, now))


def lines(project: ProjectFacts, now: float) -> tuple[Line, ...]:
    """For people. Control characters of names and messages are taken out: a terminal would obey them."""
    return tuple(_line(model, found, now) for model, found in judged(project, now))


def _line(model: ModelFacts, found: Health, now: float) -> Line:
    last = found.last
    at = last.started_at if last else found.succeeded_at
    upcoming = "at every run" if found.follows_clock else ago(found.next_change, now)
    return Line(
        model=plain(model.name),
        condition=found.condition.value,
        style=STYLES[found.condition],
        last_run=ago(at, now),
        strategy=plain(last.strategy if last else model.record.strategy if model.record else ""),
        rows=count(found.rows),
        next_change=upcoming,
        ai=found.waiting,
        error=first_line(last.message, 300) if last and last.failed else "",
    )


def status_data(project: ProjectFacts, now: float) -> dict[str, Any]:
    """Plain data; keys are stable within FORMAT_VERSION. Instants are ISO 8601 in UTC."""
    return {
        "format_version": FORMAT_VERSION,
        "project": project.name,
        "target": project.target,
        "read_at": _iso(project.read_at),
        "models": [_data(model, found) for model, found in judged(project, now)],
        "notes": list(project.notes),
    }


def status_json(project: ProjectFacts, now: float) -> str:
    """The same as text."""
    return json.dumps(status_data(project, now), indent=2, ensure_ascii=False)


def _data(model: ModelFacts, found: Health) -> dict[str, Any]:
    last = found.last
    return {
        "model": model.name,
        "unique_id": model.unique_id,
        "relation": model.relation,
        "condition": found.condition.value,
        "sentence": found.sentence,
        "rows": found.rows,
        "last_success": _iso(found.succeeded_at),
        "as_of": f"{model.record.as_of} UTC" if model.record else None,
        "next_change": _iso(found.next_change),
        "follows_clock": found.follows_clock,
        "ai_pending": found.ai_pending,
        "ai_errors": found.ai_errors,
        "last_run": None
        if last is None
        else {
            "started_at": _iso(last.started_at),
            "seconds": last.seconds,
            "status": last.status,
            "strategy": last.strategy,
            "reasons": last.reasons,
            "message": last.message,
        },
    }


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def notes(project: ProjectFacts) -> Sequence[str]:
    """What could not be read, for people."""
    return [first_line(note, 300) for note in project.notes]
