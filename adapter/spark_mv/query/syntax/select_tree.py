"""A query as a tree of SELECTs whose pieces are spans of the user's own text, for rewrites that change only table names.

What cannot be read this way raises NotIncremental, and the model is recomputed completely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.syntax.joins import EACH_ROW_ALIKE, FILLING_LEFT
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.source_blocks import span_of
from spark_mv.query.syntax.source_text import Span, Token, closing, tokenize
from spark_mv.query.syntax.table_name import quoted as quoted

Ctes = Mapping[str, "tuple[exp.CTE, Ctes, bool]"]
"""The CTEs that a query sees, by name in lower case, each with those that it sees itself."""


class NotIncremental(Exception):
    """Why a query cannot be maintained by a strategy: a stable code and a sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


@dataclass(frozen=True)
class Piece:
    """Text with its parse; `start` is its offset in the text that the tree was built from, -1 in a view's text."""

    text: str
    start: int
    node: exp.Expr


@dataclass(frozen=True)
class OutItem:
    """One entry of a select list. `name` is the output name, None for a star; `text` without the alias."""

    text: str
    name: str | None
    node: exp.Expr
    start: int
    end: int


@dataclass(eq=False)
class Leaf:
    """One occurrence of a table. `name` as the analysis has it (parts joined by dots), `text` as written."""

    name: str
    text: str


@dataclass(eq=False)
class Source:
    """One FROM item: a table or a query, under `alias`, joined to those before it. `kind` is '' for the first one,
    else CROSS, INNER, LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI."""

    item: Leaf | Node
    alias: str
    kind: str = ""
    on: tuple[Piece, ...] = ()
    using: tuple[str, ...] = ()
    renames: tuple[str, ...] = ()  # AS alias(a, b)

    @property
    def inner(self) -> bool:
        """Whether there is no row of the SELECT without one of it, and neither side is filled with NULLs."""
        return not self.kind or self.kind in EACH_ROW_ALIKE

    @property
    def fills_left(self) -> bool:
        """Whether what stands before it is filled with NULLs where it has no partner."""
        return self.kind in FILLING_LEFT


@dataclass(eq=False)
class SelectNode:
    """One SELECT. `laterals`: its LATERAL VIEWs, and as such the generators at the end of its FROM; `generators` is what was parsed of them.
    `subqueries` are the queries inside expressions, by their text."""

    text: str
    items: tuple[OutItem, ...]
    sources: tuple[Source, ...]
    laterals: str
    where: tuple[Piece, ...]
    tree: exp.Select
    grouped: bool
    aggregate: bool
    distinct: bool
    windows: tuple[exp.Window, ...]
    clauses: frozenset[str]
    subqueries: Mapping[str, Node] = field(default_factory=dict)
    deep: tuple[Node, ...] = ()  # subqueries outside WHERE conjuncts
    listed: tuple[Node, ...] = ()  # those of them that stand in the select list
    generators: tuple[exp.Lateral, ...] = ()
    ctes: Ctes = field(default_factory=dict)  # the CTEs that the SELECT sees
    whole: str = ""  # the text that the tree was built from
    read: Counter[str] | None = field(default=None, init=False)  # see `reads`
    output: tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]] | None = (
        None  # its columns, beside those of the tables
    )
    start: int = -1  # offset of the text in the whole
    where_span: tuple[int, int] | None = None  # in `text`, keyword included
    where_at: int = 0  # in `text`: where a WHERE would stand

    @property
    def windowed(self) -> bool:
        return bool(self.windows)

    def is_linear_in(self, number: int) -> bool:
        """Whether each row of a FROM item gives rows of its own, which the other rows of it do not change."""
        return self.sources[number].inner and not any(later.fills_left for later in self.sources[number + 1 :])

    @property
    def head(self) -> str:
        """WITH and the CTEs that the SELECT sees."""
        bodies = [(name, span_of(cte.this).of(self.whole)) for name, (cte, _, _) in self.ctes.items()]
        return f"WITH {', '.join(f'{quoted(name)} AS ({body})' for name, body in bodies)} " if bodies else ""


@dataclass(eq=False)
class SetNode:
    """UNION, EXCEPT or INTERSECT of `arms`, in order. `all_` is UNION ALL throughout."""

    arms: tuple[Node, ...]
    all_: bool
    by_name: bool = False
    read: Counter[str] | None = field(default=None, init=False)


Node = SelectNode | SetNode


def reads(node: Leaf | Node) -> Counter[str]:
    """How often a query reads each table, by its name in lower case. Remembered on the node."""
    if isinstance(node, Leaf):
        return Counter([node.name.lower()])
    if node.read is None:
        node.read = sum((reads(child) for child in children(node)), Counter())
    return node.read


def children(node: Node) -> Iterator[Leaf | Node]:
    """The tables and queries that a query reads: FROM items, then subqueries."""
    if isinstance(node, SetNode):
        yield from node.arms
        return
    for source in node.sources:
        yield source.item
    yield from node.subqueries.values()
    yield from node.deep


def selects(node: Node) -> Iterator[SelectNode]:
    """Every SELECT of the tree, those in subqueries included."""
    stack: list[Leaf | Node] = [node]
    while stack:
        found = stack.pop()
        if isinstance(found, Leaf):
            continue
        if isinstance(found, SelectNode):
            yield found
        stack += reversed(list(children(found)))


def _word(tokens: tuple[Token, ...], i: int) -> str:
    if i < 0 or i >= len(tokens) or (i > 0 and tokens[i - 1].kind == TokenType.DOT):
        return ""
    return tokens[i].word


def subquery_spans(text: str) -> list[Span]:
    """Where in an expression the queries in parentheses stand, outermost ones only."""
    tokens = tokenize(text)
    found, i = [], 0
    while i < len(tokens):
        if tokens[i].kind == TokenType.L_PAREN and _word(tokens, i + 1) in ("SELECT", "WITH"):
            close = closing(tokens, i)
            found.append(Span(tokens[i].end, tokens[close].start))
            i = close
        i += 1
    return found


def subquery_texts(text: str) -> list[str]:
    """The queries in parentheses inside an expression, outermost ones only."""
    return [span.of(text) for span in subquery_spans(text)]


def calls(node: exp.Expr) -> Iterator[str]:
    """Names of all functions called in `node`, as written, lower case; inside subqueries too."""
    return filter(None, map(call_of, node.walk()))


def call_of(node: exp.Expr) -> str:
    """The function that this very node calls, as written, in lower case, be it by a keyword (CURRENT_DATE, CAST); '' for anything else."""
    call = node.meta.get("call")
    return call.name if isinstance(call, Call) else ""
