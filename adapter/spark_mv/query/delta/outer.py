"""Subqueries in conditions, and the rows around them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.delta.names import Columns, FromColumns, Place
from spark_mv.query.syntax.select_tree import Node, SelectNode, SetNode
from spark_mv.query.syntax.source_text import tokenize


def outer_columns(query: Node, scope: FromColumns, tables: Columns) -> set[Place]:
    """The columns of the scope around that a subquery uses."""
    found: set[Place] = set()
    if isinstance(query, SetNode):
        return set().union(*(outer_columns(arm, scope, tables) for arm in query.arms))
    own = FromColumns.of(query, tables)
    for column in query.tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Star) and own.resolve(column) is None:
            place = scope.resolve(column)
            if place is not None:
                found.add(place)
    return found


def with_outer(query: SelectNode) -> SelectNode:
    """The subquery of an EXISTS: its select list does not matter, its WHERE may use columns from around."""
    return replace(query, items=(), laterals=query.laterals or " ", distinct=False, windows=())


def is_tied(query: SelectNode, tables: Columns) -> bool:
    """Whether an equality with a column from around stands in the WHERE of a subquery."""
    own = FromColumns.of(query, tables)
    return any(isinstance(p.node.unnest(), exp.EQ) and not own.references(p.node)[1] for p in query.where)


def before_in(text: str, query: str) -> str | None:
    """What stands before IN and the subquery; None where it is no plain IN. Comments may stand anywhere."""
    words = tokenize(text[: text.index(query)])
    while words and words[-1].kind == TokenType.L_PAREN:
        words = words[:-1]
    if len(words) < 2 or words[-1].word != "IN" or words[-2].word == "NOT":
        return None
    return text[: words[-2].end]
