"""One SELECT parsed, with the name and place of every function call as the user wrote it.

sqlglot renames functions while it parses (`now()` becomes CURRENT_TIMESTAMP, `date_add` a TsOrDsAdd), so the written
name is stamped on the node in `meta["call"]`, and keyword forms (CURRENT_DATE) are told from calls.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from .verdict import QueryError

_WRAPPERS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True)
class Call:
    """A function as written: `name` lower case, offset of its first character, `keyword` if without parentheses."""

    name: str
    start: int
    keyword: bool = False
    empty: bool = False  # written with nothing between the parentheses


@dataclass(frozen=True)
class Parsed:
    """One query, its text and tokens. `tree` is sqlglot's; do not change it in place."""

    sql: str
    tree: exp.Query
    tokens: tuple[Token, ...]
    line_starts: tuple[int, ...]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of the character at `offset`."""
        return position(self.line_starts, offset)


def position(line_starts: tuple[int, ...], offset: int) -> tuple[int, int]:
    line = bisect_right(line_starts, offset)
    return line, offset - line_starts[line - 1] + 1


def line_starts(sql: str) -> tuple[int, ...]:
    return (0, *(i + 1 for i, char in enumerate(sql) if char == "\n"))


def _stamp(node: Any, token: Token, follower: Token | None, third: Token | None) -> None:
    keyword = not follower or follower.token_type != TokenType.L_PAREN
    empty = not keyword and third is not None and third.token_type == TokenType.R_PAREN
    while isinstance(node, _WRAPPERS) and "call" not in node.meta:
        node = node.this
    if isinstance(node, exp.Expr) and "call" not in node.meta:
        node.meta["call"] = Call(token.text.lower(), token.start, keyword, empty)


def _after(parser: Any) -> Token | None:
    index = parser._index + 2
    return parser._tokens[index] if index < len(parser._tokens) else None


class _SparkParser(SparkParser):
    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token, follower, third = self._curr, self._next, _after(self)
        node = super()._parse_function_call(*args, **kwargs)
        if node is not None:
            _stamp(node, token, follower, third)
        return node


class _DatabricksParser(DatabricksParser):
    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token, follower, third = self._curr, self._next, _after(self)
        node = super()._parse_function_call(*args, **kwargs)
        if node is not None:
            _stamp(node, token, follower, third)
        return node


def _error(starts: tuple[int, ...], error: ParseError) -> QueryError:
    detail = error.errors[0] if error.errors else {}
    what = str(detail.get("description") or error).strip().rstrip(".")
    line, column = int(detail.get("line") or 1), int(detail.get("col") or 1)
    near = str(detail.get("highlight") or "")
    if near:
        # sqlglot counts to the end of the token
        column = max(1, column - len(near) + 1)
        what = f"{what} near {near!r}"
    return QueryError("PARSE_ERROR", what, line, column)


def parse(sql: str) -> Parsed | QueryError:
    """`sql` as one parsed query, or why not (code PARSE_ERROR, EMPTY_QUERY, NOT_ONE_STATEMENT or NOT_A_SELECT).

    Spark's dialect is tried first, then Databricks' for the syntax that it alone knows. What sqlglot would keep as
    an opaque command is an error: nothing is guessed.
    """
    starts = line_starts(sql)
    failure: QueryError | None = None
    for dialect, parser in ((Spark(), _SparkParser), (Databricks(), _DatabricksParser)):
        try:
            tokens = dialect.tokenize(sql)
            trees = [
                tree for tree in parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE).parse(tokens, sql) if tree
            ]
        except ParseError as error:
            failure = failure or _error(starts, error)
            continue
        except TokenError as error:
            failure = failure or QueryError("PARSE_ERROR", str(error).strip(), 1, 1)
            continue
        except RecursionError:
            return QueryError("PARSE_ERROR", "the statement is nested too deeply", 1, 1)
        if not trees:
            return QueryError("EMPTY_QUERY", "the model has no SELECT", 1, 1)
        if len(trees) > 1:
            return QueryError(
                "NOT_ONE_STATEMENT", f"the model has {len(trees)} statements; it must be one SELECT", 1, 1
            )
        tree = trees[0]
        if isinstance(tree, exp.Subquery) or isinstance(tree, exp.Query):
            return Parsed(sql, tree, tuple(tokens), starts)
        failure = failure or QueryError(
            "NOT_A_SELECT", f"the model is a {tree.key.upper()} statement; it must be one SELECT", 1, 1
        )
    assert failure is not None
    return failure
