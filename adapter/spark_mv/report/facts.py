"""What is recorded of a project's models: frozen data that a reader fills, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from spark_mv.maintenance.record import RunRecord, read_record

FORMAT_VERSION = 1


class FactsError(ValueError):
    """The text is no JSON of facts that this version reads."""


@dataclass(frozen=True)
class RunRow:
    """One row of `mv_runs`. `started_at` and `as_of` are seconds since 1970 (UTC); counts that an earlier release did not
    record are None. `candidates` is the JSON that was recorded."""

    started_at: float
    status: str
    strategy: str = ""
    seconds: float | None = None
    as_of: float | None = None
    invocation_id: str = ""
    reasons: str = ""
    candidates: str = ""
    estimated_cost: float | None = None
    statements: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_evicted: int | None = None
    values_kept: int | None = None
    ai_calls: int | None = None
    ai_errors: int | None = None
    ai_reused: int | None = None
    message: str = ""
    audit_differences: int | None = None
    estimated_seconds: float | None = None

    @property
    def failed(self) -> bool:
        return self.status != "success"


@dataclass(frozen=True)
class AiUse:
    """Answers of `ai_results` that one invocation paid for, by function and model. `called_at`: the newest of them, in seconds."""

    invocation_id: str
    function: str
    model: str
    model_version: str
    status: str
    answers: int
    attempts: int
    input_tokens: int
    output_tokens: int
    cost: float
    called_at: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """One variant of an `ai_eval`, see ai/evaluation.py. `wrong`: label, another answer, rows; `compared`: another variant, the share of equal
    answers, rows that only this one has right, that only the other has, p value."""

    evaluated_at: float
    invocation_id: str
    variant: str
    call: str
    model: str
    model_version: str
    judged_by: str
    n: int
    correct: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    inputs: int
    unanswered: int
    cost: float
    wrong: tuple[tuple[str, str | None, int], ...] = ()
    compared: tuple[tuple[str, float, int, int, float], ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """One nondeterministic_mv. `sql` is its compiled SELECT (empty: never compiled, then `problem` says why), `record` what
    its table's newest commit says, `recorded_at` that commit's time (UTC text), `runs` newest first. `reads`: names
    of the models, seeds and sources that it names, with what they are."""

    unique_id: str
    name: str
    relation: str
    schema: str
    path: str = ""
    description: str = ""
    unique_key: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    read_by: tuple[str, ...] = ()
    sql: str = ""
    exists: bool = False
    version: int | None = None
    record: RunRecord | None = None
    recorded_at: str = ""
    foreign_operation: str | None = None
    runs: tuple[RunRow, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class ProjectFacts:
    """All that status and report show. `read_at`: seconds since 1970. `views`: view → SELECT, `columns`: table → column →
    type and `functions`: what the project declared, as `judge` takes them. `notes`: what could not be read."""

    name: str
    target: str
    read_at: float
    connection: str = ""
    time_zone: str = "UTC"
    models: tuple[ModelFacts, ...] = ()
    ai: tuple[AiUse, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()


def to_json(project: ProjectFacts) -> str:
    """One JSON object, which `from_json` reads back."""
    data = asdict(project)
    for model, facts in zip(data["models"], project.models, strict=True):
        model["record"] = facts.record.to_json() if facts.record else None
    return json.dumps({"format_version": FORMAT_VERSION, **data}, indent=1, ensure_ascii=False)


def from_json(text: str) -> ProjectFacts:
    """The facts of `to_json`. Raises FactsError for anything else."""
    try:
        data = json.loads(text)
        if (found := data.pop("format_version")) != FORMAT_VERSION:
            raise FactsError(
                f"these facts are in format {found}, and this release of dbt-spark-mv reads format {FORMAT_VERSION}: make them anew with "
                "`spark-mv report --facts`, or read them with the release that wrote them"
            )
        data["models"] = tuple(_model(model) for model in data["models"])
        data["ai"] = tuple(AiUse(**use) for use in data["ai"])
        data["notes"] = tuple(data["notes"])
        data["evaluations"] = tuple(_evaluation(one) for one in data.get("evaluations", ()))
        return ProjectFacts(**data)
    except FactsError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FactsError(f"not facts that `spark-mv report --facts` has written: {error}") from error


def _evaluation(data: dict[str, Any]) -> Evaluation:
    for name in ("wrong", "compared"):
        data[name] = tuple(tuple(row) for row in data[name])
    return Evaluation(**data)


def _model(data: dict[str, Any]) -> ModelFacts:
    data["runs"] = tuple(RunRow(**run) for run in data["runs"])
    data["record"] = read_record(data["record"])
    for name in ("unique_key", "freeze", "read_by"):
        data[name] = tuple(data[name])
    return ModelFacts(**data)


def run_row(row: Mapping[str, Any]) -> RunRow:
    """A row of mv_runs, whose instants are `started_micros` and `as_of_micros`; columns that are missing or NULL have their default."""
    names = {f.name: f.default for f in fields(RunRow)}
    known = {n: row[n] for n in names if n in row and row[n] is not None and n not in ("started_at", "as_of")}
    as_of = row.get("as_of_micros")
    return RunRow(
        started_at=float(row["started_micros"]) / 1e6,
        as_of=None if as_of is None else float(as_of) / 1e6,
        **{"status": "", **known},
    )
