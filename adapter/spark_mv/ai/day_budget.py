"""The budget of a project's day: what all its runs have spent since midnight, UTC, is taken off what a run may spend."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.ai.cascade import REQUESTS
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.results import timestamp
from spark_mv.ai.retry import MARKS
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.keys import SUBMITTED
from spark_mv.query.syntax.source_text import string_literal as quote


def spent_since_sql(
    results_table: str, since: float, project: str, batch_prices: tuple[float, float], output_tokens: int
) -> str:
    """Calls and cost of the project since an instant (seconds since the epoch): of answers and errors, and of inputs that went into a batch since and have no
    answer yet, estimated at four bytes a token and `output_tokens` of answer. Prices per 1,000 tokens."""
    marks = ", ".join(quote(mark) for mark in MARKS)
    today = f"timestamp '{timestamp(since)}'"
    rows = f"SELECT * FROM {results_table} WHERE project = {quote(project)}"
    in_batch, of_answer = batch_prices[0] / 1000.0, batch_prices[1] * output_tokens / 1000.0
    return (
        f"SELECT coalesce(sum(calls), 0), coalesce(sum(cost), 0) FROM (SELECT {REQUESTS} AS calls, cost FROM ({rows}) AS a WHERE status NOT IN ({marks}) AND "
        f"called_at >= {today} UNION ALL SELECT 1, coalesce(s.input_tokens, 0) * {in_batch!r}D + {of_answer!r}D FROM ({rows}) AS s "
        f"LEFT ANTI JOIN (SELECT result_key, batch FROM ({rows}) AS r WHERE status <> {quote(SUBMITTED)}) AS o "
        f"ON o.result_key = s.result_key AND o.batch = s.batch WHERE s.status = {quote(SUBMITTED)} AND s.called_at >= {today}) AS d"
    )


def within_day(
    execute: Callable[[str], Sequence[Sequence[Any]]],
    settings: AiSettings,
    results_table: str,
    project: str,
    output_tokens: int,
    spent: AiOutcome,
) -> AiSettings:
    """The settings with budgets of the run that keep those of the day. `spent` is what this run has used of its own already,
    which stands in the tables, too."""
    calls_a_day, cost_a_day = settings.of_day
    if calls_a_day is None and cost_a_day is None:
        return settings
    prices = settings.price_of(settings.model).in_batch(settings.batch_price_factor)
    ((calls, cost),) = execute(spent_since_sql(results_table, midnight(time.time()), project, prices, output_tokens))
    return replace(
        settings,
        max_ai_calls=_least(settings.max_ai_calls, calls_a_day, int(calls) - spent.charged_calls),
        max_ai_cost=_least(settings.max_ai_cost, cost_a_day, float(cost) - spent.cost),
    )


def midnight(at: float) -> float:
    """The begin of the day, UTC, in seconds since the epoch.

    >>> midnight(86400.0 * 3 + 5)
    259200.0
    """
    return at - at % 86400.0


def _least(of_run: Any, of_day: Any, before: Any) -> Any:
    if of_day is None:
        return of_run
    left = max(0, of_day - max(0, before))
    return left if of_run is None else min(of_run, left)
