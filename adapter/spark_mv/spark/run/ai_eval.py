"""`ai_eval`: answers to labelled rows, asked as a model's run asks them and kept in `ai_results`, counted against the labels."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import combinations
from typing import Any

from spark_mv.ai.cascade import REQUESTS
from spark_mv.ai.evaluation import AGREEMENT, CONFUSION, EVALUATIONS, Answers, agreement, judged
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import requests_sql
from spark_mv.ai.results import insert_rows, quoted
from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.query.ai_calls.ai_plan import AiCall, plan_ai
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.spark.formats.own_tables import EVALUATED, make_table, own_format_of
from spark_mv.spark.run.ai import AiRunner, ai_runner

MOST_ROWS = 100_000
"""Labelled rows of one evaluation, which dbt's process holds."""
_INSERT = 500
DIRECT = {"mode": "direct", "on_model_change": "recompute", "on_ai_error": "null", "canary": {}}
"""What an evaluation is about is the answer of the model that is named, now."""
_TABLES = {"": EVALUATIONS, "_confusion": CONFUSION, "_agreement": AGREEMENT}
"""By the ends of their names, their columns."""


@dataclass(frozen=True)
class Asked:
    """What is evaluated. `data` is a relation with the columns `key` and, where labels judge, `label`; `variants` are names with
    words of the ai block, and `call` where it is another one; `judge` is the variant whose answers count as right."""

    data: str
    key: str
    call: str = ""
    label: str | None = None
    judge: str | None = None
    variants: Mapping[str, Mapping[str, Any]] | None = None
    into: str = EVALUATED

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Asked:
        """Raises RefusedError saying what is missing."""
        asked = cls(**{name: value for name, value in values.items() if value is not None})
        for name in ("data", "key", "call", "label", "judge", "into"):
            if not isinstance(getattr(asked, name), str | None):
                raise RefusedError(
                    "AI_EVAL", f"ai_eval: {name}: {getattr(asked, name)!r} is no text, and one name is asked for"
                )
        named = asked.variants or {"as configured": {}}
        problem = ""
        if bool(asked.label) == bool(asked.judge):
            problem = (
                "say either `label`, the column with the right answer, or `judge`, the variant that counts as right"
            )
        elif asked.judge and asked.judge not in named:
            problem = f"judge {asked.judge!r} is none of the variants {', '.join(named)}"
        elif asked.judge and len(named) < 2:
            problem = "a judge needs another variant to judge"
        elif not isinstance(named, Mapping) or not all(isinstance(words, Mapping) for words in named.values()):
            problem = "variants map names to words of the ai block, e.g. {small: {model: small}, large: {model: large}}"
        elif missing := [name for name, words in named.items() if not (words.get("call") or asked.call)]:
            problem = f"say `call`, the SQL to evaluate, e.g. \"ai_classify(body, array('a', 'b'))\" (missing for {', '.join(missing)})"
        if problem:
            raise RefusedError("AI_EVAL", f"ai_eval: {problem}")
        return replace(asked, variants=named)


@dataclass(frozen=True)
class _Variant:
    name: str
    call: str
    calls: Sequence[AiCall]
    answers: Answers
    expected: Answers
    spent: tuple[Any, ...]  # inputs, unanswered, requests, input tokens, output tokens, cost
    outcome: AiOutcome
    seconds: float | None


def evaluate(
    adapter: Any, values: Mapping[str, Any], schema: str, invocation_id: str, project: str, profile: Mapping[str, Any]
) -> str:
    """Asks, counts, appends to the three tables; gives what to tell the user."""
    asked = Asked.of(values)
    now = datetime.now(timezone.utc)
    found = [
        _answered(adapter, asked, name, dict(words), schema, invocation_id, project, profile, now)
        for name, words in (asked.variants or {}).items()
    ]
    said = next((v.answers for v in found if v.name == asked.judge), found[0].expected)
    right = {row: value for row, value in said.items() if value is not None}
    if not right:
        raise RefusedError("AI_EVAL", f"ai_eval: no row of {asked.data} has a label ({asked.label or asked.judge})")
    _keep(adapter, asked, found, right, schema, invocation_id, now)
    return "\n".join(_lines(asked, found, right))


def _answered(
    adapter: Any,
    asked: Asked,
    name: str,
    words: dict[str, Any],
    schema: str,
    invocation_id: str,
    project: str,
    profile: Mapping[str, Any],
    now: datetime,
) -> _Variant:
    call = str(words.pop("call", "") or asked.call)
    runner = ai_runner(
        adapter,
        f"ai_eval ({name})",
        schema,
        invocation_id,
        project,
        now,
        profile,
        {**words, **DIRECT},
        file_format=own_format_of(adapter).name,
    )
    expected = f"cast({quoted(asked.label)} AS STRING)" if asked.label else "cast(NULL AS STRING)"
    labelled = f" WHERE {quoted(asked.label)} IS NOT NULL" if asked.label else ""  # the others are not paid for
    plan = plan_ai(
        f"SELECT cast({quoted(asked.key)} AS STRING) AS row_key, {expected} AS expected, cast(({call}) AS STRING) AS answer FROM {asked.data}{labelled}",
        results_table=runner.context.results_table,
        # under a budget a model's rows show older answers: these are another model's
        identity=replace(runner.context.identity, keep_old=False),
        schemas={},
        functions=runner.context.functions,
    )
    if plan.errors:
        raise RefusedError("AI_EVAL", f"ai_eval, variant {name}: {plan.errors[0].message}")
    if not plan.calls:
        raise RefusedError("AI_EVAL", f"ai_eval, variant {name}: there is no AI function in {call}")
    shown = f"count({quoted(asked.label)})" if asked.label else "0"
    try:
        (counted,) = adapter.query(
            f"SELECT count(*) AS n, count(DISTINCT {quoted(asked.key)}) AS keys, {shown} AS labelled FROM {asked.data}"
        )
    except Exception as error:
        named = f"key {asked.key}" + (f" and label {asked.label}" if asked.label else "")
        raise RefusedError(
            "AI_EVAL", f"ai_eval: data {asked.data} cannot be read with {named}: {first_line(error)}"
        ) from error
    number, keys = int(counted["n"]), int(counted["keys"])
    if not 0 < number <= MOST_ROWS or keys < number:
        raise RefusedError(
            "AI_EVAL",
            f"ai_eval: {asked.data} has {number:,} rows and {keys:,} different values of {asked.key}; it takes 1 to {MOST_ROWS:,} rows, "
            "each with a key of its own: label a sample",
        )
    for first in plan.rounds[0]:
        try:
            adapter.query(f"SELECT * FROM (\n{first.request_sql}\n) LIMIT 0")
        except Exception as error:
            raise RefusedError(
                "AI_EVAL",
                f"ai_eval, variant {name}: {call} is no call over the columns of {asked.data}: {first_line(error)}",
            ) from error
    _make_tables(adapter, asked, schema)  # what is paid must have a place to be counted in
    begun, outcome = time.monotonic(), AiOutcome()
    for calls in plan.rounds:
        outcome += runner.run(calls)
    seconds = time.monotonic() - begun if outcome.calls else None
    rows = adapter.query(plan.sql)
    return _Variant(
        name,
        call,
        plan.calls,
        {row["row_key"]: row["answer"] for row in rows},
        {row["row_key"]: row["expected"] for row in rows},
        _spent(adapter, runner, plan.calls),
        outcome,
        seconds,
    )


def _spent(adapter: Any, runner: AiRunner, calls: Sequence[AiCall]) -> tuple[Any, ...]:
    """What the answers that are shown took, whoever asked for them, and how many inputs have none."""
    values = f"struct({REQUESTS} AS requests, input_tokens, output_tokens, cost)"
    answered = ", ".join(sorted({quote(status) for call in calls for status in call.answered}))
    newest = f"SELECT result_key AS k, max_by({values}, called_at) AS s FROM {runner.context.results_table} WHERE status IN ({answered}) GROUP BY 1"
    (row,) = adapter.query(
        "SELECT count(*) AS inputs, count_if(s IS NULL) AS unanswered, coalesce(sum(s.requests), 0) AS requests, "
        "coalesce(sum(s.input_tokens), 0) AS input_tokens, coalesce(sum(s.output_tokens), 0) AS output_tokens, "
        f"coalesce(sum(s.cost), 0D) AS cost FROM ({requests_sql(calls)}) AS q LEFT JOIN ({newest}) AS a ON a.k = q.result_key"
    )
    return tuple(row.values())


def _keep(
    adapter: Any,
    asked: Asked,
    found: Sequence[_Variant],
    right: Answers,
    schema: str,
    invocation_id: str,
    now: datetime,
) -> None:
    head = (now, invocation_id)
    evaluations, confusion = [], []
    for one in found:
        seen = judged(right, one.answers)
        models = [" → ".join(call.models) for call in one.calls]
        versions = [" → ".join(s.version for s in call.cascade) or call.model_version for call in one.calls]
        hashes = _joined([call.identity_hash for call in one.calls])
        who = one.name, one.call, _joined(models), _joined(versions), hashes, asked.label or asked.judge
        right_ones = seen.n, seen.correct, seen.accuracy, *seen.interval
        evaluations.append((*head, *who, *right_ones, *one.spent, one.outcome.calls, one.seconds))
        confusion += [(*head, one.name, *pair, n) for pair, n in seen.confusion.items()]
    compared = [
        (*head, a.name, b.name, *agreement(right, a.answers, b.answers).row()) for a, b in combinations(found, 2)
    ]
    for suffix, rows in (("", evaluations), ("_confusion", confusion), ("_agreement", compared)):
        table = _table(schema, asked.into, suffix)
        for start in range(0, len(rows), _INSERT):
            adapter.query(insert_rows(table, _TABLES[suffix], rows[start : start + _INSERT]))


def _make_tables(adapter: Any, asked: Asked, schema: str) -> None:
    for suffix, columns in _TABLES.items():
        table = _table(schema, asked.into, suffix)
        written = ", ".join(f"{name} {kind} COMMENT '{comment}'" for name, kind, comment in columns)
        make_table(
            adapter.query, table, f"CREATE TABLE IF NOT EXISTS {table} ({written}) USING {own_format_of(adapter).name}"
        )


def _table(schema: str, into: str, suffix: str) -> str:
    """`into` is a name, or one with its schema."""
    parts = into.split(".") if "." in into else [*schema.strip("`").split("."), into]
    return quoted(*parts[:-1], parts[-1] + suffix)


def _joined(values: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _lines(asked: Asked, found: Sequence[_Variant], right: Answers) -> list[str]:
    lines = []
    for one in found:
        if one.name == asked.judge:
            continue
        seen = judged(right, one.answers)
        low, high = seen.interval
        lines.append(
            f"{one.name}: {seen.correct:,} of {seen.n:,} as {asked.label or asked.judge}, {seen.accuracy:.1%} "
            f"(95 % interval {low:.1%} to {high:.1%}), cost {float(one.spent[5]):,.4f}"
        )
    for one in found:
        if one.spent[1]:
            lines.append(
                f"{one.name}: {one.spent[1]:,} of {one.spent[0]:,} inputs have no answer; their rows count as wrong"
            )
    for a, b in combinations(found, 2):
        both = agreement(right, a.answers, b.answers).row()
        lines.append(
            f"{a.name} and {b.name}: same answer for {both[2]:.1%} of {both[0]:,} rows ({both[3]:.1%} to {both[4]:.1%})"
        )
    return lines
