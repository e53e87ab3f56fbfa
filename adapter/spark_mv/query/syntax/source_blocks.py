"""The SELECT blocks of a query as spans of its text: select list, FROM, WHERE with its conjuncts, JOIN conditions.

A block is one SELECT … with its clauses; blocks nest by parentheses and stand side by side in set operations. The scan
works on tokens and is checked against sqlglot's own parse of every block: a difference raises SourceTextError, so that
an edit is never made at a place that was misread.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.syntax.condition import read_condition
from spark_mv.query.syntax.parse import read_query
from spark_mv.query.syntax.source_block import Block, Context, Item, Join
from spark_mv.query.syntax.source_scan import Scan
from spark_mv.query.syntax.source_text import SourceTextError, Span, tokenize

__all__ = ["Block", "Context", "Item", "Join", "select_blocks"]


@lru_cache(maxsize=32)
def select_blocks(sql: str) -> tuple[Block, ...]:
    """Every SELECT of the query; the blocks of the outermost query have `context` OUTERMOST.

    Raises SourceTextError for text whose structure is not understood.
    """
    tokens = tokenize(sql)
    while tokens and tokens[-1].kind == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens or any(token.kind == TokenType.SEMICOLON for token in tokens):
        raise SourceTextError("expected exactly one statement")
    scan = Scan(sql, tokens)
    scan.query(0, len(tokens), Context.OUTERMOST, "", None)
    for block in scan.blocks:
        _check(sql, block)
    return tuple(replace(block, ctes=_visible(block, scan.withs)) for block in scan.blocks)


def _check(sql: str, block: Block) -> None:
    """Compare the spans with sqlglot's parse of the block's text."""
    text = block.span.of(sql)
    parsed = read_query(text)
    if not isinstance(parsed, exp.Select):
        raise SourceTextError("a SELECT was not read as one")
    where = parsed.args.get("where")
    wanted = _flatten(where.this) if where else []
    found = [read_condition(span.of(sql)) for span in block.conjuncts]
    if len(parsed.expressions) != len(block.items):
        raise SourceTextError("the select list was read differently by the parser")
    if (where is None) != (block.where is None) or wanted != found:
        raise SourceTextError("the WHERE clause was read differently by the parser")
    if (parsed.args.get("from_") is None) != (block.from_ is None):
        raise SourceTextError("the FROM clause was read differently by the parser")


def _flatten(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_flatten(node.left), *_flatten(node.right)]
    return [node]


def _visible(block: Block, withs: list[tuple[Span, Span]]) -> tuple[Span, ...]:
    """The CTEs of the queries around the block that are written before it, outermost first."""
    return tuple(
        cte
        for query, cte in sorted(withs, key=lambda w: (w[0].start, w[1].start))
        if query.start <= block.span.start and block.span.end <= query.end and cte.end <= block.span.start
    )
