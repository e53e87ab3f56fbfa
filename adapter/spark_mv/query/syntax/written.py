"""A conjunct as the user wrote it."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.parse import Parsed, sql_text


def written(parsed: Parsed, node: exp.Expr) -> str:
    """The text of a conjunct, or its regenerated SQL where the parser made it up."""
    span = node.meta.get("span")
    return parsed.sql[span[0] : span[1]] if span is not None else sql_text(node)
