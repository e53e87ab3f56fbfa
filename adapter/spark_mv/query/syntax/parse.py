"""One SELECT parsed, with the name and place of every function call as the user wrote it.

sqlglot renames functions while it parses (`now()` becomes CURRENT_TIMESTAMP, `date_add` a TsOrDsAdd), so the written
name is stamped on the node in `meta["call"]`, and keyword forms (CURRENT_DATE) are told from calls.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax import pipes
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import SourceTextError
from spark_mv.query.syntax.tokens import UNSIGNED_SHIFT, mended, with_unsigned_shift

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
    tree: exp.Expr
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


_LIKES = (TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE)


def _stamp(node: Any, token: Token, follower: Token | None, third: Token | None, before: Token | None) -> None:
    keyword = not follower or follower.token_type != TokenType.L_PAREN
    empty = not keyword and third is not None and third.token_type == TokenType.R_PAREN
    while isinstance(node, _WRAPPERS) and "call" not in node.meta:
        node = node.this
    if isinstance(node, exp.Any | exp.All) and before is not None and before.token_type in _LIKES:
        return  # LIKE ANY (…), which is no call
    if isinstance(node, exp.Expr) and "call" not in node.meta:
        if isinstance(node, exp.Anonymous) and isinstance(node.this, str):
            node.set("this", token.text)
            _with_unit(node)
        node.meta["call"] = Call(token.text.lower(), token.start, keyword, empty)


def _with_unit(node: exp.Anonymous) -> None:
    """timediff(SECOND, a, b): the unit is a word, no column. (sqlglot knows the other functions of that kind.)"""
    first = node.expressions[0] if len(node.expressions) == 3 else None
    if str(node.this).lower() == "timediff" and isinstance(first, exp.Column):
        node.set("expressions", [exp.Var(this=first.name.upper()), *node.expressions[1:]])


def _after(parser: Any) -> Token | None:
    index = parser._index + 2
    return parser._tokens[index] if index < len(parser._tokens) else None


def _shift(this: exp.Expr, expression: exp.Expr) -> exp.Expr:
    node = exp.Anonymous(this="shiftrightunsigned", expressions=[this, expression])
    node.meta["call"] = Call("shiftrightunsigned", first_offset(this) or 0)
    return node


def _as_written(node: Any, args: list[Any] | None) -> Any:
    """The node, or a plain call with all arguments where sqlglot knows fewer (or more) arguments than Spark has: it
    would drop the rest."""
    if args is not None and isinstance(node, exp.Func) and node.error_messages(args):
        return exp.Anonymous(this=node.sql_name().lower(), expressions=list(args))
    return node


def _placed(parser: Any, parse_one: Callable[[], exp.Expr | None]) -> exp.Expr | None:
    """An expression with its place in the text, in `meta["span"]`: its columns are named after what was written."""
    first = parser._index
    node = parse_one()
    if isinstance(node, exp.Expr) and parser._index > first:
        node.meta["span"] = (parser._tokens[first].start, parser._tokens[parser._index - 1].end + 1)
    return node


def _sampled(node: Any, sample: exp.Expr | None) -> Any:
    """`(query) TABLESAMPLE (…) AS s`: Spark writes the sample before the alias, sqlglot looks for it behind."""
    if node is not None and sample is not None:
        node.set("sample", sample)
    return node


# functions of which sqlglot drops arguments that Spark has
_PLAIN = frozenset({"PERCENTILE"})


def _but_plain(table: dict[str, Any]) -> dict[str, Any]:
    return {name: parser for name, parser in table.items() if name not in _PLAIN}


class _Written(Parser):
    """What both dialects' parsers do differently from sqlglot's: places in the text, pipes, samples of subqueries."""

    _right_of_pipe = False  # at the FROM item of a `|> JOIN`

    def validate_expression(self, expression: Any, args: list[Any] | None = None) -> Any:
        return super().validate_expression(_as_written(expression, args), None if args is None else [])

    def _parse_expression(self) -> exp.Expr | None:
        return _placed(self, super()._parse_expression)

    def _parse_pipe_syntax_join(self, query: exp.Query) -> exp.Query | None:
        query = pipes.settled(self, query)
        self._right_of_pipe = True
        try:
            return super()._parse_pipe_syntax_join(query)
        finally:
            self._right_of_pipe = False

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._right_of_pipe:
            # what follows the joined query belongs to the pipe, what is inside its parentheses does not
            self._right_of_pipe = False
            kwargs["consume_pipe"] = False
        return super()._parse_select(*args, **kwargs)

    def _parse_subquery(self, this: exp.Expr | None, *args: Any, **kwargs: Any) -> exp.Subquery | None:
        sample = self._parse_table_sample() if this is not None else None
        return _sampled(super()._parse_subquery(this, *args, **kwargs), sample)  # type: ignore[no-any-return]

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        before, token, follower, third = self._prev, self._curr, self._next, _after(self)
        node = super()._parse_function_call(*args, **kwargs)
        if node is not None:
            _stamp(node, token, follower, third, before)
        return node


class _SparkParser(_Written, SparkParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = _but_plain(SparkParser.FUNCTIONS)
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _but_plain(SparkParser.FUNCTION_PARSERS)
    BITWISE: ClassVar[dict[TokenType, Any]] = {**SparkParser.BITWISE, UNSIGNED_SHIFT: _shift}
    PIPE_SYNTAX_TRANSFORM_PARSERS = pipes.with_spark(SparkParser.PIPE_SYNTAX_TRANSFORM_PARSERS)


class _DatabricksParser(_Written, DatabricksParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = _but_plain(DatabricksParser.FUNCTIONS)
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _but_plain(DatabricksParser.FUNCTION_PARSERS)
    BITWISE: ClassVar[dict[TokenType, Any]] = {**DatabricksParser.BITWISE, UNSIGNED_SHIFT: _shift}
    PIPE_SYNTAX_TRANSFORM_PARSERS = pipes.with_spark(DatabricksParser.PIPE_SYNTAX_TRANSFORM_PARSERS)


def first_offset(node: exp.Expr | None) -> int | None:
    """The offset of the leftmost token that any node under `node` remembers."""
    if node is None:
        return None
    best: int | None = None
    stack = [node]
    while stack:
        item = stack.pop()
        call = item.meta.get("call")
        start = call.start if isinstance(call, Call) else item.meta.get("start")
        if start is not None and (best is None or start < best):
            best = start
        stack.extend(item.iter_expressions())
    return best


def sql_text(node: exp.Expr) -> str:
    """The node as SQL text for people, on one line, without comments. Remembered on the node: the tree never changes."""
    known = node.meta.get("text")
    if known is None:
        try:
            known = node.sql(Spark, comments=False, unsupported_level=ErrorLevel.IGNORE)
        except Exception:  # a node that the generator does not know; the text is only shown
            known = node.key.upper()
        node.meta["text"] = known
    return str(known)


def _error(starts: tuple[int, ...], error: ParseError) -> QueryError:
    detail = error.errors[0] if error.errors else {}
    what = str(detail.get("description") or error).strip().rstrip(".")
    line, column = int(detail.get("line") or 1), int(detail.get("col") or 1)
    near = str(detail.get("highlight") or "")
    if what.startswith("Required keyword"):
        what = "something is missing"
    if near:
        # sqlglot counts to the end of the token
        column = max(1, column - len(near) + 1)
        what = f"{what} near {near!r}"
    return QueryError("PARSE_ERROR", what, line, column)


@lru_cache(maxsize=32)
def parse(sql: str) -> Parsed | QueryError:
    """`sql` as one parsed query, or why not (code PARSE_ERROR, EMPTY_QUERY, NOT_ONE_STATEMENT or NOT_A_SELECT).

    Spark's dialect is tried first, then Databricks' for the syntax that it alone knows. What sqlglot would keep as
    an opaque command is an error: nothing is guessed.
    """
    starts = line_starts(sql)
    failure: QueryError | None = None
    for dialect, parser in ((Spark(), _SparkParser), (Databricks(), _DatabricksParser)):
        try:
            tokens = mended(dialect.tokenize(sql))
        except TokenError as error:
            failure = failure or QueryError("PARSE_ERROR", str(error).strip(), *_token_place(sql, str(error)))
            continue
        braces = [t for t in tokens if t.text in ("{{", "{%") or sql[t.start : t.start + 2] in ("{{", "{%")]
        if braces:
            what = "there is Jinja in the text; analyse the compiled SQL (target/compiled)"
            return QueryError("PARSE_ERROR", what, *position(starts, braces[0].start))
        for attempt in (tokens, with_unsigned_shift(tokens)):
            if attempt is None:
                continue
            result = _trees(parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE), attempt, sql, starts)
            if not isinstance(result, QueryError):
                return Parsed(sql, result, tuple(tokens), starts)
            failure = failure or result
    assert failure is not None
    return failure


def _trees(parser: Any, tokens: list[Token], sql: str, starts: tuple[int, ...]) -> exp.Expr | QueryError:
    try:
        trees = [tree for tree in parser.parse(tokens, sql) if tree is not None and not isinstance(tree, exp.Semicolon)]
    except ParseError as error:
        return _error(starts, error)
    except RecursionError:
        return QueryError("PARSE_ERROR", "the statement is nested too deeply", 1, 1)
    except Exception as error:  # sqlglot's own failures on broken input; they mean "not understood"
        return QueryError("PARSE_ERROR", f"the statement is not understood ({type(error).__name__}: {error})", 1, 1)
    if not trees:
        return QueryError("EMPTY_QUERY", "there is no SELECT", 1, 1)
    if len(trees) > 1:
        return QueryError("NOT_ONE_STATEMENT", f"there are {len(trees)} statements; a model is one SELECT", 1, 1)
    tree = trees[0]
    if isinstance(tree, exp.Query | exp.Values):
        return _without_lost_calls(tree, tokens, starts) or tree
    return QueryError("NOT_A_SELECT", f"this is {_kind(tree)}; a model is one SELECT", 1, 1)


def _kind(tree: exp.Expr) -> str:
    word = tree.name if isinstance(tree, exp.Command) else tree.key
    return f"a {word.upper()} statement"


def _token_place(sql: str, message: str) -> tuple[int, int]:
    found = re.search(r"from (\d+):(\d+)", message)
    return (int(found[1]), int(found[2]) + 1) if found else (1, 1)


_KEYWORD_TOKENS = frozenset(
    {
        TokenType.CURRENT_DATE,
        TokenType.CURRENT_TIME,
        TokenType.CURRENT_TIMESTAMP,
        TokenType.CURRENT_USER,
        TokenType.SESSION_USER,
    }
)


def written_places(tree: exp.Expr) -> frozenset[int]:
    """The offsets of all names and calls that the tree remembers."""
    found: set[int] = set()
    for node in tree.walk():
        if isinstance(call := node.meta.get("call"), Call):
            found.add(call.start)
        if "start" in node.meta:
            found.add(node.meta["start"])
    return frozenset(found)


def _without_lost_calls(tree: exp.Expr, tokens: Sequence[Token], starts: tuple[int, ...]) -> QueryError | None:
    """An error if a call that is not deterministic stands in the text and not in the tree: the parser lost it, and
    the verdict would be wrong. (None is known; this is the net below the parser.)"""
    seen = written_places(tree)
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        called = after is not None and after.token_type == TokenType.L_PAREN
        level = level_of(token.text) if called or token.token_type in _KEYWORD_TOKENS else None
        if level in (None, Level.DETERMINISTIC, Level.ORDER_DEPENDENT) or token.start in seen:
            continue
        # a column list: `AS user (a, b)`, `WITH now (a) AS`
        if before is not None and before.text.upper() in ("AS", "WITH", "RECURSIVE", ",", ")", "."):
            continue
        return QueryError("PARSE_ERROR", f"{token.text} is not understood here", *position(starts, token.start))
    return None


def read_query(sql: str) -> exp.Query:
    """The tree of one query, from `parse`. Raises SourceTextError for text that is not understood."""
    found = parse(sql)
    if isinstance(found, QueryError):
        raise SourceTextError(f"{found.message} (line {found.line}, column {found.column})")
    if not isinstance(found.tree, exp.Query):
        raise SourceTextError(f"{found.tree.key.upper()} where a SELECT was expected")
    return found.tree
