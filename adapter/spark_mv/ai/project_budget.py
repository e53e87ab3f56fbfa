"""Budgets of a project's day and month: what all its runs have spent since they began, UTC, is taken off what a run may spend."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

from spark_mv.ai.batches.state import EXPECTED, Expected
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.paid import paid_sql
from spark_mv.ai.prices import Rates
from spark_mv.ai.results import timestamp
from spark_mv.ai.settings import PERIODS, AiSettings
from spark_mv.query.ai_calls.keys import SUBMITTED
from spark_mv.query.syntax.source_text import string_literal as quote


@dataclass(frozen=True)
class Spent:
    """Calls, tokens and cost of a project in a period."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


def spent_since_sql(results_table: str, since: float, project: str, batch_prices: Rates, output_tokens: int) -> str:
    """Calls (every attempt is one), tokens and cost of the project since an instant (seconds since the epoch): of answers and errors, and of inputs that went into a batch
    since and have no answer yet, as their claims estimate them. Claims of earlier releases do not: `output_tokens` and `batch_prices` are theirs (per 1,000 tokens)."""
    begin = f"timestamp '{timestamp(since)}'"
    rows = f"SELECT * FROM {results_table} WHERE project = {quote(project)}"
    mine = f"project = {quote(project)} AND called_at >= {begin}"
    tokens = "coalesce(input_tokens, 0) + coalesce(output_tokens, 0) AS tokens"
    output, input_price, output_price = (
        f"coalesce(cast(get_json_object(s.value, '$.{EXPECTED}.{name}') AS DOUBLE), {float(otherwise)!r}D)"
        for name, otherwise in zip((f.name for f in fields(Expected)), (output_tokens, *batch_prices), strict=True)
    )
    sent = "coalesce(s.input_tokens, 0)"
    return (
        "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(cost), 0) FROM ("
        f"SELECT coalesce(attempts, 1) AS calls, {tokens}, cost FROM ({paid_sql(results_table, mine)}) AS a UNION ALL "
        f"SELECT 1, {sent} + {output}, ({sent} * {input_price} + {output} * {output_price}) / 1000 FROM ({rows}) AS s "
        f"LEFT ANTI JOIN (SELECT result_key, batch FROM ({rows}) AS r WHERE status <> {quote(SUBMITTED)}) AS o "
        f"ON o.result_key = s.result_key AND o.batch = s.batch WHERE s.status = {quote(SUBMITTED)} AND s.called_at >= {begin}) AS d"
    )


def spent_so_far(
    execute: Callable[[str], Sequence[Sequence[Any]]],
    settings: AiSettings,
    results_table: str,
    project: str,
    output_tokens: int,
) -> dict[str, Spent]:
    """What the project has spent, by each period for which there is a budget."""
    prices = settings.price_of(settings.model).in_batch(settings.batch_price_factor)
    found, now = {}, time.time()
    for period in PERIODS:
        if any(limit is not None for limit in settings.of_period(period).values()):
            ((calls, tokens, cost),) = execute(
                spent_since_sql(results_table, begin_of(period, now), project, prices, output_tokens)
            )
            found[period] = Spent(int(calls), int(tokens), float(cost))
    return found


def within_periods(
    execute: Callable[[str], Sequence[Sequence[Any]]],
    settings: AiSettings,
    results_table: str,
    project: str,
    output_tokens: int,
    spent: AiOutcome,
) -> AiSettings:
    """The settings with budgets of the run that keep those of the project's day and month. `spent` is what this run has used of its
    own already, which stands in the tables, too."""
    found = spent_so_far(execute, settings, results_table, project, output_tokens)
    own = Spent(spent.charged_calls, spent.tokens, spent.cost)
    return with_what_is_left(settings, found, own) if found else settings


def with_what_is_left(settings: AiSettings, found: Mapping[str, Spent], own: Spent | None = None) -> AiSettings:
    """The settings whose budgets of a run are no more than what others, without this run's `own`, have left of each period."""
    budgets: dict[str, Any] = {}
    for what in ("calls", "tokens", "cost"):
        limits = [getattr(settings, f"max_ai_{what}")]
        for period, used in found.items():
            limit = settings.of_period(period)[what]
            if limit is not None:
                limits.append(max(0, limit - max(0, getattr(used, what) - getattr(own or Spent(), what))))
        budgets[f"max_ai_{what}"] = min((limit for limit in limits if limit is not None), default=None)
    return replace(settings, **budgets)


def begin_of(period: str, at: float) -> float:
    """The begin of the day or the month, UTC, in seconds since the epoch.

    >>> begin_of("day", 86400.0 * 33 + 5), begin_of("month", 86400.0 * 33 + 5)
    (2851200.0, 2678400.0)
    """
    day = at - at % 86400.0
    return day if period == "day" else day - 86400.0 * (datetime.fromtimestamp(day, timezone.utc).day - 1)
