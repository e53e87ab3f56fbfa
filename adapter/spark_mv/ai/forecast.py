"""What the next run would ask, by call of the query: how often, how many tokens, what it costs directly and in a batch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.cascade import REQUESTS
from spark_mv.ai.expected import cached_share, expected_output
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.prices import cost_of
from spark_mv.ai.results import timestamp
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.tokens import four_bytes, input_tokens, tokenizer_of
from spark_mv.ai.work import site_of
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.syntax.source_text import string_literal as quote

_SAMPLE = 50
"""Requests of each call whose tokens are counted; the rest is assumed to have as many for its bytes."""
_SAMPLE_BYTES = 20_000
_ENOUGH = 20
"""Answers of a cascade from which on their shares are expected of the next ones, too."""


@dataclass(frozen=True)
class Range:
    """Of a cascade: at most so many requests (at least one for each input), the cost where the first model's answers are all accepted,
    and where none but the last's is. `expected`: inputs that reach each model by the answers so far; without, the forecast is the most."""

    most_requests: int
    least_cost: float
    most_cost: float
    expected: list[int] | None = None


@dataclass(frozen=True)
class CallForecast:
    """One call of the query. Tokens are estimates; `counted`: by the model's own tokenizer. `output_tokens` is as long as answers of
    the function were so far (see expected). Costs in the profile's currency, None without prices; `batch_cost` in batches. `cached_tokens` are
    those of the input tokens that the endpoint will have cached, as often as so far. `place`: the column, or the clause."""

    function: str
    line: int
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    batch_cost: float | None
    counted: bool
    cascade: Range | None = None
    cached_tokens: int = 0
    place: str = ""


def forecast(
    execute: Callable[[str], Sequence[Sequence[Any]]],
    calls: Sequence[AiCall],
    settings: AiSettings,
    results_table: str,
) -> list[CallForecast]:
    """A line for each call of a round, budgets aside. An input that two calls ask for is that of the first."""
    if not calls:
        return []
    pending = pending_sql(calls, results_table, settings, timestamp(time.time()))
    rows = execute(
        "SELECT site, count(*), sum(octet_length(request)), "
        f"to_json(collect_list(request) FILTER (WHERE number <= {_SAMPLE} AND octet_length(request) <= {_SAMPLE_BYTES})) "
        f"FROM (SELECT *, row_number() OVER (PARTITION BY site ORDER BY result_key) AS number FROM ({pending}) AS p "
        "WHERE state = 'missing') AS n GROUP BY site"
    )
    found = {int(row[0]): (int(row[1]), int(row[2] or 0), json.loads(row[3] or "[]")) for row in rows}
    return [_of_call(execute, call, found.get(n, (0, 0, [])), settings, results_table) for n, call in enumerate(calls)]


def _of_call(
    execute: Callable[[str], Sequence[Sequence[Any]]],
    call: AiCall,
    asked: tuple[int, int, list[str]],
    settings: AiSettings,
    results_table: str,
) -> CallForecast:
    number = asked[0]
    each = [_of_model(execute, call, model, asked, settings, results_table) for model in call.models]
    reach, shares = [number] * len(each), None
    if call.cascade and number:
        shares = _declined(execute, call, results_table)
        reach = [round(number * share) for share in shares or [1.0] * len(each)]
    weights = [r / number if number else 0.0 for r in reach]
    price = settings.price_of(call.model)
    direct, batch = price.direct, price.in_batch(settings.batch_price_factor)
    priced = any(direct) or any(batch) or any(one.cost for one in each)
    most = sum(one.cost for one in each)
    return CallForecast(
        function=call.function,
        line=call.line,
        model=" → ".join(call.models),
        calls=number,
        input_tokens=round(sum(one.input_tokens * w for one, w in zip(each, weights, strict=True))),
        output_tokens=round(sum(one.output_tokens * w for one, w in zip(each, weights, strict=True))),
        cost=sum(one.cost * w for one, w in zip(each, weights, strict=True)) if priced else None,
        batch_cost=each[-1].batch_cost if priced and settings.provider == "openai" and not call.cascade else None,
        counted=all(one.counted for one in each) and bool(asked[2]),
        cascade=Range(number * len(each), each[0].cost, most, reach if shares else None) if call.cascade else None,
        cached_tokens=round(sum(one.cached_tokens * w for one, w in zip(each, weights, strict=True))),
        place=call.place,
    )


@dataclass(frozen=True)
class _OfModel:
    input_tokens: int
    output_tokens: int
    cost: float
    batch_cost: float
    counted: bool
    cached_tokens: int


def _of_model(
    execute: Callable[[str], Sequence[Sequence[Any]]],
    call: AiCall,
    model: str,
    asked: tuple[int, int, list[str]],
    settings: AiSettings,
    results_table: str,
) -> _OfModel:
    """What it takes where this model is asked about every input."""
    number, size, sample = asked
    tokenizer, site = tokenizer_of(model), site_of(call)
    tokens = sum(input_tokens(site.request(text), tokenizer or four_bytes) for text in sample)
    sampled = sum(len(text.encode()) for text in sample)
    if 0 < len(sample) < number:
        tokens = round(tokens * size / sampled)
    elif not sample:
        tokens = -(-size // 4)
    output = number * expected_output(execute, results_table, model, [call]) if number else 0
    price = settings.price_of(model)
    cached = 0
    if number and price.cached_input is not None:
        cached = round(tokens * cached_share(execute, results_table, model, [call]))
    return _OfModel(
        tokens,
        output,
        cost_of(price.direct, tokens, output, cached),
        cost_of(price.in_batch(settings.batch_price_factor), tokens, output),
        tokenizer is not None,
        cached,
    )


def _declined(
    execute: Callable[[str], Sequence[Sequence[Any]]], call: AiCall, results_table: str
) -> list[float] | None:
    """The share of this cascade's answers so far for which each model was asked, None before there are _ENOUGH."""
    rows = execute(
        f"SELECT {REQUESTS}, count(*) FROM {results_table} WHERE function = {quote(call.function)} AND status = 'ok' AND "
        f"identity_hash = {quote(call.identity_hash)} GROUP BY 1"
    )
    found = {int(row[0]): int(row[1]) for row in rows}
    total = sum(found.values())
    if total < _ENOUGH:
        return None
    return [sum(n for asked, n in found.items() if asked > place) / total for place in range(len(call.cascade))]
