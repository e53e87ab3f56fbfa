"""A text read, once: the only place that calls sqlglot's tokenizer and parser."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile, pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.tokens import Token, TokenType

from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parser import Call, Verbatim, WrittenDatabricks, WrittenSpark
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import SourceTextError, raw_tokens, scan, tokenize
from spark_mv.query.syntax.tokens import mended, with_unsigned_shift


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
    """Line and column, both from 1, of the character at `offset`."""
    line = bisect_right(line_starts, offset)
    return line, offset - line_starts[line - 1] + 1


def line_starts(sql: str) -> tuple[int, ...]:
    """The offset of each line's first character."""
    return (0, *(i + 1 for i, char in enumerate(sql) if char == "\n"))


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


@lru_cache(maxsize=128)
@deep
def parse(sql: str) -> Parsed | QueryError:
    """`sql` as one parsed query, or why not (code PARSE_ERROR, EMPTY_QUERY, NOT_ONE_STATEMENT or NOT_A_SELECT).

    Spark's dialect is tried first, then Databricks' for the syntax that it alone knows. What sqlglot would keep as
    an opaque command is an error: nothing is guessed.
    """
    starts = line_starts(sql)
    failure: QueryError | None = None
    for dialect, parser in ((Spark(), WrittenSpark), (Databricks(), WrittenDatabricks)):
        try:
            tokens = mended(raw_tokens(sql) if parser is WrittenSpark else scan(sql, dialect))
        except (TokenError, SourceTextError) as error:
            failure = failure or QueryError("PARSE_ERROR", str(error).strip(), *_token_place(sql, str(error)))
            continue
        braces = [t for t in tokens if sql[t.start : t.start + 2] in ("{{", "{%")]
        if braces:
            what = "there is Jinja in the text; analyse the compiled SQL (target/compiled)"
            return QueryError("PARSE_ERROR", what, *position(starts, braces[0].start))
        for attempt in _readings(tokens):
            result = _trees(parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE), attempt, sql, starts)
            if not isinstance(result, QueryError):
                return Parsed(sql, result, tuple(tokens), starts)
            failure = failure or result
    assert failure is not None
    return failure


def _readings(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens as they are, and where that cannot be parsed with `>>>` as an operator."""
    yield tokens
    shifted = with_unsigned_shift(tokens)
    if shifted is not None:
        yield shifted


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
        place = position(starts, _second_statement(tokens))
        return QueryError("NOT_ONE_STATEMENT", f"there are {len(trees)} statements; a model is one SELECT", *place)
    tree = trees[0]
    if isinstance(tree, exp.Query | exp.Values):
        return _dangling_dot(tree, tokens, starts) or _without_lost_calls(tree, tokens, starts) or tree
    return QueryError("NOT_A_SELECT", f"this is {_kind(tree)}; a model is one SELECT", 1, 1)


def _second_statement(tokens: Sequence[Token]) -> int:
    """The offset of what stands behind the first semicolon that something stands behind."""
    after = dropwhile(lambda token: token.token_type == TokenType.SEMICOLON, tokens)
    rest = dropwhile(lambda token: token.token_type != TokenType.SEMICOLON, after)
    return next((token.start for token in rest if token.token_type != TokenType.SEMICOLON), 0)


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
    """The offsets of all names and calls that the tree remembers. Remembered on the node: the tree never changes."""
    if "places" not in tree.meta:
        found: set[int] = set()
        for node in tree.walk():
            if isinstance(call := node.meta.get("call"), Call):
                found.add(call.start)
            if "start" in node.meta:
                found.add(node.meta["start"])
        tree.meta["places"] = frozenset(found)
    return tree.meta["places"]  # type: ignore[no-any-return]


def _dangling_dot(tree: exp.Expr, tokens: Sequence[Token], starts: tuple[int, ...]) -> QueryError | None:
    """An error for a dot that no name follows (the parser makes a name without letters of it), and for one that follows a word which the parser
    has not taken for a name: `FROM lateral.t`."""
    dotted = (a for a, b in pairwise(tokens) if b.token_type == TokenType.DOT)
    word = next((a for a in dotted if a.token_type == TokenType.LATERAL), None)
    if word is not None and any(dot.args.get("this") is None for dot in tree.find_all(exp.Dot)):
        what = f"{word.text} is read as a keyword here; write the name in backquotes"
        return QueryError("PARSE_ERROR", what, *position(starts, word.start))
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        named = after is not None and (
            after.text[:1].isalnum() or after.text[:1] in set("_*$") or after.token_type in _QUOTED
        )
        if token.token_type == TokenType.DOT and not named:
            return QueryError("PARSE_ERROR", "a name is missing behind the dot", *position(starts, token.start))
    return None


_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING)


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


@lru_cache(maxsize=4096)
@deep
def verbatim(sql: str) -> exp.Expr | None:
    """The tree of one expression in which every function is a call of the name that the user wrote, and every node has its
    place. None for text that cannot be read safely."""
    try:
        if any(a.end == b.start and a.kind == b.kind == TokenType.STRING for a, b in pairwise(tokenize(sql))):
            return None  # 'it''s': one string to Spark, two to sqlglot
        # in brackets: a name like `comment` or `show` would begin a command
        tokens = mended(scan(f"({sql}\n)", Spark()))
        for token in tokens:
            token.start, token.end = token.start - 1, token.end - 1
        trees = Verbatim(dialect=Spark(), error_level=ErrorLevel.IMMEDIATE).parse(tokens, sql)
    except (SourceTextError, SqlglotError, RecursionError):
        return None
    whole = trees[0] if len(trees) == 1 else None
    return whole.this if isinstance(whole, exp.Paren | exp.Subquery) else None


def is_spark_type(ddl: str) -> bool:
    """Whether the text reads as a type.

    >>> is_spark_type("STRUCT<a: INT>"), is_spark_type("INTT")
    (True, False)
    """
    try:
        type_tree(ddl)
    except (SqlglotError, ValueError):
        return False
    return True


def type_tree(ddl: str) -> exp.DataType:
    """The type that the text is. Raises SqlglotError or ValueError where it is none."""
    return exp.DataType.build(ddl, dialect="spark")
