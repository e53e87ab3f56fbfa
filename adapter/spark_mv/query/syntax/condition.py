"""A condition by itself: the grammar wants a statement around it."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError

HEAD = "SELECT 1 WHERE "
"""Comes before a condition that is read. The places of its words count from there."""


def read_condition(text: str) -> exp.Expr | None:
    """The tree of a condition, or None where it is not understood."""
    found = parse(HEAD + text)
    where = None if isinstance(found, QueryError) else found.tree.args.get("where")
    return None if where is None else where.this
