"""`ai_calibrate`: both models of a cascade asked about a sample of a column's inputs, and the threshold that the target asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from spark_mv.ai.calibration import Asked, Calibration, Pair, calibrated, least
from spark_mv.ai.canary_sample import comparable
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.ai_calls.ai_plan import AiCall, plan_ai
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.spark.formats.own_tables import own_format_of
from spark_mv.spark.run.ai import AiRunner, ai_runner
from spark_mv.spark.run.ai_eval import DIRECT

_FIRST = 20
"""Inputs asked before the others: an endpoint without log-probabilities shows itself by them."""


def calibrate(
    adapter: Any, values: Mapping[str, Any], schema: str, invocation_id: str, project: str, profile: Mapping[str, Any]
) -> str:
    """Asks, tests the thresholds; gives what to tell the user. Answers are kept in `ai_results`, so that a larger sample pays for what is new.

    Raises RefusedError where there is nothing to calibrate, or not enough of it.
    """
    try:
        asked = Asked.of({word: value for word, value in values.items() if value is not None}, profile)
    except ValueError as error:
        raise _refused(str(error)) from None
    small, large = asked.models
    now = datetime.now(timezone.utc)
    accepts_all = [{"model": small, "accept_if": "confidence >= 0"}, {"model": large}]
    words = {**asked.words, **DIRECT, "dedupe": {}, "cascade": accepts_all}
    both = ai_runner(
        adapter,
        "ai_calibrate",
        schema,
        invocation_id,
        project,
        now,
        profile,
        words,
        file_format=own_format_of(adapter).name,
    )
    alone = _without_cascade(both)
    first, second = _call(both, asked), _call(alone, asked)

    (counted,) = adapter.query(f"SELECT count(*) AS n FROM ({first.request_sql}) AS q")
    there, room = int(counted["n"]), both.room()
    number = min(asked.sample, there, asked.sample if room is None else room // 2)
    if number < least(asked.target):
        why = (
            f"max_ai_calls leaves room for {number:,} inputs"
            if number < min(asked.sample, there)
            else f"{asked.data} has {there:,}"
        )
        raise _refused(
            f"it takes {least(asked.target):,} inputs to show that {asked.target:g} of the answers agree, and {why}: lower agree_with_large, or give it more"
        )
    for part in (min(_FIRST, number), number):
        both.run([replace(first, request_sql=_sample(first, part))])
        if not _sure(adapter, both, first, part):
            raise _refused(
                f"{small} says of none of {part:,} answers how sure it is: the endpoint gives no log-probabilities, or no answer at all "
                "(see ai_results.steps and error). A cascade needs them"
            )
    alone.spent = both.spent
    alone.run([replace(second, request_sql=_sure_requests(both, first, second, number))])
    pairs = _pairs(adapter, both, first, second, number)
    if not pairs:
        raise _refused(f"no input was answered by both models: {both.spent.error_example or alone.spent.error_example}")
    return _text(asked, calibrated(pairs, asked.target), number, there)


def _refused(why: str) -> RefusedError:
    return RefusedError("AI_CALIBRATE", f"ai_calibrate: {why}")


def _without_cascade(runner: AiRunner) -> AiRunner:
    """The same with the large model alone, whose settings are those that it has as the cascade's last."""
    settings = replace(runner.settings, cascade=())
    return replace(runner, settings=settings, context=replace(runner.context, identity=settings.identity()))


def _call(runner: AiRunner, asked: Asked) -> AiCall:
    plan = plan_ai(
        f"SELECT cast(({asked.call}) AS STRING) AS answer FROM {asked.data}",
        results_table=runner.context.results_table,
        identity=replace(runner.context.identity, keep_old=False),
        schemas={},
        functions=runner.context.functions,
    )
    if plan.errors:
        raise _refused(plan.errors[0].message)
    if len(plan.calls) != 1:
        raise _refused(f"there are {len(plan.calls)} AI calls in {asked.call}: it takes one")
    (call,) = plan.calls
    if runner.settings.cascade and not call.cascade:
        raise _refused(
            f"{asked.call} is asked of one model, which it names or which gives vectors: no cascade applies to it"
        )
    if not comparable(call):
        raise _refused(
            f"{call.function} gives free text, which two models never say alike: calibrate a call with labels, fields or numbers"
        )
    return call


def _sample(call: AiCall, number: int) -> str:
    """By the hashes of the inputs: a random sample, the same at the next time, and part of a larger one."""
    return f"SELECT * FROM ({call.request_sql}) AS q ORDER BY q.arguments_hash LIMIT {number}"


def _newest(runner: AiRunner, call: AiCall) -> str:
    return (
        "SELECT arguments_hash AS h, max_by(struct(value, confidence, cost, steps), called_at) AS a "
        f"FROM {runner.context.results_table} WHERE status = 'ok' AND function = {quote(call.function)} "
        f"AND identity_hash = {quote(call.identity_hash)} GROUP BY 1"
    )


def _sure_requests(runner: AiRunner, call: AiCall, of: AiCall, number: int) -> str:
    """The requests of `of` that are in the sample, and whose small model's answer has a confidence: the large model answered the others."""
    sure = f"SELECT s.request FROM ({_sample(call, number)}) AS s JOIN ({_newest(runner, call)}) AS p ON p.h = s.arguments_hash WHERE p.a.confidence IS NOT NULL"
    return f"SELECT q.* FROM ({of.request_sql}) AS q LEFT SEMI JOIN ({sure}) AS w ON w.request = q.request"


def _sure(adapter: Any, runner: AiRunner, call: AiCall, number: int) -> int:
    (row,) = adapter.query(f"SELECT count(*) AS n FROM ({_sure_requests(runner, call, call, number)}) AS q")
    return int(row["n"])


def _pairs(adapter: Any, runner: AiRunner, call: AiCall, large: AiCall, number: int) -> list[Pair]:
    rows = adapter.query(
        "SELECT p.a.confidence AS confidence, p.a.value <=> l.a.value AS agree, p.a.cost AS cost, l.a.cost AS large_cost, p.a.steps AS steps "
        f"FROM ({_sample(call, number)}) AS s JOIN ({_newest(runner, call)}) AS p ON p.h = s.arguments_hash "
        f"LEFT JOIN ({_newest(runner, large)}) AS l ON l.h = p.h WHERE l.h IS NOT NULL OR p.a.confidence IS NULL"
    )
    return [_pair(row) for row in rows]


def _pair(row: Mapping[str, Any]) -> Pair:
    """Where the small model's answer has no confidence, the large one answered by the same way: `steps` say what each took."""
    if row["confidence"] is not None:
        return Pair(
            float(row["confidence"]), bool(row["agree"]), float(row["cost"] or 0), float(row["large_cost"] or 0)
        )
    costs = [float(step.get("cost") or 0) for step in json.loads(row["steps"] or "[]")]
    return Pair(None, True, sum(costs[:-1]), costs[-1] if costs else 0.0)


def _text(asked: Asked, found: Calibration, number: int, there: int) -> str:
    small, large = asked.models
    known = bool(found.large_cost)
    lines = [
        f"ai_calibrate: {found.n:,} of {there:,} inputs of {asked.data}, {small} against {large}; wanted: with 95 % confidence, "
        f"{asked.target:g} of the answers that are accepted are those of {large}"
    ]
    if found.n < number:
        lines.append(
            f"{number - found.n:,} inputs of the sample have no answer of both, by errors or budgets, and are left out"
        )
    rows = [("accept_if", "accepted", f"as {large}", "95 % interval", "cost of 1,000", "")]
    for line in found.lines:
        low, high = line.interval
        verdict = {True: "holds", False: "does not hold, nothing further was tested", None: "not tested"}[line.holds]
        share, agreement = f"{line.accepted / found.n:.1%} ({line.accepted:,})", f"{line.agreed / line.accepted:.1%}"
        cost = f"{line.cost:,.4f}" if known else "–"
        rows.append((f"confidence >= {line.threshold!r}", share, agreement, f"{low:.1%} to {high:.1%}", cost, verdict))
    rows.append((f"{large} alone", "–", "–", "–", f"{found.large_cost:,.4f}" if known else "–", ""))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines += [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([*lines, *_advice(asked, found)])


def _advice(asked: Asked, found: Calibration) -> list[str]:
    small, large = asked.models
    chosen = found.chosen
    if chosen is not None:
        condition = f"confidence >= {chosen.threshold!r}"
        return [
            f"the lowest threshold that holds accepts {chosen.accepted / found.n:.1%} of the inputs; for the ai block:",
            f'  cascade: [{{model: {small}, accept_if: "{condition}"}}, {{model: {large}}}]',
        ]
    if not found.lines:
        need = least(asked.target)
        return [
            f"no threshold was tested: {small} has a confidence for fewer than {need:,} of these inputs. Give a larger sample, or a lower agree_with_large"
        ]
    return [
        f"no threshold holds: {small} does not say what {large} says often enough, even where it is surest. Lower agree_with_large, or take another model"
    ]
