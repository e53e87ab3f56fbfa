"""A conjunct as the user wrote it, cut from the tokens around its first name."""

from __future__ import annotations

from bisect import bisect_left

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from spark_mv.query.syntax.parse import Parsed, first_offset, parse, sql_text
from spark_mv.query.syntax.query_error import QueryError

_BEFORE = {"WHERE", "ON", "HAVING", "QUALIFY", "AND"}
_AFTER = {
    *_BEFORE, "GROUP BY", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "WINDOW", "JOIN", "LEFT",
    "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL", "UNION", "EXCEPT", "INTERSECT", "MINUS",
    "TABLESAMPLE", "PIVOT", "UNPIVOT", "|>", ";", "GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "USING",
}  # fmt: skip


def written(parsed: Parsed, node: exp.Expr) -> str:
    """The text of a conjunct, or its regenerated SQL where the cut does not read back as the same expression."""
    text = _cut(parsed, first_offset(node))
    if text:
        again = parse(f"SELECT {text}")
        if not isinstance(again, QueryError) and len(again.tree.expressions) == 1:
            read = again.tree.expressions[0]
            if not isinstance(read, exp.Alias) and sql_text(_bare(read)) == sql_text(_bare(node)):
                return text
    return sql_text(node)


def _bare(node: exp.Expr) -> exp.Expr:
    return node.unnest() if isinstance(node, exp.Paren) else node


def _cut(parsed: Parsed, offset: int | None) -> str:
    tokens = parsed.tokens
    if offset is None:
        return ""
    first = bisect_left([token.start for token in tokens], offset)
    if first >= len(tokens) or tokens[first].start != offset:
        return ""
    start = first
    while start > 0 and tokens[start - 1].text.upper() not in _BEFORE:
        start -= 1
        if tokens[start].token_type in (TokenType.R_PAREN, TokenType.COMMA, TokenType.SELECT):
            return ""
    end, unclosed = _end(tokens, start)
    if end <= first:
        return ""
    # parentheses around several conjuncts belong to none of them
    start += unclosed
    return parsed.sql[tokens[start].start : tokens[end - 1].end + 1]


def _end(tokens: tuple[Token, ...], start: int) -> tuple[int, int]:
    """The index after the conjunct's last token, and how many of its leading parentheses are not closed in it."""
    leading = 0
    while tokens[start + leading].token_type == TokenType.L_PAREN:
        leading += 1
    depth = between = cases = 0
    for i in range(start, len(tokens)):
        token, word = tokens[i], tokens[i].text.upper()
        quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        called = i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.L_PAREN
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            if depth == 0:
                return i, 0
            depth -= 1
        elif quoted:
            continue
        elif word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif word == "BETWEEN" and depth <= leading:
            between += 1
        elif cases == 0 and depth <= leading and word == "AND" and between:
            between -= 1
        elif cases == 0 and depth <= leading and word in _AFTER and not (called and word in ("LEFT", "RIGHT")):
            if depth == 0:
                return i, 0
            if word == "AND":
                return i, depth
    return len(tokens), 0
