"""FROM of a query about changes: which of its columns can be believed after joins over more rows than there are.

The tables that stand in it hold at least the rows of both states, so an inner join finds at least the pairs of both. Not so
what depends on a partner's absence. For every row that is looked for there is a row here that agrees with it in the columns
of all FROM items but those that are `covered`, and in those too where the row that is looked for has a partner there at all:

    o LEFT JOIN c        every pair of an order and a customer is here; the order whose customer went, with NULLs, is not
    … LEFT JOIN r ON r.region = c.region        so r is not to be believed either, changed or not

With `by_absence`, both are written out and nothing is covered. Where the customers are what changed, each is a query of its own: the order with
the customer that came or went, and the order that had such a partner (LEFT SEMI), with NULLs in its place. Where other tables changed too, each
order stands once with its partners and once without one.

A condition that cannot be true without a covered partner (`strict.needed`) says that there is one: it can be kept, and the
item is believed from there on. Any other condition on it is left out, which finds more rows, never fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp

from spark_mv.query.delta.expressions import has_query
from spark_mv.query.delta.names import FromColumns, Place
from spark_mv.query.delta.strict import needed
from spark_mv.query.syntax.joins import HIDING
from spark_mv.query.syntax.select_tree import NotIncremental, Source, quoted


@dataclass(frozen=True)
class JoinedItem:
    """A FROM item's text, without an alias, and its columns (lower case) that are there. `exact`: it gives just the rows that
    it gives in the model's query, in both states."""

    text: str
    columns: frozenset[str]
    exact: bool


@dataclass(frozen=True)
class Kept:
    """What is left of an ON: its conjuncts, and the aliases that these prove to have a partner. `whole`: nothing was left
    out, and nothing has to be proven. `there`: there was an ON at all; `ranged`, one without an equality."""

    texts: tuple[str, ...] = ()
    proven: frozenset[str] = frozenset()
    whole: bool = True
    there: bool = False
    using: tuple[str, ...] = ()
    ranged: bool = False

    @property
    def empty(self) -> bool:
        return self.there and not self.texts and not self.using

    @property
    def sql(self) -> str:
        if self.using:
            return f" USING ({', '.join(quoted(name) for name in self.using)})"
        return f" ON {' AND '.join(self.texts)}" if self.texts else ""


_MOST_DOUBLED = 4
"""Joins of a SELECT for each of which its rows stand twice."""


@dataclass
class Joined:
    """FROM while it is put together. `columns`: alias (lower case) → the columns that are there."""

    by_absence: bool = False
    doubled: int = 0
    text: list[str] = field(default_factory=list)
    columns: dict[str, frozenset[str]] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    exact: bool = True

    def there(self, used: Collection[Place]) -> bool:
        return all(column in self.columns.get(alias, frozenset()) for alias, column in used)

    def believed(self, used: Collection[Place]) -> bool:
        """Whether all columns are here, with the values of the row that is looked for."""
        return self.there(used) and not self.doubtful(used)

    def doubtful(self, used: Collection[Place]) -> frozenset[str]:
        """The covered aliases among those of the columns."""
        return frozenset(alias for alias, _ in used if alias in self.covered)

    def prove(self, proven: Collection[str]) -> None:
        self.covered -= set(proven)

    def add(
        self, alias: str, item: JoinedItem, kind: str, on: Kept, inside: bool, earlier: bool, absent: bool | None = None
    ) -> None:
        """Join one more item. `kind` is the join in the model's query; `inside` and `earlier` say whether what changed is in
        this item or in one before it; `absent`, whether rows with a changed partner of a LEFT JOIN are looked for or those that had one (None:
        either). Raises NotIncremental."""
        name, before = alias.lower(), set(self.columns)
        if kind == "FULL" and not (self.exact and item.exact and on.whole and not inside and not earlier):
            raise NotIncremental("FULL_OUTER_JOIN", "FULL OUTER JOIN: rows of both sides appear and vanish by turns")
        sure = item.exact and on.whole
        if kind == "LEFT ANTI":
            if not inside and not sure:
                self.exact = False  # an anti-join can only take rows away
                del self.columns[name]
                return
            self._join("LEFT SEMI" if inside else kind, alias, item, on)
        elif kind == "LEFT SEMI":
            if on.empty and not inside:
                self.exact = False
                del self.columns[name]
                return
            self._join(kind, alias, item, on)
        elif kind == "LEFT":
            if inside and absent:
                self._join("LEFT SEMI", alias, item, on)
                none = f"LEFT JOIN (SELECT * FROM {item.text} AS `__mv_none` WHERE false)"
                self.text.append(f"{none} AS {quoted(alias)}{on.sql if on.using else ' ON false'}")
            elif inside:
                self._join("INNER", alias, item, on)
                if absent is None:
                    self.covered.add(name)
            elif on.empty:
                self.columns[name] = frozenset()
                self.covered.add(name)
            else:
                on, double = replace(on, proven=frozenset()), not sure and self.by_absence and not on.using
                if double and self.doubled < _MOST_DOUBLED:
                    self.doubled += 1
                    twice = f"`__mv_absent_{self.doubled}`"
                    self.text.append(f"CROSS JOIN (VALUES (false), (true)) AS {twice}(absent)")
                    on = replace(on, texts=(*on.texts, f"NOT {twice}.absent"))
                elif not sure:
                    self.covered.add(name)
                self._join("LEFT", alias, item, on)
        elif kind == "RIGHT":
            believed = self.exact and on.whole and not earlier
            if on.empty and not earlier:
                self.text.clear()
                self.columns = {a: frozenset() for a in before} | {name: item.columns}
                self.text.append(f"{item.text} AS {quoted(alias)}")
            else:
                self._join("INNER" if earlier else "RIGHT", alias, item, replace(on, proven=frozenset()))
            if not believed:
                self.covered |= before - {name}
        else:
            self._join(kind, alias, item, on)
        if kind in HIDING:
            del self.columns[name]
        self.exact = self.exact and sure and not inside

    def _join(self, kind: str, alias: str, item: JoinedItem, on: Kept) -> None:
        if on.empty and kind == "INNER" and on.ranged:
            kind = "CROSS"  # a range joins any number of rows, whatever decides on it
        elif on.empty and kind in ("INNER", "LEFT SEMI"):
            raise NotIncremental("NO_JOIN_CONDITION", "no join condition is left that finds the partners of a change")
        words = f"{kind} JOIN " if self.text else ""
        self.text.append(f"{words}{item.text} AS {quoted(alias)}{on.sql}")
        self.prove(on.proven)


class FromItem(NamedTuple):
    """An item of FROM as it is joined. `inside`: what changed is in it."""

    alias: str
    source: Source
    item: JoinedItem
    inside: bool


def put_together(
    items: Iterable[FromItem],
    scope: FromColumns,
    left_out: Callable[[exp.Expr], bool],
    by_absence: bool,
    absent: bool | None,
) -> Joined:
    """FROM of a query about changes. `left_out` as in kept_on, `absent` as in Joined.add. Raises NotIncremental."""
    joined, earlier = Joined(by_absence), False
    for one in items:
        before = dict(joined.columns)
        joined.columns[one.alias.lower()] = one.item.columns
        on = kept_on(one.source, before, scope, joined, left_out) if before else Kept()
        joined.add(one.alias, one.item, one.source.kind or "INNER", on, one.inside, earlier, absent)
        earlier = earlier or one.inside
    return joined


def kept_on(
    source: Source,
    before: Mapping[str, frozenset[str]],
    scope: FromColumns,
    joined: Joined,
    left_out: Callable[[exp.Expr], bool],
) -> Kept:
    """What is left of ON or USING of a FROM item, whose own columns `joined` knows already. `before`: the columns without them.
    `left_out`: conditions that are not to be evaluated."""
    if source.using:
        return _kept_using(source, before, scope, joined)
    texts: list[str] = []
    proven: set[str] = set()
    for piece in source.on:
        needs = needed(piece.node, scope)
        proven |= needs & joined.covered
        used, complete = scope.references(piece.node)
        if has_query(piece.node) or left_out(piece.node) or not complete:
            continue
        if joined.there(used) and joined.doubtful(used) <= needs:
            texts.append(f"({piece.text})")
    whole = len(texts) == len(source.on) and not proven
    ranged = not any(isinstance(piece.node.unnest(), exp.EQ | exp.NullSafeEQ) for piece in source.on)
    return Kept(tuple(texts), frozenset(proven), whole, bool(source.on), ranged=ranged)


def _kept_using(source: Source, before: Mapping[str, frozenset[str]], scope: FromColumns, joined: Joined) -> Kept:
    """All columns of USING or none: they are compared as they are, so neither side's may be NULL."""
    alias = list(joined.columns)[-1]
    names = [name.lower() for name in source.using]
    sides = [scope.compared[alias, name] for name in names]
    there = all(name in before.get(side, ()) for name, side in zip(names, sides, strict=True))
    if not there or not all(name in joined.columns[alias] for name in names):
        return Kept(there=True, whole=False)
    proven = frozenset(sides) & joined.covered
    return Kept((), proven, not proven, True, source.using)
