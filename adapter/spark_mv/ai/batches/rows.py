"""The rows that close an input of a batch: its answer, its error, or why it could not be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.asking import Outcome
from spark_mv.ai.batches.state import Batch, Claim
from spark_mv.ai.prices import Rates
from spark_mv.ai.result_row import result_row
from spark_mv.ai.retry import Retries

ROWS = 500
"""Of one statement."""


@dataclass(frozen=True)
class Terms:
    """How answers are written down. `prices` gives those of a model in a batch, per 1,000 input and output tokens."""

    retries: Retries
    prices: Callable[[str], Rates]
    clean: Callable[[str], str] = str


def row_of(batch: Batch, claim: Claim, outcome: Outcome, terms: Terms) -> tuple[Any, ...]:
    """The row of an input of the batch, in the order of the table's columns."""
    return result_row(
        claim,
        claim.result_key,
        claim.arguments_hash,
        claim.failures,
        outcome,
        retries=terms.retries,
        prices=terms.prices(claim.model),
        invocation_id=batch.invocation_id,
        project=batch.project,
        request=claim.request,
        batch=batch.key,
    )
