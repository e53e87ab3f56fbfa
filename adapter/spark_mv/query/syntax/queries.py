"""The queries that a query consists of, and those in an expression."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def operands(query: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a set operation in the order of the text, or the query itself. What stands in parentheses is one of them."""
    stack = [query]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.SetOperation):
            stack += [node.expression, node.this]
        else:
            yield node


def whole_query(operand: exp.Expr) -> exp.Expr:
    """The set operation that a SELECT is an operand of, in parentheses or not; else the SELECT, with the parentheses around it."""
    node = operand
    while isinstance(node.parent, exp.SetOperation) or (
        isinstance(node.parent, exp.Subquery) and not node.parent.alias
    ):
        node = node.parent
    return node
