"""Which rows a move of the clock lets in or out: a condition that reads only the files in which there can be any.

A bound such as `ts + interval 30 days` is computed per row, so a test on it reads the whole table. Where the predicate is
made of comparisons, its truth at two instants is compared instead: `ts >= a AND NOT ts >= b` is a range of the column
itself, which Delta's statistics and Parquet's row groups answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlglot import exp

from spark_mv.query.functions.catalogue import is_clock
from spark_mv.query.rewrite.pin import Pins, pin, timestamp_literal
from spark_mv.query.syntax.condition import HEAD

NEAR = timedelta(days=1)
"""How far ahead the next bound is looked for at first: most windows move by the day, and only few rows are read."""


@dataclass(frozen=True)
class Between:
    """Two instants, each with all that is pinned at it; `low` is the earlier one."""

    low: Pins
    high: Pins

    @classmethod
    def of(cls, pins: Pins, other: datetime) -> Between:
        """The run's instant and another one, in their order."""
        low, high = sorted((pins.as_of, other))
        return cls(pins.at(low), pins.at(high))


def bound_between(text: str, compared: bool, valid_from: str | None, valid_to: str | None, between: Between) -> str:
    """Condition: a bound of the solved predicate `text` (`compared`: it is a comparison) lies after the first instant and not after the second. Rows that
    come and go in between are found too: only a predicate with one bound can tell by its truth at the two instants."""
    if (valid_from is None or valid_to is None) and compared:
        low, high = pinned_condition(text, between.low), pinned_condition(text, between.high)
        return f"((({low}) AND NOT ({high})) OR (({high}) AND NOT ({low})))"
    low, high = (timestamp_literal(pins.as_of, "UTC") for pins in (between.low, between.high))
    tests = [f"(({bound}) > {low} AND ({bound}) <= {high})" for bound in (valid_from, valid_to) if bound is not None]
    return f"({' OR '.join(tests)})" if tests else "false"


def pinned_condition(text: str, pins: Pins) -> str:
    """A condition with the clock's values in it."""
    return pin(HEAD + text, pins).sql[len(HEAD) :]


def is_comparison(node: exp.Expr) -> bool:
    """Whether the condition is a comparison, or comparisons joined by AND: then it is NULL at every instant or at none
    at which it could be true, and NOT tells the rows for which it is not true. OR can go from NULL to true."""
    if isinstance(node, exp.And):
        return is_comparison(node.left) and is_comparison(node.right)
    if isinstance(node, exp.Paren):
        return is_comparison(node.this)
    plain = isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ | exp.Between)
    # a function may be NULL for some of its arguments only; those of the clock that sqlglot has no class for are not
    unknown = any(not is_clock(call.name) for call in node.find_all(exp.Anonymous))
    return plain and not unknown and node.find(exp.Query, exp.Or, exp.Case, exp.If, exp.Coalesce, exp.Nullif) is None
