"""Names in scope: the FROM items of one SELECT, what they hide, and the scopes around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlglot import exp

from spark_mv.query.analysis.taint import Field, OpenPart, Relation, TaintedValue, digest, union
from spark_mv.query.syntax.star_order import Shown, StarOrder


@dataclass(frozen=True)
class Rows:
    """The rows that a SELECT groups: what is unique in them, whether they are rows of one table, and by which fingerprints
    they are grouped."""

    unique: tuple[frozenset[str], ...]
    single: bool
    grouped: frozenset[str]


class StarColumn(NamedTuple):
    """A column of a FROM item (its key in the scope), and what a star shows in its place."""

    source: str
    own: Field | OpenPart
    shown: Field | OpenPart


@dataclass
class Scope:
    """The names that an expression may use.

    `sources` in FROM order; `star`: the columns of `*`, of those that are there so far; `hidden` are right sides of SEMI and ANTI joins; `aliases` are select aliases visible
    where this is asked (lateral column aliases, GROUP BY, HAVING); `locals_` are lambda parameters.
    """

    parent: Scope | None = None
    sources: dict[str, Relation] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    aliases: dict[str, TaintedValue] = field(default_factory=dict)
    locals_: dict[str, TaintedValue] = field(default_factory=dict)
    label: str = ""
    row_unique: tuple[frozenset[str], ...] = ()
    single: bool = False  # its rows are rows of one table, none of them twice
    below: Rows | None = None  # with GROUP BY or an aggregate: the rows that are grouped
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    ordinals: list[TaintedValue] = field(default_factory=list)  # the output columns, for ORDER BY 1
    aliases_first: bool = False  # HAVING, QUALIFY and ORDER BY prefer output columns
    origins: list[Relation] = field(default_factory=list)  # the FROM items as they came, without alias
    using: dict[str, set[str]] = field(
        default_factory=dict
    )  # USING and NATURAL columns: the FROM items whose own are compared
    star: Shown[StarColumn] = field(default_factory=Shown)
    padded: dict[str, str] = field(default_factory=dict)  # those of RIGHT and FULL joins: the sides, in FROM order
    partitions: list[list[str]] = field(default_factory=list)  # fingerprints, one list per window
    ctes: Mapping[str, Any] = field(default_factory=dict)

    def visible(self) -> list[tuple[str, Relation]]:
        return [(name, relation) for name, relation in self.sources.items() if name not in self.hidden]

    def unique(self) -> tuple[frozenset[str], ...]:
        """Column sets known to be unique in the rows of this FROM (no join: a join may repeat rows)."""
        if len(self.sources) - len(self.hidden) != 1:
            return ()
        return self.visible()[0][1].unique

    def is_single(self) -> bool:
        """Whether FROM gives rows of one table, none of them twice: no join, no LATERAL VIEW."""
        return len(self.visible()) == 1 and self.visible()[0][1].single

    def source(self, qualifier: Sequence[str]) -> Relation | None:
        """The FROM item called `qualifier`: an alias, or a table by the last parts of its name."""
        wanted = tuple(part.lower() for part in qualifier)
        if len(wanted) == 1 and wanted[0] in self.sources:
            return self.sources[wanted[0]]
        for alias, relation in self.sources.items():
            names = tuple(part.lower() for part in relation.names)
            # a table with an alias has no other name
            if names and alias.rstrip("'") == names[-1] and names[-len(wanted) :] == wanted:
                return relation
        return None


def find_qualified(scope: Scope | None, parts: Sequence[str]) -> tuple[Field, Sequence[str]] | None:
    """The column of `table.column`, `db.table.column` or `table.column.field`, here or in a scope around, and the path of the field."""
    while scope is not None:
        for split in range(len(parts) - 1, 0, -1):
            relation = scope.source(parts[:split])
            if relation is not None:
                found = relation.find(parts[split])
                if found is not None:
                    return found, parts[split + 1 :]
        scope = scope.parent
    return None


def ambiguous(scope: Scope, name: str) -> list[str]:
    """The FROM items that are all known to have the column, when Spark could not choose among them."""
    owners = [alias for alias, relation in scope.visible() if relation.has(name)]
    merged = scope.using.get(name.lower(), set())
    free = [alias for alias in owners if alias not in merged]
    return owners if len(free) + (len(free) < len(owners)) > 1 else []


def of_using(scope: Scope, name: str, fields: Sequence[Field]) -> Field:
    """What the bare name of a column of USING or NATURAL stands for, of which the FROM items have `fields`: the left one's, but of a
    RIGHT join the right one's, and of a FULL join the first that is not NULL."""
    taint, sides = union(f.taint for f in fields), scope.padded.get(name.lower())
    if len(fields) == 1 or sides is None:
        return replace(fields[0], taint=taint, parts=fields[0].parts if len(fields) == 1 else ())
    types = {f.type for f in fields}
    return Field(
        fields[0].name,
        taint,
        digest("using", sides, *(f.fingerprint for f in fields)),
        types.pop() if len(types) == 1 else None,
    )


def find_plain(scope: Scope, name: str) -> tuple[Field | None, bool]:
    """An unqualified column among the FROM items of this one scope, and whether that is certain (False: a FROM item
    with unknown columns may have it)."""
    merged = scope.using.get(name.lower()) or scope.sources
    sure = [relation.find(name) for key, relation in scope.sources.items() if key in merged and relation.has(name)]
    found = [f for f in sure if f is not None]
    if found:
        return of_using(scope, name, found), True
    maybe = [relation.find(name) for relation in scope.sources.values() if relation.is_open]
    guesses = [f for f in maybe if f is not None]
    if guesses:
        # with several open tables the fingerprint must not depend on which one has it
        fingerprint = guesses[0].fingerprint
        if len(guesses) > 1:
            fingerprint = "|".join(sorted(g.fingerprint for g in guesses))
        return Field(name, union(g.taint for g in guesses), fingerprint), False
    return None, False


def join_stars(
    scope: Scope, left: Shown[StarColumn], right: Shown[StarColumn], kind: str, using: Sequence[str]
) -> None:
    """Make the scope's star that of a join."""

    def merged(one: StarColumn, other: StarColumn, kind: str) -> StarColumn:
        fields = [item for item in (one.shown, other.shown) if isinstance(item, Field)]
        whole = other if kind == "RIGHT" else one
        shown = of_using(scope, fields[0].name, fields)
        # what a FULL join shows is of neither side
        return StarColumn("" if kind == "FULL" else whole.source, whole.own, shown)

    def name(column: StarColumn) -> str | None:
        return column.own.name if isinstance(column.own, Field) else None

    scope.star = StarOrder(name, merged).join(left, right, kind, using)
