"""The query blocks and calls of a text, and edits of it: what `text` finds and the others work on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.syntax.source_text import Span

Edit = tuple[Span, str]


class TextError(ValueError):
    """The text could not be taken apart; the message says where."""


@dataclass(frozen=True)
class TokenItem:
    """One expression of a select list. `name` is its output name where the text gives one, "" otherwise. `tree` is what it shows, without an alias."""

    span: Span
    expression: Span
    name: str
    tree: exp.Expr = field(compare=False, repr=False)

    @property
    def star(self) -> bool:
        return bool(self.tree.is_star)


@dataclass(eq=False)
class TokenCte:
    """`span` is from the name to the closing parenthesis, `renamed` says whether it names its columns in parentheses."""

    name: str
    span: Span
    query: Query
    recursive: bool
    renamed: bool
    position: int


@dataclass(eq=False)
class Query:
    """WITH … term [set operator term …]; `blocks` are the SELECT blocks and VALUES have none."""

    span: Span
    tree: exp.Expr
    parent: TokenBlock | None
    parent_cte: TokenCte | None = None
    ctes: list[TokenCte] = field(default_factory=list)
    blocks: list[TokenBlock] = field(default_factory=list)
    set_operation: bool = False
    outer: Query | None = None  # the query whose WITH or set operation holds this one

    @property
    def around(self) -> Query | None:
        """The query that this one stands in, as a CTE, a term or a subquery."""
        return self.outer or (self.parent.query if self.parent else None)


@dataclass(eq=False)
class TokenBlock:
    """One SELECT. Clause spans exclude their keywords."""

    span: Span
    tree: exp.Select
    query: Query
    list_span: Span
    distinct: bool = False
    items: list[TokenItem] = field(default_factory=list)
    clauses: dict[str, Span] = field(default_factory=dict)
    children: list[Query] = field(default_factory=list)  # subqueries: derived tables and in expressions
    # of FROM: what columns may be written with (`t.`), in lower case, its tables, whether there is more than tables, and conditions of joins
    qualifiers: set[str] = field(default_factory=set)
    tables: list[exp.Table] = field(default_factory=list)
    made: bool = False
    conditions: list[Span] = field(default_factory=list)

    def clause_of(self, span: Span) -> str:
        """SELECT, FROM, WHERE, …: the clause that the span stands in."""
        if self.list_span.holds(span):
            return "SELECT"
        return next((name for name, where in self.clauses.items() if where.holds(span)), "SELECT")


@dataclass(frozen=True)
class TokenCall:
    """One function call: `name` lower-cased, the spans of the arguments without surrounding blanks."""

    name: str
    span: Span
    arguments: tuple[Span, ...]
    line: int
    column: int


def edited(sql: str, span: Span, edits: Iterable[tuple[Span, str]]) -> str:
    """The text of `span` with the edits that lie in it carried out. Edits must not overlap; zero-width ones insert."""
    out, at = [], span.start
    for where, text in sorted(edits, key=lambda e: (e[0].start, e[0].end)):
        if not span.holds(where):
            continue
        if where.start < at:
            raise TextError("two edits overlap")
        out += [sql[at : where.start], text]
        at = where.end
    return "".join([*out, sql[at : span.end]])


def outermost(edits: Iterable[Edit], span: Span) -> list[Edit]:
    """The edits in the span that no other of them contains."""
    inside = [e for e in edits if span.holds(e[0])]
    out = []
    for number, (where, text) in enumerate(inside):
        covered = any(
            other.holds(where) and (other != where or k < number)
            for k, (other, _) in enumerate(inside)
            if k != number and other.end > other.start
        )
        if not covered:
            out.append((where, text))
    return out
