"""Subqueries in conditions, and the rows around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.delta.names import Columns, FromColumns, Place
from spark_mv.query.syntax.select_tree import Node, NotIncremental, SelectNode, SetNode
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
    equalities = (exp.EQ, exp.NullSafeEQ)
    return any(isinstance(p.node.unnest(), equalities) and not own.references(p.node)[1] for p in query.where)


def shown_query(
    node: SelectNode, static: Callable[[Node], bool], followed: Callable[[Node], bool], by_rows: bool, tables: Columns
) -> SelectNode | None:
    """The subquery of a select list that the place of change is in (`followed`), None where it is elsewhere: what the others give is no anchor. `static`:
    whether nothing in a query changed; `by_rows`: whether what is followed is a table's changed rows. Raises NotIncremental for one that cannot be
    followed, and for those outside of select lists and WHERE."""
    changed = [query for query in node.deep if not static(query)]
    if any(query not in node.listed for query in changed):
        raise NotIncremental(
            "SUBQUERY", "a subquery outside WHERE: a change in its table can touch any row of the result"
        )
    found = next((query for query in changed if followed(query)), None)
    if found is None or (isinstance(found, SelectNode) and by_rows and is_tied(found, tables)):
        return found
    if not by_rows:
        raise NotIncremental(
            "SUBQUERY", "the clock decides in a subquery of the select list, and can touch any row of the result"
        )
    raise NotIncremental(
        "SUBQUERY",
        "a subquery in the select list, which no equality in its WHERE ties to its row: a change in its table can touch any row of the result",
    )


def before_in(text: str, query: str) -> str | None:
    """What stands before IN and the subquery; None where it is no plain IN. Comments may stand anywhere."""
    words = tokenize(text[: text.index(query)])
    while words and words[-1].kind == TokenType.L_PAREN:
        words = words[:-1]
    if len(words) < 2 or words[-1].word != "IN" or words[-2].word == "NOT":
        return None
    return text[: words[-2].end]
