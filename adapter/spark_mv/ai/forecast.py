"""What the next run would ask, by call of the query: how often, how many tokens, what it costs directly and in a batch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.expected import expected_output
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.results import timestamp
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.tokens import four_bytes, input_tokens, tokenizer_of
from spark_mv.ai.work import site_of
from spark_mv.query.ai_calls.ai_plan import AiCall

_SAMPLE = 50
"""Requests of each call whose tokens are counted; the rest is assumed to have as many for its bytes."""
_SAMPLE_BYTES = 20_000


@dataclass(frozen=True)
class CallForecast:
    """One call of the query. Tokens are estimates; `counted`: by the model's own tokenizer. `output_tokens` is as long as answers of
    the function were so far (see expected). Costs in the profile's currency, None without prices; `batch_cost` in batches."""

    function: str
    line: int
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    batch_cost: float | None
    counted: bool


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
    number, size, sample = asked
    tokenizer, site = tokenizer_of(call.model), site_of(call)
    tokens = sum(input_tokens(site.request(text), tokenizer or four_bytes) for text in sample)
    sampled = sum(len(text.encode()) for text in sample)
    if 0 < len(sample) < number:
        tokens = round(tokens * size / sampled)
    elif not sample:
        tokens = -(-size // 4)
    output = number * expected_output(execute, results_table, call.model, [call]) if number else 0
    price = settings.price_of(call.model)
    direct, batch = price.direct, price.in_batch(settings.batch_price_factor)
    priced = any(direct) or any(batch)
    return CallForecast(
        function=call.function,
        line=call.line,
        model=call.model,
        calls=number,
        input_tokens=tokens,
        output_tokens=output,
        cost=_cost(tokens, output, direct) if priced else None,
        batch_cost=_cost(tokens, output, batch) if priced and settings.provider == "openai" else None,
        counted=tokenizer is not None and bool(sample),
    )


def _cost(tokens: int, output: int, prices: tuple[float, float]) -> float:
    return (tokens * prices[0] + output * prices[1]) / 1000.0
