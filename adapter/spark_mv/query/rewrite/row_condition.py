"""A condition on the rows of one table alone, as `freeze_where` and `forget_values` take it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.rewrite.pin import ONCE_PER_RUN, Pins, pin
from spark_mv.query.syntax.aggregates import not_of_one_row
from spark_mv.query.syntax.condition import read_condition

_TAIL = "\n)"


@dataclass(frozen=True)
class RowCondition:
    """`text` as it is written; `columns`, the columns that it names (of a field, the struct), in lower case; `table` and `types`, what it is a condition on."""

    text: str
    columns: frozenset[str]
    table: str
    types: Mapping[str, str]

    @property
    def _head(self) -> str:
        return f"SELECT 1 AS one FROM {self.table} WHERE (\n"

    @property
    def _once(self) -> int:
        """How often it reads the clock, the user or the session, in strings beside a date, too."""
        types = {name.lower(): kind for name, kind in self.types.items()}
        verdict = analyze(self._head + self.text + _TAIL, unique_key="one", schemas={self.table: types}, model="")
        return sum(level in ONCE_PER_RUN for _, level, *_ in verdict.functions)

    def pinned(self, pins: Pins) -> str | None:
        """The condition with the values of one run in it; None where a word of it can not be given one value."""
        text = self._head + self.text + _TAIL
        pinned = pin(text, pins)
        if pinned.ambiguous or pinned.left or len(pinned.places) < self._once:
            return None
        return pinned.sql[len(self._head) : -len(_TAIL)]

    def stays_true(self, time_zone: str) -> bool:
        """Whether a row for which it is true at one instant has it true at all later ones, as long as its values stay."""
        split = split_clock(self._head + self.text + _TAIL, {self.table: self.types}, time_zone)
        if split.reason == "no clock function":
            return not self._once
        return split.all_solved and not split.clock_elsewhere and all(p.valid_to is None for p in split.predicates)


def row_condition(
    text: str,
    table: str,
    types: Mapping[str, str],
    allowed: Collection[Level] = ONCE_PER_RUN,
    functions: Mapping[str, Mapping[str, Any]] | None = None,
    model: str = "",
) -> RowCondition | str:
    """The condition, or what is wrong with it: a phrase that follows its text. `types`: the table's columns. `allowed`: levels of
    functions that it may call beside deterministic ones.

    >>> row_condition("id in (select id from gone)", "t", {"id": "bigint"})[:14]
    'has a subquery'
    >>> row_condition("sum(id) > 1", "t", {"id": "bigint"})[:16]
    'has an aggregate'
    """
    tree = read_condition(f"(\n{text}\n)")
    if not isinstance(tree, exp.Paren):
        return "is not understood"
    if tree.find(exp.Query):
        return "has a subquery, whose answer may be another one when the next run asks; list the values instead"
    if not_of_one_row(tree):
        return "has an aggregate, a window function or a generator, and has to be about one row alone"
    found = RowCondition(text, frozenset(c.parts[0].name.lower() for c in tree.find_all(exp.Column)), table, types)
    verdict = analyze(found._head + text + _TAIL, unique_key="one", functions=functions or {}, model=model)
    if verdict.errors:
        return f"is not understood: {verdict.errors[0].message}"
    for name, level, _, _ in verdict.functions:
        if level not in allowed:
            return f"depends on {name}, which is {level.value}, so that it would tell other rows at each look"
    return found
