"""From the model's text to what Spark evaluates: views seen through, clock pinned, AI answers joined in.

The order matters: the clock is split off the text as the user wrote it, everything that is evaluated is pinned, and AI
calls are cut out last, so that their argument queries see literals instead of a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_mv.maintenance.ai_context import AiContext, with_answers
from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.restrict import kept_spans
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import ONCE_PER_RUN, Pinned, Pins, pin, timestamp_literal
from spark_mv.query.syntax.query_error import QueryError

if TYPE_CHECKING:
    from spark_mv.query.ai_calls.ai_plan import AiPlan
    from spark_mv.query.rewrite.clock_split import ClockSplit


@dataclass(frozen=True)
class RewriteResult:
    """What a run evaluates, the AI calls that were taken out of it, and what is wrong with the text."""

    rewritten: Rewritten
    ai: AiPlan | None
    errors: tuple[QueryError, ...] = ()


def rewrite(
    sql: str,
    analysis: Analysis,
    pins: Pins,
    schemas: Mapping[str, Mapping[str, str]],
    columns_of: Callable[[str], tuple[Column, ...]],
    ai: AiContext | None,
    candidates: str | None = None,
) -> RewriteResult:
    """Everything a run evaluates, as text. `columns_of` asks Spark for the columns of a SELECT. `candidates`: where `sql` reads the draws
    of a random filter, the query of all rows that the filter judges. Those that are still to enter have no draws."""
    pinned = pin(sql, pins)
    if pinned.unnamed and ai is None:
        pinned = pin(sql, pins, [column.name for column in columns_of(sql)])
    evaluated, ai_plan, errors = with_answers(pinned.sql, schemas, ai, whole=True)
    errors = (*unclear(pinned, analysis), *errors)
    if errors:
        return RewriteResult(Rewritten(sql, (), timestamp_literal(pins.as_of, "UTC")), ai_plan, errors)
    literal = timestamp_literal(pins.as_of, "UTC")
    rewritten = Rewritten(
        sql=evaluated,
        columns=columns_of(evaluated),
        as_of_literal=literal,
        pins=dict(pinned.used),
        ai_rounds=ai_plan.rounds if ai_plan else (),
        failing_sql=ai_plan.failing.sql if ai_plan and ai_plan.failing else None,
        failing_columns=ai_plan.failing.columns if ai_plan and ai_plan.failing else (),
    )
    if Level.COMMAND in analysis.levels:
        rewritten = _with_window(rewritten, sql, analysis, pins, schemas, ai, candidates)
    return RewriteResult(rewritten, ai_plan)


def _one_value(name: str) -> str:
    """The cure for what is not pinned. A word is cast to the type beside it, so that its cure must have the same type."""
    if not name.startswith("'"):
        return "Hand the value over with var()"
    if ":" in name:  # a time of day, which no date can be
        return f"Write TIMESTAMP{name}; what is compared with these letters, CAST(… AS STRING)"
    return f"Write DATE{name} beside a date, TIMESTAMP{name} beside a timestamp; what is compared with these letters, CAST(… AS STRING)"


def unclear(pinned: Pinned, analysis: Analysis) -> list[QueryError]:
    """What the text leaves open of the clock, the user and the session, so that a run could not say one value for it."""
    called = {name.lower() for name, *_ in analysis.functions}
    once = [f for f in analysis.functions if f[1] in ONCE_PER_RUN]
    seen = {*pinned.used, *map(str.lower, pinned.ambiguous)}
    calls = pinned.left - {*map(str.lower, pinned.ambiguous)}
    left = [f for f in once if f[0].lower() in calls]
    words = [f for f in left if f[2:] not in pinned.places] or left
    words += [f for f in once if f not in left and not any(f[0].lower() in name for name in seen)]
    if not words and len(once) > len(pinned.places) + len(pinned.ambiguous):
        # a word such as 'today' that Spark takes for a date, because of what stands beside it
        words = [f for f in once if f[0].startswith("'")]
    return (
        [
            QueryError(
                "NOT_PINNED",
                f"{name} (line {line}, column {column}) would give each statement of a run its own value, and is not "
                f"written in a form that can be given one value per run. {_one_value(name)}",
                line,
                column,
            )
            for name, _, line, column in words
        ]
        + [
            QueryError(
                "UNNAMED_COLUMN",
                f"`{item}` has no alias, and its name would change with the value of the clock, user or session function "
                f"in it. Name it: {item} AS …",
            )
            for item in pinned.unnamed
        ]
        + [
            QueryError(
                "AMBIGUOUS_WORD",
                f"`{word}` may be a column or Spark's function. Write {word}() for the function, or put the table's name in "
                "front of the column",
            )
            for word in dict.fromkeys(pinned.ambiguous)
            if word.lower() in called  # else a column: the analysis knows what is in scope
        ]
    )


def _with_window(
    rewritten: Rewritten,
    sql: str,
    analysis: Analysis,
    pins: Pins,
    schemas: Mapping[str, Mapping[str, str]],
    ai: AiContext | None,
    candidates: str | None,
) -> Rewritten:
    from spark_mv.query.rewrite.clock_move import NEAR, Between
    from spark_mv.query.rewrite.clock_split import calls_any, near_change_sql, next_change_sql, split_clock

    asked = [name for name, level, _, _ in analysis.functions if level is Level.AI]
    near = Between.of(pins, pins.as_of + NEAR)
    words = analysis.word_columns
    split: ClockSplit = split_clock(sql, schemas, pins.time_zone, near, kept_spans(sql, analysis), asked, words)
    if candidates is not None:
        split = split.with_rows_of(split_clock(candidates, schemas, pins.time_zone, near, words=words))
    if any(calls_any(query, asked) for query in split.bound_queries):
        # rows outside their windows have no answers yet, and these decide whether there will be a row
        split = replace(split, bounds_complete=False)
    if not split.predicates:
        return replace(rewritten, clock_elsewhere=split.clock_elsewhere)
    unclocked = None
    if split.pullable and split.unclocked_sql:
        unclocked, _, _ = with_answers(pin(split.unclocked_sql, pins).sql, schemas, ai)
    next_change = next_change_sql(split, rewritten.as_of_literal)
    near_change = near_change_sql(split, rewritten.as_of_literal)
    return replace(
        rewritten,
        clock=True,
        predicates=split.predicates,
        clock_solved=split.all_solved and split.bounds_complete,
        clock_elsewhere=split.clock_elsewhere,
        unclocked_sql=unclocked,
        unclocked_reason=split.reason,
        next_change_sql=pin(next_change, pins).sql if next_change else None,
        near_change_sql=pin(near_change, pins).sql if near_change else None,
    )
