"""One SELECT of a query as spans of its text: what stands where."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp

from spark_mv.query.syntax.joins import EACH_ROW_ALIKE
from spark_mv.query.syntax.source_text import Span


class Context(str, Enum):
    """Where a block stands: as the query itself, in a CTE, as a FROM item, in an expression."""

    OUTERMOST = "outermost"
    CTE = "cte"
    DERIVED = "derived"
    EXPRESSION = "expression"


Ctes = tuple[tuple[str, Span], ...]


@dataclass(frozen=True)
class Item:
    """One entry of a select list; `alias` as written without quotes, '' when it has none."""

    span: Span
    alias: str


@dataclass(frozen=True)
class Join:
    """One JOIN: what `join_kind` says, NATURAL, PIVOT or UNPIVOT; its ON conjuncts."""

    kind: str
    on: tuple[Span, ...] = ()

    @property
    def inner(self) -> bool:
        return self.kind in EACH_ROW_ALIKE


@dataclass(frozen=True)
class Block:
    """One SELECT. Spans are None where the clause is missing; `select` is the span of the list, `from_` and `where`
    those of the clause with its keyword. `clauses` names every clause present, e.g. {'GROUP BY', 'LIMIT'}.
    `name` is the CTE or derived table's name; `parent` the index of the enclosing block (None for the outermost and
    for CTEs of the outermost WITH); `others` are the bodies of the remaining clauses; `ctes` the names, in lower
    case, and definitions (`name AS (…)`) that the block can see; `set_operand` when it is one side of UNION, EXCEPT, INTERSECT. `tree` is the SELECT
    in the tree of the whole query, not to be changed."""

    span: Span
    select: Span
    items: tuple[Item, ...]
    from_: Span | None
    where: Span | None
    conjuncts: tuple[Span, ...]
    joins: tuple[Join, ...]
    clauses: frozenset[str]
    context: Context
    name: str
    parent: int | None
    set_operand: bool
    distinct: bool
    lateral: bool = False
    others: tuple[tuple[str, Span], ...] = ()
    ctes: Ctes = ()
    tree: exp.Select = field(default_factory=exp.Select, compare=False, repr=False)
