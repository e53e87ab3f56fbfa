"""What dbt itself wrote of its last run (`target/run_results.json`): the runs that failed before this materialization heard of them, in Jinja, in a
hook or in the model's contract, and so are no rows of `mv_runs`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from spark_mv.report.facts import RunRow

RUNS_MODELS = frozenset({"build", "retry", "run"})
"""dbt's commands whose results of a model are those of a run of it."""


@dataclass(frozen=True)
class Failure:
    """A model that did not run, and the table that it was to write, as dbt renders it (empty: an older dbt does not say)."""

    run: RunRow
    relation: str = ""


def failures(text: str) -> dict[str, Failure]:
    """By unique_id, from the text of the file; none where it is of another command, or no such file at all."""
    try:
        data = json.loads(text)
        if data["args"]["which"] not in RUNS_MODELS:
            return {}
        return {
            str(one["unique_id"]): _failure(one, data["metadata"])
            for one in data["results"]
            if one["status"] == "error"
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def _failure(result: Mapping[str, Any], metadata: Mapping[str, Any]) -> Failure:
    started = [_seconds(step["started_at"]) for step in result["timing"] if step.get("started_at")]
    row = RunRow(
        started_at=max(started, default=_seconds(metadata["generated_at"])),
        status="error",
        seconds=float(result["execution_time"]),
        invocation_id=str(metadata["invocation_id"]),
        message=str(result["message"] or ""),
    )
    return Failure(row, str(result.get("relation_name") or ""))


def with_failure(
    runs: Sequence[RunRow], failure: Failure | None, relation: str, recorded_at: float | None
) -> tuple[RunRow, ...]:
    """The runs, newest first, and the failure where none of them is about it, and nothing has come after it: neither a run nor a commit
    (`recorded_at`, in seconds) of a model whose runs are not kept."""
    if failure is None or failure.relation not in ("", relation):
        return tuple(runs)
    at = failure.run.started_at
    known = any(run.invocation_id == failure.run.invocation_id for run in runs)
    later = max((run.started_at for run in runs), default=at) > at or (recorded_at or at) > at
    return tuple(runs) if known or later else (failure.run, *runs)


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text.removesuffix("Z"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
