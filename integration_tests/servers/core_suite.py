"""The core suite: a project of small models lives through some days, by any way in which dbt reaches Spark (ways.py); what holds is counted.

`CORE_MODELS=drawn,joined` takes these models alone.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from integration_tests.servers.conftest import Project
from integration_tests.servers.core_models import CHANGES, EDITED, MODELS, MV, PEOPLE, TABLES, CoreModel

SCHEMA = "core"
_ASKED = os.environ.get("CORE_MODELS", "").split(",")
OFFERED = tuple(model for model in MODELS if model.name in _ASKED or _ASKED == [""])
_FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
ADAPTER_ONLY = ("NEEDS_ADAPTER", "needs the adapter")


@dataclass
class Outcome:
    """What was looked at: (step, model, question) → why it failed, "" where it held. `refused`: models that this way says it does not offer."""

    looked_at: dict[tuple[str, str, str], str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> dict[tuple[str, str, str], str]:
        return {place: why for place, why in self.looked_at.items() if why}

    @property
    def counts(self) -> str:
        passed = len(self.looked_at) - len(self.failed)
        return f"{passed} passed, {len(self.failed)} failed, {len(self.refused)} models refused"


def files(table_format: str) -> dict[str, str]:
    """The project's files beside its profile."""
    project = {
        "name": "demo",
        "version": "1.0",
        "profile": "demo",
        "flags": {"send_anonymous_usage_stats": False},
        "models": {"+file_format": table_format},
        "seeds": {"+file_format": table_format},
    }
    models = {f"models/{model.name}.sql": model.file for model in OFFERED}
    return {"dbt_project.yml": json.dumps(project), "seeds/people.csv": PEOPLE, **models}


def target(**connection: Any) -> dict[str, Any]:
    """An output of the profile: how to connect, and answers that are made from the texts."""
    ai = {"provider": "scripted", "model": "m", "ask_from": "driver"}
    calm = {"choose_by": "rows", "second_reading": False, "run_history": False}
    return {"type": "spark_mv", "schema": SCHEMA, "threads": 2, "ai": ai, **calm, **connection}


def set_up(table_format: str) -> list[dict[str, Any]]:
    """Steps that make what stands beside the models."""
    properties = _FEED if table_format == "delta" else ""
    tables = [text.format(s=SCHEMA, format=table_format, properties=properties) for text in TABLES]
    return [{"dbt": ["seed"]}, *({"sql": text} for text in tables)]


def live(
    project: Project, models: Iterable[CoreModel] = OFFERED, make: Iterable[dict[str, Any]] = (), target: str = "dev"
) -> Outcome:
    """Three days of the models, the third also rebuilt, in one process of dbt."""
    offered, outcome = list(models), Outcome()
    mvs = ["--select", "config.materialized:" + MV]
    days = [
        ("first run", [], "2026-02-01", []),
        ("again", [], "2026-02-01", mvs),
        ("changed", [{"sql": text.format(s=SCHEMA)} for text in CHANGES], "2026-02-02", []),
        ("later", [], "2026-02-04", mvs),
        ("rebuilt", [], "2026-02-04", ["--full-refresh", *mvs]),
    ]
    steps = list(make)
    looks = []
    for _, before, today, words in days:
        said = json.dumps({"as_of": f"{today} 06:00:00"})
        kept = {model.name: model.kept_values(SCHEMA) for model in offered if model.kept}
        at = len(steps) + len(before)
        steps += [
            *before,
            {"dbt": ["run", *words, "--vars", said], "target": target},
            {"queries": {model.name: model.rows(SCHEMA) for model in offered}},
            {"queries": {model.name: model.wanted(SCHEMA, today) for model in offered}},
            {"queries": kept},
        ]
        looks.append(at)
    found = project.run(*steps)
    for at, step in zip(found, steps, strict=True):
        assert not (isinstance(at, dict) and step.get("dbt") == ["seed"]) or at["success"], at
    earlier: dict[str, dict[str, str]] = {}
    for (name, _, _, words), at in zip(days, looks, strict=True):
        ran, rows, wanted, values = found[at : at + 4]
        for model in offered:
            if words and model.materialized != MV:
                continue
            _look(outcome, name, model, ran, rows[model.name], wanted[model.name])
            if model.kept and not isinstance(values[model.name], str):
                now = {row[1]: row[2] for row in values[model.name]}
                _compare(outcome, name, model, earlier.get(model.name, {}), now)
                earlier[model.name] = now
    return outcome


def _look(outcome: Outcome, step: str, model: CoreModel, ran: dict[str, Any], rows: Any, wanted: Any) -> None:
    node = ran["nodes"].get(model.name)
    message = str(node["message"]) if node else ran["error"] or "did not run"
    if any(words in message for words in ADAPTER_ONLY):
        outcome.refused[model.name] = message
        return
    if node is None or node["status"] != "success":
        outcome.looked_at[step, model.name, "runs"] = message
        return
    outcome.looked_at[step, model.name, "runs"] = ""
    differ = [one for one in (rows, wanted) if isinstance(one, str)]
    if not differ:
        found, right = (Counter(row[1] for row in one) for one in (rows, wanted))
        differ = [f"more: {found - right}"] * bool(found - right) + [f"less: {right - found}"] * bool(right - found)
    outcome.looked_at[step, model.name, "is the query"] = "; ".join(differ)
    if step == "again":
        code = node["response"].get("code")
        outcome.looked_at[step, model.name, "nothing to do"] = "" if code == "NO_OP" else f"{code}"


def _compare(outcome: Outcome, step: str, model: CoreModel, before: dict[str, str], now: dict[str, str]) -> None:
    """Kept values of keys that were there before."""
    if not before:
        return
    wrong = []
    for key in before.keys() & now.keys():
        edited = step == "changed" and key in EDITED
        moved = before[key] != now[key]
        if edited and model.edited == "either":
            continue
        if moved != (edited and model.edited == "redrawn"):
            wrong.append(f"{key}: {before[key]}, {now[key]}")
    outcome.looked_at[step, model.name, "keeps"] = "; ".join(wrong)
