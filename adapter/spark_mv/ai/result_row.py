"""A row of the result table from the outcome of one input: the same whether it was asked directly or in a batch."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol

from spark_mv.ai.cascade import steps_text
from spark_mv.ai.plain import plain_count, plain_number, plain_text
from spark_mv.ai.prices import Rates, cost_of
from spark_mv.ai.results import COLUMNS
from spark_mv.ai.retry import OK, Retries

if TYPE_CHECKING:
    from spark_mv.ai.asking import Outcome


class Asked(Protocol):
    """Who was asked by which function: a call site, or an input of a batch."""

    @property
    def function(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def model_version(self) -> str: ...
    @property
    def identity_hash(self) -> str: ...
    @property
    def prompts(self) -> str: ...


def result_row(
    asked: Asked,
    key: str,
    arguments_hash: str,
    failures: int,
    outcome: Outcome,
    *,
    retries: Retries,
    prices: Rates,
    invocation_id: str,
    project: str,
    request: str | None = None,
    batch: str | None = None,
    near_key: str | None = None,
) -> tuple[Any, ...]:
    """The row, in the order of the table's columns. `prices` see Rates; `failures` before this one."""
    status, retry = OK, None
    if outcome.error_class:
        status, at = retries.fate(outcome.error_class, failures, outcome.called_at)
        retry = None if at is None else datetime.fromtimestamp(at, timezone.utc)
    cost = cost_of(prices, outcome.input_tokens, outcome.output_tokens, outcome.cached_tokens)
    model, version = asked.model, asked.model_version
    if outcome.steps:
        cost = sum(step.cost for step in outcome.steps)
        model, version = outcome.steps[-1].model, outcome.steps[-1].version
    cost = plain_number(cost) or 0.0
    row = (
        key,
        asked.function,
        arguments_hash,
        model,
        version,
        asked.identity_hash,
        status,
        outcome.value,
        outcome.error_class,
        outcome.error,
        outcome.attempts,
        outcome.input_tokens,
        outcome.output_tokens,
        cost,
        datetime.fromtimestamp(outcome.called_at, timezone.utc),
        retry,
        invocation_id,
        request,
        project or None,
        batch,
        outcome.confidence,
        steps_text(outcome.steps),
        outcome.cached_tokens,
        asked.prompts or None,
        near_key,
        None,
    )
    return tuple(_plain(value, kind) for value, (_, kind, _) in zip(row, COLUMNS, strict=True))


def _plain(value: Any, kind: str) -> Any:
    """The value as a column of this type can hold it: what the config and the SQL say stands beside what a provider gave."""
    if value is None or kind == "TIMESTAMP":
        return value
    if kind == "STRING":
        return plain_text(value)
    return plain_number(value) if kind == "DOUBLE" else plain_count(value)
