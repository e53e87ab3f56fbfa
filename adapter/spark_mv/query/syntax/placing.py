"""Where the pieces of a query stand in its text: `meta["span"]` is the place (start, end) of an expression, a conjunct, a query or a
FROM item, `meta["select"]` that of the parts of a SELECT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import TokenType


@dataclass(frozen=True)
class SelectParts:
    """The places (start, end) of one SELECT and its parts: the whole, the select list, FROM (None without) and the other
    clauses with their keywords, in the order of the text. FROM reaches to the clause after it, joins included."""

    span: tuple[int, int]
    listed: tuple[int, int]
    from_: tuple[int, int] | None
    clauses: tuple[tuple[str, int, int], ...]


@dataclass
class _Open:
    """A SELECT that is being parsed, in indices of tokens."""

    first: int
    listed: tuple[int, int] | None = None
    from_: int | None = None
    node: exp.Select | None = None
    clauses: list[tuple[str, int, int]] = field(default_factory=list)


def _marked(parse: Callable[[Any], tuple[str, Any]]) -> Callable[[Any], tuple[str, Any]]:
    """A parser of a clause that leaves the clause's place with its SELECT."""

    def run(parser: Any) -> tuple[str, Any]:
        first = parser._index
        found = parse(parser)
        if found[1]:
            parser._mark(first)
        return found

    return run


_CLAUSES = frozenset(
    {
        TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW, TokenType.ORDER_BY,
        TokenType.LIMIT, TokenType.OFFSET, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.SORT_BY,
    }
)  # fmt: skip


class Placing(Parser):
    """Places of expressions, conjuncts, queries and the clauses of SELECTs."""

    _opened: list[_Open]
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        kind: _marked(parse) if kind in _CLAUSES else parse
        for kind, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
    }

    def reset(self) -> None:
        super().reset()
        self._opened = []

    def _place(self, node: Any, first: int) -> Any:
        if isinstance(node, exp.Expr) and self._index > first:
            # the same node may come back from several levels; the widest text of it is its own
            node.meta["span"] = (self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        return node

    def _mark(self, first: int, word: str = "") -> None:
        if self._opened and self._opened[-1].node is not None:
            word = word or " ".join(self._tokens[first].text.upper().split())
            self._opened[-1].clauses.append((word, first, self._index))

    def _parse_expression(self) -> exp.Expr | None:
        first = self._index
        node = self._place(self._parse_assignment(), first)
        return self._place(self._parse_alias(node), first)  # type: ignore[no-any-return]

    def _parse_disjunction(self) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_disjunction(), first)  # type: ignore[no-any-return]

    def _parse_conjunction(self) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_conjunction(), first)  # type: ignore[no-any-return]

    def _parse_equality(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_equality(*args, **kwargs), first)  # type: ignore[no-any-return]

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_select(*args, **kwargs), first)  # type: ignore[no-any-return]

    def _parse_cte(self) -> Any:
        first = self._index
        return self._place(super()._parse_cte(), first)

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        self._opened.append(_Open(self._index))
        try:
            return super()._parse_select_query(*args, **kwargs)
        finally:
            self._opened.pop()

    def _parse_projections(self) -> Any:
        first = self._index
        found = super()._parse_projections()
        self._opened[-1].listed = (first, self._index)
        return found

    def _parse_from(self, *args: Any, **kwargs: Any) -> exp.From | None:
        first = self._index
        found = super()._parse_from(*args, **kwargs)
        if found is not None and self._opened and self._opened[-1].node is None:
            self._opened[-1].from_ = first
        return found

    def _parse_query_modifiers(self, this: Any) -> Any:
        opened = self._opened[-1] if self._opened else None
        if opened is None or not isinstance(this, exp.Select) or opened.listed is None or opened.node is not None:
            found = super()._parse_query_modifiers(this)
            if isinstance(found, exp.SetOperation) and "span" in found.meta:
                found.meta["span"] = (found.meta["span"][0], self._tokens[self._index - 1].end + 1)
            return found
        opened.node = this
        found = super()._parse_query_modifiers(this)
        if self._tokens[opened.first].token_type == TokenType.SELECT:
            this.meta["select"] = self._parts(opened)
            this.meta["span"] = this.meta["select"].span
        return found

    def _parts(self, opened: _Open) -> SelectParts:
        def place(first: int, end: int) -> tuple[int, int]:
            return self._tokens[first].start, self._tokens[end - 1].end + 1

        assert opened.listed is not None
        starts = [first for _, first, _ in opened.clauses]
        ends = [*starts, self._index][1:]
        from_end = min(
            [first for first in starts if opened.from_ is not None and first > opened.from_] or [self._index]
        )
        return SelectParts(
            place(opened.first, self._index),
            place(*opened.listed),
            place(opened.from_, from_end) if opened.from_ is not None else None,
            tuple((word, *place(first, end)) for (word, first, _), end in zip(opened.clauses, ends, strict=True)),
        )

    def _parse_set_operations(self, this: Any) -> Any:
        found = super()._parse_set_operations(this)
        if isinstance(found, exp.SetOperation) and found is not this and isinstance(this, exp.Expr):
            start = this.meta.get("span", (self._tokens[0].start,))[0]
            found.meta["span"] = (start, self._tokens[self._index - 1].end + 1)
            _without_tail(found)
        return found

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
        found = super()._parse_join(*args, **kwargs)
        if found is not None and comma:
            found.meta["comma"] = True
        return found

    def _parse_lateral(self) -> exp.Lateral | None:
        first = self._index
        found = super()._parse_lateral()
        if found is not None and found.args.get("view"):
            self._mark(first, "LATERAL VIEW")
        return found


def _without_tail(whole: exp.SetOperation) -> None:
    """What stands behind the last operand and is of the whole (ORDER BY, LIMIT) is no part of the operand, whose parser met it."""
    last: exp.Expr = whole
    while isinstance(last, exp.SetOperation) or (isinstance(last, exp.Subquery) and "span" not in last.meta):
        last = last.expression if isinstance(last, exp.SetOperation) else last.this
    parts = last.meta.get("select")
    if not isinstance(parts, SelectParts):
        return
    own = tuple(clause for clause in parts.clauses if clause[0] not in _OF_ALL or last.args.get(_OF_ALL[clause[0]]))
    if len(own) < len(parts.clauses):
        end = max([parts.listed[1], *(end for _, _, end in own), *(parts.from_ or ())])
        last.meta["select"] = replace(parts, span=(parts.span[0], end), clauses=own)
        last.meta["span"] = (parts.span[0], end)


_OF_ALL = {
    "ORDER BY": "order", "LIMIT": "limit", "OFFSET": "offset", "SORT BY": "sort", "DISTRIBUTE BY": "distribute", "CLUSTER BY": "cluster",
}  # fmt: skip
"""Clauses that sqlglot moves from the last operand to the set operation, and where it keeps them."""
