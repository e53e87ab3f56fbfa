"""`explain_mv`: what the next run of a model would do and why, as text or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_mv.ai.outcome import AiOutcome
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.notes import order_notes
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.analysis.verdict import Analysis, Cause, ColumnVerdict, PredicateVerdict
from spark_mv.query.functions.level import Level


def explain_text(
    facts: RunFacts,
    analysis: Analysis,
    rewritten: Rewritten,
    plan: Plan,
    calls: AiOutcome | None = None,
    runs: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Several lines: strategy with reasons, a verdict per column and per predicate, the sources, the steps. `calls`: what
    the run would ask of AI functions. `runs`: rows of mv_runs, newest first."""
    lines = [f"{facts.model}: {plan.strategy}, as of {facts.as_of} UTC"]
    for candidate in plan.candidates:
        cost = f" [cost {candidate.cost:,.0f}]" if candidate.cost else ""
        mark = "chosen" if candidate.strategy == plan.strategy else ("possible" if candidate.applies else "rejected")
        reasons = "; ".join(f"{reason.code}: {reason.sentence}" for reason in candidate.reasons)
        lines.append(f"  {candidate.strategy:<20} {mark:<9} {reasons}{cost}")
    lines += ["", "columns"]
    lines += _table([("name", "level", "kept", "because")] + [_column(column, plan) for column in analysis.columns])
    if analysis.predicates:
        lines += ["", "predicates"]
        lines += [f"  {line}" for predicate in analysis.predicates for line in _predicate(predicate)]
    if rewritten.clock:
        lines += ["", f"window: {_window(rewritten, plan, analysis)}"]
    lines += ["", "sources"]
    lines += _table(
        [("name", "format", "version now", "version of the last run")]
        + [
            (
                source.name,
                source.provider,
                str(source.version.version) if source.version else "-",
                _before(facts, source.name),
            )
            for source in facts.sources
        ]
    )
    if calls is not None:
        lines += ["", _calls(calls)]
    if plan.steps:
        lines += ["", "steps: " + " → ".join(step.kind for step in plan.steps)]
    if runs:
        lines += ["", "last runs (mv_runs)"]
        lines += _table(
            [("started at", "seconds", "estimated", "strategy", "because", "what")] + [_run(r) for r in runs]
        )
    notes = [*plan.notes, *_notes(analysis)]
    if notes:
        lines += ["", "notes", *(f"  - {note}" for note in notes)]
    return "\n".join(lines)


def explain_json(
    facts: RunFacts,
    analysis: Analysis,
    rewritten: Rewritten,
    plan: Plan,
    calls: AiOutcome | None = None,
    runs: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The same as one JSON object."""
    data: dict[str, Any] = {
        "model": facts.model,
        "as_of": facts.as_of,
        "strategy": plan.strategy,
        "strategies": [
            {
                "name": candidate.strategy,
                "applies": candidate.applies,
                "reasons": [{"code": r.code, "sentence": r.sentence} for r in candidate.reasons],
                "cost": candidate.cost,
            }
            for candidate in plan.candidates
        ],
        "columns": [
            {"name": c.name, "level": c.level.value, "kept": c.kept, "frozen": c.frozen, "cause": _cause(c.cause)}
            for c in analysis.columns
        ],
        "predicates": [
            {
                "text": p.text,
                "clause": p.clause,
                "level": p.level.value,
                "clock": p.clock,
                "solved": p.solved,
                "valid_from": p.valid_from,
                "valid_to": p.valid_to,
            }
            for p in analysis.predicates
        ],
        "sources": [
            {"name": s.name, "format": s.provider, "version": s.version.version if s.version else None}
            for s in facts.sources
        ],
        "ai_calls": None
        if calls is None
        else {
            "calls": calls.calls,
            "reused": calls.reused,
            "blocked": calls.blocked,
            "left_for_later": calls.left_for_later,
            "input_tokens": calls.input_tokens,
            "cost": calls.cost,
        },
        "runs": [dict(run) for run in runs],
        "steps": [step.kind for step in plan.steps],
        "notes": [*plan.notes, *_notes(analysis)],
    }
    return json.dumps(data, indent=2, ensure_ascii=False)


def _run(run: Mapping[str, Any]) -> tuple[str, ...]:
    cost = run["estimated_cost"]
    what = run["message"] if run["status"] == "success" else f"error: {str(run['message']).splitlines()[0]}"
    estimated = "-" if cost is None else f"{cost:,.0f}"
    return (
        str(run["started_at"]),
        f"{run['seconds']:.1f}",
        estimated,
        str(run["strategy"]),
        str(run["reasons"]),
        str(what),
    )


def _calls(calls: AiOutcome) -> str:
    """Tokens are estimated at four bytes each, input only."""
    cost = f", {calls.cost:,.4f} of cost" if calls.cost else ""
    line = f"AI calls: {calls.calls:,} to make now (about {calls.input_tokens:,} input tokens{cost}), {calls.reused:,} answered"
    if calls.left_for_later:
        line += f", {calls.left_for_later:,} over the budget"
    if calls.blocked:
        line += f", {calls.blocked:,} failed and not to be repeated yet"
    return line


def _column(column: ColumnVerdict, plan: Plan) -> tuple[str, str, str, str]:
    roles = {c.name.lower(): c for c in plan.columns}
    staged = roles.get(column.name.lower())
    kept = ("frozen" if column.frozen else "per key") if column.kept else "-"
    if staged is not None and staged.fresh:
        kept = "drawn anew: its expression changed"
    cause = column.cause
    because = f"{cause.function} (line {cause.line}, column {cause.column})" if cause else ""
    if cause and cause.path:
        because += f" through {' → '.join(cause.path)}"
    return column.name, column.level.value, kept, because


def _predicate(predicate: PredicateVerdict) -> Iterable[str]:
    yield f"{predicate.clause} {predicate.text} [{predicate.level.value}]"
    if predicate.clock and predicate.solved:
        yield f"  valid from {predicate.valid_from or 'ever'} until {predicate.valid_to or 'ever'}"
    elif predicate.clock:
        yield "  follows the clock; evaluated at each run, because it could not be solved for the clock"


def _window(rewritten: Rewritten, plan: Plan, analysis: Analysis) -> str:
    if any(p.clock and not p.solved for p in analysis.predicates):
        return "some predicate on the clock could not be solved, so every move of the clock recomputes"
    if not rewritten.clock_solved:
        return "the clock stands outside the windows too (in a column that is not frozen, say), so every move of it recomputes"
    record = plan.record
    if plan.strategy == "NO_OP" and record is not None:
        return f"the next row enters or leaves at {record.next_change_at or 'no time'} (UTC)"
    return "rows enter and leave by the clock, with no change of a source"


def _notes(analysis: Analysis) -> list[str]:
    notes = [
        f"column {column.name} shows the as-of instant of the latest run in every row; to keep the first value of each "
        f"row, add freeze: [{column.name}]"
        for column in analysis.columns
        if Level.COMMAND in column.levels and not column.kept and column.level is Level.COMMAND
    ]
    return notes + order_notes(analysis)


def _before(facts: RunFacts, name: str) -> str:
    record = facts.target.record
    version = record.sources.get(name) if record else None
    return str(version.version) if version else "-"


def _cause(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    return {"function": cause.function, "line": cause.line, "column": cause.column, "path": list(cause.path)}


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
