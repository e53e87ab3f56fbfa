"""From the model's text to what Spark evaluates: views seen through, clock pinned, AI answers joined in.

The order matters: the clock is split off the text as the user wrote it, everything that is evaluated is pinned, and AI
calls are cut out last, so that their argument queries see literals instead of a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.ai_calls import AiPlan, plan_ai
from spark_mv.query.clock import next_change_sql, split_clock
from spark_mv.query.pin import Pins, pin
from spark_mv.query.verdict import Analysis, Level, QueryError
from spark_mv.spark.as_of import timestamp_literal
from spark_mv.spark.facts import SessionFacts


@dataclass(frozen=True)
class AiContext:
    """What the rewrite of AI calls needs: the result table and the identity (model, version…) of the answers."""

    results_table: str
    identity: Any
    functions: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class RewriteResult:
    rewritten: Rewritten
    ai: AiPlan | None
    errors: tuple[QueryError, ...] = ()


def rewrite(
    sql: str,
    analysis: Analysis,
    as_of: datetime,
    session: SessionFacts,
    schemas: Mapping[str, Mapping[str, str]],
    columns_of: Callable[[str], tuple[Column, ...]],
    ai: AiContext | None,
) -> RewriteResult:
    """Everything a run evaluates, as text. `columns_of` asks Spark for the columns of a SELECT."""
    pins = Pins(
        as_of=as_of,
        time_zone=session.time_zone,
        user=session.user,
        session_user=session.user,
        catalog=session.catalog,
        schema=session.schema,
        version=session.version,
    )
    pinned = pin(sql, pins)
    evaluated, ai_plan, errors = _with_answers(pinned.sql, schemas, ai)
    if errors:
        return RewriteResult(Rewritten(sql, (), timestamp_literal(as_of)), ai_plan, errors)
    split = split_clock(sql, schemas) if Level.COMMAND in analysis.levels else None
    clock = bool(split and split.predicates)
    unclocked = None
    if split and split.predicates and split.pullable and split.unclocked_sql:
        unclocked, _, _ = _with_answers(pin(split.unclocked_sql, pins).sql, schemas, ai)
    literal = timestamp_literal(as_of)
    next_change = next_change_sql(split, literal) if clock and split else None
    rewritten = Rewritten(
        sql=evaluated,
        columns=columns_of(evaluated),
        as_of_literal=literal,
        pins=dict(pinned.used),
        ai_rounds=len(ai_plan.rounds) if ai_plan else 0,
        clock=clock,
        clock_solved=split.all_solved if split else True,
        clock_elsewhere=split.clock_elsewhere if split else False,
        unclocked_sql=unclocked,
        unclocked_reason=split.reason if split else "",
        next_change_sql=pin(next_change, pins).sql if next_change else None,
    )
    return RewriteResult(rewritten, ai_plan)


def _with_answers(
    sql: str, schemas: Mapping[str, Mapping[str, str]], ai: AiContext | None
) -> tuple[str, AiPlan | None, tuple[QueryError, ...]]:
    if ai is None:
        return sql, None, ()
    plan = plan_ai(sql, results_table=ai.results_table, identity=ai.identity, schemas=schemas, functions=ai.functions)
    return plan.sql, plan, plan.errors
