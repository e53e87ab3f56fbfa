"""sqlglot's parsers of Spark's SQL, with the name of every call as written and the place of every piece in the text.

sqlglot renames functions while it parses (`now()` becomes CURRENT_TIMESTAMP, `date_add` a TsOrDsAdd), so the written
name is stamped on the node in `meta["call"]`, and keyword forms (CURRENT_DATE) are told from calls. `meta["span"]` is the
place (start, end) of an expression, a conjunct, a query or a FROM item, `meta["select"]` that of the parts of a SELECT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from spark_mv.query.syntax import pipes
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


@dataclass(frozen=True)
class SelectParts:
    """The places (start, end) of one SELECT and its parts: the whole, the select list, FROM (None without) and the other
    clauses with their keywords, in the order of the text. FROM reaches to the clause after it, joins included."""

    span: tuple[int, int]
    listed: tuple[int, int]
    from_: tuple[int, int] | None
    clauses: tuple[tuple[str, int, int], ...]


@dataclass
class _Open:
    """A SELECT that is being parsed, in indices of tokens."""

    first: int
    listed: tuple[int, int] | None = None
    from_: int | None = None
    node: exp.Select | None = None
    clauses: list[tuple[str, int, int]] = field(default_factory=list)


def _marked(parse: Callable[[Any], tuple[str, Any]]) -> Callable[[Any], tuple[str, Any]]:
    """A parser of a clause that leaves the clause's place with its SELECT."""

    def run(parser: Any) -> tuple[str, Any]:
        first = parser._index
        found = parse(parser)
        if found[1]:
            parser._mark(first)
        return found

    return run


_CLAUSES = frozenset(
    {
        TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW, TokenType.ORDER_BY,
        TokenType.LIMIT, TokenType.OFFSET, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.SORT_BY,
    }
)  # fmt: skip


class _Placing(Parser):
    """Places of expressions, conjuncts, queries and the clauses of SELECTs."""

    _opened: list[_Open]
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        kind: _marked(parse) if kind in _CLAUSES else parse
        for kind, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
    }

    def reset(self) -> None:
        super().reset()
        self._opened = []

    def _place(self, node: Any, first: int) -> Any:
        if isinstance(node, exp.Expr) and self._index > first:
            # the same node may come back from several levels; the widest text of it is its own
            node.meta["span"] = (self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        return node

    def _mark(self, first: int, word: str = "") -> None:
        if self._opened and self._opened[-1].node is not None:
            word = word or " ".join(self._tokens[first].text.upper().split())
            self._opened[-1].clauses.append((word, first, self._index))

    def _parse_expression(self) -> exp.Expr | None:
        first = self._index
        node = self._place(self._parse_assignment(), first)
        return self._place(self._parse_alias(node), first)  # type: ignore[no-any-return]

    def _parse_disjunction(self) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_disjunction(), first)  # type: ignore[no-any-return]

    def _parse_conjunction(self) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_conjunction(), first)  # type: ignore[no-any-return]

    def _parse_equality(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_equality(*args, **kwargs), first)  # type: ignore[no-any-return]

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._index
        return self._place(super()._parse_select(*args, **kwargs), first)  # type: ignore[no-any-return]

    def _parse_cte(self) -> Any:
        first = self._index
        return self._place(super()._parse_cte(), first)

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        self._opened.append(_Open(self._index))
        try:
            return super()._parse_select_query(*args, **kwargs)
        finally:
            self._opened.pop()

    def _parse_projections(self) -> Any:
        first = self._index
        found = super()._parse_projections()
        self._opened[-1].listed = (first, self._index)
        return found

    def _parse_from(self, *args: Any, **kwargs: Any) -> exp.From | None:
        first = self._index
        found = super()._parse_from(*args, **kwargs)
        if found is not None and self._opened and self._opened[-1].node is None:
            self._opened[-1].from_ = first
        return found

    def _parse_query_modifiers(self, this: Any) -> Any:
        opened = self._opened[-1] if self._opened else None
        if opened is None or not isinstance(this, exp.Select) or opened.listed is None or opened.node is not None:
            found = super()._parse_query_modifiers(this)
            if isinstance(found, exp.SetOperation) and "span" in found.meta:
                found.meta["span"] = (found.meta["span"][0], self._tokens[self._index - 1].end + 1)
            return found
        opened.node = this
        found = super()._parse_query_modifiers(this)
        if self._tokens[opened.first].token_type == TokenType.SELECT:
            this.meta["select"] = self._parts(opened)
            this.meta["span"] = this.meta["select"].span
        return found

    def _parts(self, opened: _Open) -> SelectParts:
        def place(first: int, end: int) -> tuple[int, int]:
            return self._tokens[first].start, self._tokens[end - 1].end + 1

        assert opened.listed is not None
        starts = [first for _, first, _ in opened.clauses]
        ends = [*starts, self._index][1:]
        from_end = min(
            [first for first in starts if opened.from_ is not None and first > opened.from_] or [self._index]
        )
        return SelectParts(
            place(opened.first, self._index),
            place(*opened.listed),
            place(opened.from_, from_end) if opened.from_ is not None else None,
            tuple((word, *place(first, end)) for (word, first, _), end in zip(opened.clauses, ends, strict=True)),
        )

    def _parse_set_operations(self, this: Any) -> Any:
        found = super()._parse_set_operations(this)
        if isinstance(found, exp.SetOperation) and found is not this and isinstance(this, exp.Expr):
            start = this.meta.get("span", (self._tokens[0].start,))[0]
            found.meta["span"] = (start, self._tokens[self._index - 1].end + 1)
        return found

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
        found = super()._parse_join(*args, **kwargs)
        if found is not None and comma:
            found.meta["comma"] = True
        return found

    def _parse_lateral(self) -> exp.Lateral | None:
        first = self._index
        found = super()._parse_lateral()
        if found is not None and found.args.get("view"):
            self._mark(first, "LATERAL VIEW")
        return found


class _Written(_Placing):
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
    QUERY_MODIFIER_PARSERS = _Placing.QUERY_MODIFIER_PARSERS
    FUNCTIONS: ClassVar[dict[str, Any]] = _but_plain(SparkParser.FUNCTIONS)
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _but_plain(SparkParser.FUNCTION_PARSERS)
    BITWISE: ClassVar[dict[TokenType, Any]] = {**SparkParser.BITWISE, UNSIGNED_SHIFT: _shift}
    PIPE_SYNTAX_TRANSFORM_PARSERS = pipes.with_spark(SparkParser.PIPE_SYNTAX_TRANSFORM_PARSERS)


class WrittenDatabricks(_Written, DatabricksParser):
    """Databricks' grammar, for the syntax that it alone knows."""

    QUERY_MODIFIER_PARSERS = _Placing.QUERY_MODIFIER_PARSERS
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
