"""What is known about values and relations while a query is walked: where each non-deterministic call came from.

A `Taint` is the set of calls a value depends on; a `Relation` is what a FROM item, CTE, view or query offers to the
scope that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import blake2b
from typing import Any

from sqlglot import exp

from spark_mv.query.analysis.verdict import Cause
from spark_mv.query.functions.level import Level


def digest(*parts: object) -> str:
    """A short stable hash of the parts, 20 hexadecimal digits."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=10).hexdigest()


@dataclass(frozen=True)
class Origin:
    """One call that is not deterministic, and the way from it to here."""

    function: str
    level: Level
    line: int
    column: int
    path: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, int, int, Level]:
        return (self.function, self.line, self.column, self.level)

    def cause(self, *place: str) -> Cause:
        return Cause(self.function, self.line, self.column, (*self.path, *place))


@dataclass(frozen=True)
class Taint:
    """The calls a value depends on; empty means deterministic."""

    origins: tuple[Origin, ...] = ()

    def __iter__(self) -> Iterator[Origin]:
        return iter(self.origins)

    def __bool__(self) -> bool:
        return bool(self.origins)

    @property
    def levels(self) -> frozenset[Level]:
        return frozenset(origin.level for origin in self.origins) or frozenset({Level.DETERMINISTIC})

    @property
    def level(self) -> Level:
        return max(self.levels)

    def worst(self, level: Level | None = None) -> Origin | None:
        """The first call of the given level (default: the worst level that occurs)."""
        wanted = level or self.level
        return next((origin for origin in self.origins if origin.level == wanted), None)

    def through(self, step: str) -> Taint:
        """The same calls, one step further from their place."""
        if not self.origins:
            return self
        return Taint(tuple(o if o.path[-1:] == (step,) else replace(o, path=(*o.path, step)) for o in self.origins))


CLEAN = Taint()


def union(taints: Iterable[Taint]) -> Taint:
    """All calls of all taints; the first way to a call is kept."""
    merged: dict[tuple[str, int, int, Level], Origin] = {}
    for taint in taints:
        for origin in taint.origins:
            merged.setdefault(origin.key, origin)
    return Taint(tuple(merged.values())) if merged else CLEAN


class Held(Enum):
    """What stands for any of those that an array or a map holds, which have no names."""

    ELEMENT = "element"
    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True)
class TaintedValue:
    """An expression: what it depends on, and a fingerprint that alias names and layout do not change. `parts`: the fields of a struct
    that is written out, `struct(a, rand() AS r)`, or what an array or a map holds, each with what it depends on itself."""

    taint: Taint
    fingerprint: str
    aggregate: bool = False  # contains an aggregate function outside a window
    parts: Parts = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a struct's fields."""
        return tuple(label for label, _ in self.parts if isinstance(label, str))

    def inner(self, path: Iterable[str]) -> TaintedValue:
        """The field of the struct at the path; of one that is not written out, a value that depends on all of it. What looks like a
        field may be a key of a map, of which `a` and `A` are two."""
        here = self
        for name in path:
            found = [item for label, item in here.parts if isinstance(label, str) and label.lower() == name.lower()]
            if len(found) == 1:
                here = found[0]
                continue
            # of an array of structs, the array of their fields
            element = here.held(Held.ELEMENT)
            taint = element.inner([name]).taint if element else here.taint
            here = TaintedValue(taint, digest("field", here.fingerprint, name), here.aggregate)
        return here

    def named(self, name: str) -> Field:
        """The column of that name that it is."""
        return Field(name, self.taint, self.fingerprint, parts=self.parts)

    def held(self, label: Held) -> TaintedValue | None:
        return next((item for name, item in self.parts if name is label), None)

    def seen_as(self, step: str, mark: Callable[[str], str]) -> TaintedValue:
        """The same, one step further from its place, with another fingerprint."""
        parts = tuple((name, item.seen_as(step, mark)) for name, item in self.parts)
        return TaintedValue(self.taint.through(step), mark(self.fingerprint), self.aggregate, parts)


Parts = tuple[tuple["str | Held", TaintedValue], ...]


@dataclass(frozen=True)
class Field:
    """One column that a relation offers. `type` is the Spark type where a schema told it, `parts` as in TaintedValue."""

    name: str
    taint: Taint
    fingerprint: str
    type: str | None = None
    node: exp.Expr | None = field(default=None, compare=False, repr=False)  # its expression, for people
    derive: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)  # finds the type
    scope: Any = field(default=None, compare=False, repr=False)  # the Scope in which `node` was written
    parts: Parts = ()

    @property
    def value(self) -> TaintedValue:
        return TaintedValue(self.taint, self.fingerprint, parts=self.parts)


@dataclass(frozen=True)
class OpenPart:
    """Columns that are not known by name (a table without a schema, a struct's fields)."""

    fingerprint: str
    taint: Taint = CLEAN


@dataclass(frozen=True)
class Relation:
    """A table, CTE, view, subquery or query result, as seen from outside.

    `rows`: the calls that decide which rows it has. `unique`: sets of column fingerprints known to be unique
    together (the empty set: at most one row). `reads` are (table, views looked through); `flags` are Shape's words.
    """

    items: tuple[Field | OpenPart, ...]
    fingerprint: str
    rows: Taint = CLEAN
    unique: tuple[frozenset[str], ...] = ()
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()
    flags: frozenset[str] = frozenset()
    kind: str = "subquery"
    names: tuple[str, ...] = ()  # parts of a table's own name
    grouping: tuple[str, ...] | None = None  # fingerprints of the GROUP BY keys of the one aggregation, if any
    partition: tuple[str, ...] | None = None  # fingerprints of the PARTITION BY columns that all windows share
    single: bool = False  # its rows are rows of one table, none of them twice

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item for item in self.items if isinstance(item, Field))

    @property
    def open_parts(self) -> tuple[OpenPart, ...]:
        return tuple(item for item in self.items if isinstance(item, OpenPart))

    @property
    def columns_print(self) -> str:
        """A fingerprint of the columns alone, which filters and joins do not change; with their names."""
        return digest("columns", *(f"{getattr(item, 'name', '*')}={item.fingerprint}" for item in self.items))

    @property
    def is_open(self) -> bool:
        return any(isinstance(item, OpenPart) for item in self.items)

    def find(self, name: str) -> Field | None:
        """The column of that name, or one of an open part that may have it."""
        matches = [f for f in self.fields if f.name.lower() == name.lower()]
        if matches:
            return (
                matches[0]
                if len(matches) == 1
                else Field(matches[0].name, union(f.taint for f in matches), matches[0].fingerprint, matches[0].type)
            )
        parts = self.open_parts
        if parts:
            return Field(
                name, union(p.taint for p in parts), digest("column", name.lower(), *(p.fingerprint for p in parts))
            )
        return None

    def has(self, name: str) -> bool:
        """Whether a column of that name is known for certain."""
        return any(f.name.lower() == name.lower() for f in self.fields)

    def seen_as(self, alias: str, occurrence: int = 0) -> Relation:
        """The relation under an alias: the way of every call grows by `alias.column`. A second occurrence of one
        relation in one FROM has other rows, so its columns get other fingerprints."""

        def mark(fingerprint: str) -> str:
            return digest("again", occurrence, fingerprint) if occurrence else fingerprint

        items: list[Field | OpenPart] = []
        for item in self.items:
            if isinstance(item, Field):
                seen = item.value.seen_as(f"{alias}.{item.name}", mark)
                items.append(
                    replace(
                        item,
                        taint=seen.taint,
                        fingerprint=seen.fingerprint,
                        parts=seen.parts,
                        # its expression is over the rows of the first occurrence
                        scope=None if occurrence else item.scope,
                    )
                )
            else:
                items.append(OpenPart(mark(item.fingerprint), item.taint.through(f"{alias}.*")))
        unique = tuple(frozenset(map(mark, keys)) for keys in self.unique)
        return replace(
            self,
            items=tuple(items),
            unique=unique,
            rows=self.rows.through(alias),
            grouping=None if self.grouping is None else tuple(map(mark, self.grouping)),
            partition=None if self.partition is None else tuple(map(mark, self.partition)),
        )
