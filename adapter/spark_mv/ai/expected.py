"""How many tokens an answer is expected to take, and how many of its input to be cached, before there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_mv.ai.cascade import STEPS
from spark_mv.ai.plain import plain_count
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.syntax.source_text import string_literal as quote

UNKNOWN = 64
"""Output tokens of an answer where the result table knows none of the same function and model."""
_LIMITS = ("max_completion_tokens", "max_tokens")


def expected_output(
    execute: Callable[[str], Sequence[Sequence[Any]]], results_table: str, model: str, calls: Sequence[AiCall]
) -> int:
    """The average of what these functions' answers by the model took so far; else the limit that the parameters set, else
    UNKNOWN. A vector takes no output."""
    if all(call.embedding for call in calls):
        return 0
    functions = ", ".join(sorted({quote(call.function) for call in calls}))
    rows = execute(
        f"SELECT ceil(avg(coalesce(element_at({STEPS}, -1).output_tokens, output_tokens))) FROM {results_table} WHERE status = 'ok' AND output_tokens > 0 "
        f"AND model = {quote(model)} AND function IN ({functions})"
    )
    if rows and rows[0][0] is not None:
        return int(rows[0][0])
    return max((_whole(call.parameters.get(word)) for call in calls for word in _LIMITS), default=0) or UNKNOWN


def _whole(limit: Any) -> int:
    """The limit as a number, 0 for what is none: it is for the endpoint to refuse it."""
    return plain_count(int(limit) if isinstance(limit, str) and limit.isdecimal() else limit)


def cached_share(
    execute: Callable[[str], Sequence[Sequence[Any]]], results_table: str, model: str, calls: Sequence[AiCall]
) -> float:
    """The share of input tokens that the endpoint had cached, of these functions' answers by the model so far; 0.0 before there are any.
    Of the models of a cascade it is not known."""
    functions = ", ".join(sorted({quote(call.function) for call in calls}))
    rows = execute(
        f"SELECT sum(cached_tokens) / sum(input_tokens) FROM {results_table} WHERE status = 'ok' AND input_tokens > 0 AND cached_tokens IS NOT NULL "
        f"AND steps IS NULL AND batch IS NULL AND model = {quote(model)} AND function IN ({functions})"
    )
    return float(rows[0][0] or 0.0) if rows else 0.0
