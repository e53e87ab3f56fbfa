"""`explain_mv`: what the next run of a model would do and why, as text or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_mv.ai.forecast import CallForecast
from spark_mv.ai.outcome import AiOutcome
from spark_mv.explain.ai_cost import cost_data, cost_lines
from spark_mv.explain.parts import because, bounded, column_data, predicate_data, predicate_lines, reasons_data, table
from spark_mv.maintenance.columns import Role
from spark_mv.maintenance.errors import telling_line
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.notes import order_notes, shared_notes
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.analysis.verdict import Analysis, ColumnVerdict, PredicateVerdict
from spark_mv.query.functions.level import Level


def explain_text(
    facts: RunFacts,
    analysis: Analysis,
    rewritten: Rewritten,
    plan: Plan,
    calls: AiOutcome | None = None,
    runs: Sequence[Mapping[str, Any]] = (),
    costs: Sequence[CallForecast] = (),
) -> str:
    """Several lines: strategy with reasons, a verdict per column and per predicate, the sources, the steps. `calls`: what
    the run would ask of AI functions, `costs`: by call. `runs`: rows of mv_runs, newest first."""
    lines = [f"{facts.model}: {plan.strategy}, as of {facts.as_of} UTC"]
    for candidate in plan.candidates:
        time = f", about {candidate.seconds:.1f} s" if candidate.seconds else ""
        cost = f" [cost {candidate.cost:,.0f}{time}]" if candidate.cost else ""
        mark = "chosen" if candidate.strategy == plan.strategy else ("possible" if candidate.applies else "rejected")
        reasons = "; ".join(f"{reason.code}: {reason.sentence}" for reason in candidate.reasons)
        lines.append(f"  {candidate.strategy:<20} {mark:<9} {reasons}{cost}")
    lines += ["", "columns"]
    lines += table([("name", "level", "kept", "because")] + [_column(column, plan) for column in analysis.columns])
    predicates = bounded(analysis, rewritten)
    if predicates:
        lines += ["", "predicates", *(line for predicate in predicates for line in predicate_lines(predicate))]
    if rewritten.clock:
        lines += ["", f"window: {_window(rewritten, plan, predicates)}"]
    lines += ["", "sources"]
    lines += table(
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
        lines += ["", _calls(calls, costs), *cost_lines(costs)]
    if plan.steps:
        lines += ["", "steps: " + " → ".join(step.kind for step in plan.steps)]
    if runs:
        lines += ["", "last runs (mv_runs)"]
        lines += table(
            [("started at", "seconds", "estimated", "strategy", "because", "what")] + [_run(r) for r in runs]
        )
    notes = [*plan.notes, *_notes(analysis, plan)]
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
    costs: Sequence[CallForecast] = (),
) -> str:
    """The same as one JSON object."""
    tokens, cost = _spending(calls, costs) if calls is not None else (0, 0.0)
    data: dict[str, Any] = {
        "model": facts.model,
        "as_of": facts.as_of,
        "strategy": plan.strategy,
        "strategies": [
            {
                "name": candidate.strategy,
                "applies": candidate.applies,
                "reasons": reasons_data(candidate.reasons),
                "cost": candidate.cost,
                "seconds": candidate.seconds,
            }
            for candidate in plan.candidates
        ],
        "columns": [column_data(c) for c in analysis.columns],
        "predicates": [predicate_data(p) for p in bounded(analysis, rewritten)],
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
            "input_tokens": tokens,
            "cost": cost,
            "under_way": calls.under_way,
            "by_call": cost_data(costs),
        },
        "runs": [dict(run) for run in runs],
        "steps": [step.kind for step in plan.steps],
        "notes": [*plan.notes, *_notes(analysis, plan)],
    }
    return json.dumps(data, indent=2, ensure_ascii=False)


def _run(run: Mapping[str, Any]) -> tuple[str, ...]:
    cost = run["estimated_cost"]
    what = run["message"] if run["status"] == "success" else f"error: {telling_line(str(run['message']))}"
    estimated = "-" if cost is None else f"{cost:,.0f}"
    return (
        str(run["started_at"]),
        f"{run['seconds']:.1f}",
        estimated,
        str(run["strategy"]),
        str(run["reasons"]),
        str(what),
    )


def _spending(calls: AiOutcome, costs: Sequence[CallForecast]) -> tuple[int, float]:
    """Input tokens and cost of the calls to make now: of the forecast's, that part which the budgets allow."""
    if not costs:
        return calls.input_tokens, calls.cost
    share = calls.calls / max(1, sum(one.calls for one in costs))
    return round(share * sum(one.input_tokens for one in costs)), share * sum(one.cost or 0.0 for one in costs)


def _calls(calls: AiOutcome, costs: Sequence[CallForecast]) -> str:
    tokens, spent = _spending(calls, costs)
    cost = f", {spent:,.4f} of cost" if spent else ""
    line = f"AI calls: {calls.calls:,} to make now (about {tokens:,} input tokens{cost}), {calls.reused:,} answered"
    if calls.left_for_later:
        line += f", {calls.left_for_later:,} over the budget"
    if calls.under_way:
        line += f", {calls.under_way:,} under way in batches"
    if calls.blocked:
        line += f", {calls.blocked:,} failed and not to be repeated yet"
    return f"{line}; {calls.message}" if calls.message else line


def _column(column: ColumnVerdict, plan: Plan) -> tuple[str, str, str, str]:
    roles = {c.name.lower(): c for c in plan.columns}
    staged = roles.get(column.name.lower())
    kept = ("frozen" if column.frozen else "per key") if column.kept else "-"
    if staged is not None and staged.fresh:
        kept = "drawn anew: its expression changed"
    return column.name, column.level.value, kept, because(column.cause)


def _window(rewritten: Rewritten, plan: Plan, predicates: Iterable[PredicateVerdict]) -> str:
    if any(p.clock and not p.solved for p in predicates):
        return "some predicate on the clock could not be solved: whenever the clock moved, a run looks for the rows that it let in or out"
    if not rewritten.clock_solved:
        return "the clock stands outside the windows too (in a column that is not frozen, say), so that every move of it is looked at"
    record = plan.record
    if plan.strategy == "NO_OP" and record is not None:
        return f"the next row enters or leaves at {record.next_change_at or 'no time'} (UTC)"
    return "rows enter and leave by the clock, with no change of a source"


def _notes(analysis: Analysis, plan: Plan) -> list[str]:
    notes = [
        f"column {column.name} shows the as-of instant of the latest run in every row; to keep the first value of each "
        f"row, add freeze: [{column.name}]"
        for column in analysis.columns
        if Level.COMMAND in column.levels and not column.kept and column.level is Level.COMMAND
    ]
    key = [column.name for column in plan.columns if column.role is Role.KEY]
    return notes + order_notes(analysis) + shared_notes(analysis, key)


def _before(facts: RunFacts, name: str) -> str:
    record = facts.target.record
    version = record.sources.get(name) if record else None
    return str(version.version) if version else "-"
