"""sqlglot's parsers of Spark's SQL, with the name of every call as written and the place of every piece in the text.

sqlglot renames functions while it parses (`now()` becomes CURRENT_TIMESTAMP, `date_add` a TsOrDsAdd), so the written
name is stamped on the node in `meta["call"]`, and keyword forms (CURRENT_DATE) are told from calls. Places: see placing.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from spark_mv.query.syntax import pipes
from spark_mv.query.syntax.placing import Placing
from spark_mv.query.syntax.tokens import NAMES, UNSIGNED_SHIFT

_WRAPPERS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True)
class Call:
    """A function as written: `name` lower case, offset of its first character, `keyword` if without parentheses, `end` behind
    its closing one (0 where none was seen)."""

    name: str
    start: int
    keyword: bool = False
    empty: bool = False  # written with nothing between the parentheses
    end: int = 0


def first_offset(node: exp.Expr | None) -> int | None:
    """The offset of the leftmost token that any node under `node` remembers. Remembered on the nodes."""
    if node is None:
        return None
    if "first" in node.meta:
        return node.meta["first"]  # type: ignore[no-any-return]
    stack = [node]
    while stack:
        item = stack[-1]
        waiting = [child for child in item.iter_expressions() if "first" not in child.meta]
        if waiting:
            stack += waiting
            continue
        call = item.meta.get("call")
        known = [child.meta["first"] for child in item.iter_expressions()]
        known += [item.meta.get("start"), call.start if isinstance(call, Call) else None]
        item.meta["first"] = min((offset for offset in known if offset is not None), default=None)
        stack.pop()
    return node.meta["first"]  # type: ignore[no-any-return]


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
        node.meta["call"] = Call(token.text.lower(), token.start, keyword, empty, node.meta.pop("closed", 0))


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


def _sampled(node: Any, sample: exp.Expr | None) -> Any:
    """`(query) TABLESAMPLE (…) AS s`: Spark writes the sample before the alias, sqlglot looks for it behind."""
    if node is not None and sample is not None:
        node.set("sample", sample)
    return node


# functions of which sqlglot drops arguments that Spark has
_PLAIN = frozenset({"PERCENTILE"})


def _but_plain(table: dict[str, Any]) -> dict[str, Any]:
    return {name: parser for name, parser in table.items() if name not in _PLAIN}


class _Written(Placing):
    """What both dialects' parsers do differently from sqlglot's: names of calls as written, pipes, samples of subqueries."""

    _right_of_pipe = False  # at the FROM item of a `|> JOIN`
    _set_of_pipe = False  # at a `|> UNION`

    def validate_expression(self, expression: Any, args: list[Any] | None = None) -> Any:
        return super().validate_expression(_as_written(expression, args), None if args is None else [])

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
        if self._match(TokenType.PIPE_GT, advance=False):
            query = pipes.below(self, query)
        return super()._parse_pipe_syntax_query(query)

    def _parse_pipe_syntax_join(self, query: exp.Query) -> exp.Query | None:
        query = pipes.settled(self, query)
        self._right_of_pipe = True
        try:
            return super()._parse_pipe_syntax_join(query)
        finally:
            self._right_of_pipe = False

    def _parse_pipe_syntax_set_operator(self, query: exp.Query) -> exp.Query | None:
        self._set_of_pipe = True
        try:
            return super()._parse_pipe_syntax_set_operator(query)
        finally:
            self._set_of_pipe = False

    def parse_set_operation(self, *args: Any, **kwargs: Any) -> exp.SetOperation | None:
        piped, self._set_of_pipe = self._set_of_pipe, False
        found = super().parse_set_operation(*args, **kwargs)
        if piped and found is not None and not isinstance(found.expression, exp.Subquery):
            # sqlglot knows a query in parentheses here, Spark's grammar has any queryPrimary
            found.set("expression", exp.Subquery(this=found.expression))
        return found

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._right_of_pipe:
            # what follows the joined query belongs to the pipe, what is inside its parentheses does not
            self._right_of_pipe = False
            kwargs["consume_pipe"] = False
        return super()._parse_select(*args, **kwargs)

    def _parse_subquery(self, this: exp.Expr | None, *args: Any, **kwargs: Any) -> exp.Subquery | None:
        sample = self._parse_table_sample() if this is not None else None
        return _sampled(super()._parse_subquery(this, *args, **kwargs), sample)  # type: ignore[no-any-return]

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        if this is not None and not alias and self._prev.token_type == TokenType.R_PAREN:
            this.meta["closed"] = self._prev.end + 1  # every call is looked at here when its parenthesis has closed
        return super()._parse_window(this, alias)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        before, token, follower, third = self._prev, self._curr, self._next, _after(self)
        node = super()._parse_function_call(*args, **kwargs)
        if node is not None:
            _stamp(node, token, follower, third, before)
        return node


class WrittenSpark(_Written, SparkParser):
    """Spark's grammar."""

    ID_VAR_TOKENS = SparkParser.ID_VAR_TOKENS | NAMES
    TABLE_ALIAS_TOKENS = SparkParser.TABLE_ALIAS_TOKENS | NAMES
    QUERY_MODIFIER_PARSERS = Placing.QUERY_MODIFIER_PARSERS
    FUNCTIONS: ClassVar[dict[str, Any]] = _but_plain(SparkParser.FUNCTIONS)
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _but_plain(SparkParser.FUNCTION_PARSERS)
    BITWISE: ClassVar[dict[TokenType, Any]] = {**SparkParser.BITWISE, UNSIGNED_SHIFT: _shift}
    PIPE_SYNTAX_TRANSFORM_PARSERS = pipes.with_spark(SparkParser.PIPE_SYNTAX_TRANSFORM_PARSERS)


class WrittenDatabricks(_Written, DatabricksParser):
    """Databricks' grammar, for the syntax that it alone knows."""

    QUERY_MODIFIER_PARSERS = Placing.QUERY_MODIFIER_PARSERS
    FUNCTIONS: ClassVar[dict[str, Any]] = _but_plain(DatabricksParser.FUNCTIONS)
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _but_plain(DatabricksParser.FUNCTION_PARSERS)
    BITWISE: ClassVar[dict[TokenType, Any]] = {**DatabricksParser.BITWISE, UNSIGNED_SHIFT: _shift}
    PIPE_SYNTAX_TRANSFORM_PARSERS = pipes.with_spark(DatabricksParser.PIPE_SYNTAX_TRANSFORM_PARSERS)


# plain calls for which sqlglot has a parser of its own
_RENAMED = frozenset(
    {
        "DECODE", "LISTAGG", "STRING_AGG", "GROUP_CONCAT", "MAX_BY", "MIN_BY", "ARG_MAX", "ARG_MIN", "PERCENTILE", "TRANSFORM",
    }
)  # fmt: skip


def _spanned(name: str) -> Callable[..., Any]:
    base = getattr(SparkParser, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        first = self._index
        return self._place(base(self, *args, **kwargs), first)

    return method


class Verbatim(WrittenSpark):
    """Every function stays a call of the name that the user wrote (exp.Anonymous), every node has its place."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name not in _RENAMED
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}


for _level in (
    "comparison", "range", "bitwise", "term", "factor", "exponent", "unary", "type", "at_time_zone", "column",
    "column_reference", "primary", "lambda", "interval",
):  # fmt: skip
    setattr(Verbatim, f"_parse_{_level}", _spanned(f"_parse_{_level}"))
