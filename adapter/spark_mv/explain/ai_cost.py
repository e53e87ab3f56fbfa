"""What explain_mv says of the AI calls of the next run: a line per call, with tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spark_mv.ai.forecast import CallForecast
from spark_mv.explain.parts import table


def cost_lines(found: Sequence[CallForecast]) -> list[str]:
    """A table, and how its figures came about. Empty where nothing is to be asked."""
    due = [one for one in found if one.calls]
    if not due:
        return []
    priced = any(one.cost is not None for one in due)
    heads = ("column", "AI call", "model", "calls", "input tokens", "output tokens")
    rows = [(*heads, *(("cost", "in batches") if priced else ()))]
    for one in due:
        money = (money_text(one.cost), money_text(one.batch_cost)) if priced else ()
        rows.append(
            (
                one.place,
                f"{one.function} (line {one.line})",
                one.model,
                f"{one.calls:,}",
                f"{one.input_tokens:,}",
                f"{one.output_tokens:,}",
                *money,
            )
        )
    counted = {one.model for one in due if one.counted}
    guessed = {one.model for one in due} - counted
    notes = []
    if counted:
        notes.append(f"input of {', '.join(sorted(counted))} counted by its tokenizer")
    if guessed:
        notes.append(f"input of {', '.join(sorted(guessed))} estimated at four bytes a token")
    if cached := sum(one.cached_tokens for one in due):
        notes.append(f"{cached:,} input tokens at the price of cached input, as many as so far")
    return [*table(rows), f"  {'; '.join(notes)}; output as long as answers were so far", *_cascades(due, priced)]


def _cascades(due: Sequence[CallForecast], priced: bool) -> list[str]:
    lines = []
    for one in due:
        if (found := one.cascade) is None:
            continue
        money = f", cost {money_text(found.least_cost)} to {money_text(found.most_cost)}" if priced else ""
        basis = "above as if no answer but the last model's were accepted"
        if found.expected is not None:
            basis = f"above by the answers so far: {' → '.join(f'{n:,}' for n in found.expected)} requests"
        lines.append(
            f"  {one.function} (line {one.line}): {one.calls:,} to {found.most_requests:,} requests{money}; {basis}"
        )
    return lines


def cost_data(found: Sequence[CallForecast]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [asdict(one) for one in found]


def money_text(cost: float | None) -> str:
    """A cost in the unit of the prices."""
    return "-" if cost is None else f"{cost:,.4f}"
