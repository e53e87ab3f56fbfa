"""The query blocks of a text, read off its tree as places in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import Token

from spark_mv.query.ai_calls.blocks import Query, TextError, TokenBlock, TokenCte, TokenItem
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.placing import SelectParts
from spark_mv.query.syntax.queries import operands
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_blocks import span_of
from spark_mv.query.syntax.source_text import SourceTextError, Span

# clauses that are looked at together, in the order of the text
_TOGETHER = {
    "SORT BY": "ORDER BY",
    "CLUSTER BY": "ORDER BY",
    "DISTRIBUTE BY": "ORDER BY",
    "OFFSET": "LIMIT",
    "LATERAL VIEW": "FROM",
}

_NOT_A_SELECT = (
    "a query that is not written as SELECT … FROM … (pipes, FROM first) is not taken apart: begin with SELECT"
)


@dataclass
class Structure:
    """A query's SELECTs in the order of the text, each with the query that it is a term of; those and its CTEs by the ids of their nodes in the tree."""

    tree: exp.Expr
    blocks: list[TokenBlock] = field(default_factory=list)
    of_select: dict[int, TokenBlock] = field(default_factory=dict)
    of_cte: dict[int, TokenCte] = field(default_factory=dict)


@deep
def structure(sql: str, tokens: Sequence[Token]) -> Structure:
    """The SELECT blocks of a query. `tokens`: those of the text. Raises TextError."""
    found = parse(sql)
    if isinstance(found, QueryError):
        raise TextError(f"{found.message} (line {found.line}, column {found.column})")
    try:
        reader = _Reader(Structure(found.tree), tokens)
        reader.query(found.tree, None)
    except SourceTextError as error:
        raise TextError(str(error)) from error
    return reader.found


class _Reader:
    def __init__(self, found: Structure, tokens: Sequence[Token]) -> None:
        self.found, self.tokens = found, tokens
        self.index = {token.start: i for i, token in enumerate(tokens)}

    def query(self, node: exp.Expr, parent: TokenBlock | None, outer: Query | None = None) -> Query:
        if "span" not in node.meta:
            raise TextError(_NOT_A_SELECT)
        query = Query(span_of(node), node, parent, outer=outer)
        self.ctes(query, node.args.get("with_"))
        terms = list(operands(node))
        query.set_operation = len(terms) > 1
        for term in terms:
            if term is not node and term.args.get("with_"):
                raise TextError("a WITH clause inside a set operation belongs in parentheses")
            if isinstance(term, exp.Subquery):
                query.blocks += self.query(term.this, None, outer=query).blocks
            elif isinstance(term, exp.Select):
                query.blocks += self.select(term, query)
            elif not isinstance(term, exp.Values | exp.Table):
                raise TextError(f"a SELECT was expected, not {term.key.upper()}")
        if isinstance(node, exp.SetOperation) and isinstance(terms[-1], exp.Select) and query.blocks:
            # the tree hangs ORDER BY and LIMIT on the whole; in the text they stand behind the last SELECT
            modifiers = {key: value for key, value in node.args.items() if key not in ("this", "expression", "with_")}
            self.children(query.blocks[-1], modifiers)
        return query

    def ctes(self, query: Query, with_: exp.Expr | None) -> None:
        for cte in with_.expressions if with_ is not None else ():
            body = self.query(cte.this, None, outer=query)
            recursive, renamed = bool(with_ and with_.args.get("recursive")), bool(cte.args["alias"].columns)
            body.parent_cte = TokenCte(cte.alias, span_of(cte), body, recursive, renamed, len(query.ctes))
            self.found.of_cte[id(cte)] = body.parent_cte
            query.ctes.append(body.parent_cte)

    def select(self, node: exp.Select, query: Query) -> list[TokenBlock]:
        """The block of a SELECT; none of `TABLE t`, which is short for one."""
        parts = node.meta.get("select")
        if not isinstance(parts, SelectParts):
            raise TextError(_NOT_A_SELECT)
        if self.tokens[self.index[parts.span[0]]].text.upper() == "TABLE":
            return []
        block = TokenBlock(Span(*parts.span), node, query, Span(*parts.listed), node.args.get("distinct") is not None)
        self.found.blocks.append(block)
        self.found.of_select[id(node)] = block
        block.items = [_item(item) for item in node.expressions]
        for word, start, end in [("FROM", *parts.from_), *parts.clauses] if parts.from_ else parts.clauses:
            name = _TOGETHER.get(word, word)
            inner = self.tokens[self.index[start] + 1].start
            block.clauses[name] = Span(block.clauses[name].start if name in block.clauses else inner, end)
        _read_from(node, block)
        self.children(block, {key: value for key, value in node.args.items() if key != "with_"})
        return [block]

    def children(self, block: TokenBlock, args: Mapping[str, object]) -> None:
        """The queries in the block's FROM items and expressions, in the order of the text."""
        found = [query for value in args.values() for query in _queries(value)]
        block.children += [self.query(query, block) for query in sorted(found, key=lambda query: span_of(query).start)]


def _queries(value: object) -> Iterator[exp.Expr]:
    """The outermost queries below a node or a list of nodes."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += part
        elif isinstance(part, exp.Select | exp.SetOperation):
            yield part
        elif (
            isinstance(part, exp.Subquery) and isinstance(part.this, exp.Query) and not isinstance(part.this, exp.Table)
        ):
            yield part.this
            stack += [child for key, child in part.args.items() if key not in ("this", "with_")]
        elif isinstance(part, exp.Expr):
            stack += part.iter_expressions()


def _read_from(select: exp.Select, block: TokenBlock) -> None:
    """What the FROM items are called (the alias, or all parts of a table's name) and how they are joined."""
    stack = [select.args.get(key) for key in ("from_", "joins", "laterals")]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += part
        elif isinstance(part, exp.From | exp.Join | exp.Paren):
            stack += [part.this]
            on = part.args.get("on")
            block.conditions += [span_of(on)] if on is not None and "span" in on.meta else []
        elif isinstance(part, exp.Expr):
            stack += [part.args.get(key) for key in ("joins", "laterals")]
            bracketed = isinstance(part, exp.Subquery) and not isinstance(part.this, exp.Select | exp.SetOperation)
            if bracketed and not part.alias:
                stack += [part.this]
                continue
            names = [name.name for name in part.parts] if isinstance(part, exp.Table) else []
            block.qualifiers |= {part.alias.lower()} if part.alias else {name.lower() for name in names}
            alias = part.args.get("alias")
            renamed = alias is not None and alias.columns
            if isinstance(part, exp.Table) and isinstance(part.this, exp.Identifier) and not renamed:
                block.tables.append(part)
            elif not isinstance(part, exp.Subquery) or renamed or part.args.get("pivots"):
                block.made = True


def _item(node: exp.Expr) -> TokenItem:
    span = span_of(node)
    if isinstance(node, exp.Alias):
        return TokenItem(span, span_of(node.this), node.alias, node.this)
    named = isinstance(node.expression if isinstance(node, exp.Dot) else node, exp.Column | exp.Identifier)
    return TokenItem(span, span, node.name if named and not node.is_star else "", node)
