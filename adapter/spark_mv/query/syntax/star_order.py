"""Which columns a star gives, and in which order: a join by USING or NATURAL shows the columns that it compares once, ahead of all others.

Spark's own rules: ResolveNaturalAndUsingJoin makes a projection of such a join, and UnresolvedStar takes what that shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from spark_mv.query.syntax.joins import HIDING

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shown(Generic[Item]):
    """The columns of FROM items joined so far. `columns` are those of `*`. `hidden` are compared columns that are shown by
    that of the other side: `alias.*` still gives them, ahead of the others."""

    columns: tuple[Item, ...] = ()
    hidden: tuple[Item, ...] = ()

    def qualified(self, is_of: Callable[[Item], bool]) -> list[Item]:
        """The columns of `alias.*`, of which `is_of` says whether one is of that alias."""
        return [item for item in (*self.hidden, *self.columns) if is_of(item)]


def common_names(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The columns that NATURAL compares: those called the same on both sides, letter by letter, in the order of the left one."""
    remaining, found = list(right), []
    for name in left:
        if name in remaining:
            remaining.remove(name)
            found.append(name)
    return found


@dataclass(frozen=True)
class StarOrder(Generic[Item]):
    """`name`: a column's name, None for what has none. `merged`: what a compared column is shown as, of the left and the right one
    and the kind of the join."""

    name: Callable[[Item], str | None]
    merged: Callable[[Item, Item, str], Item]

    def join(self, left: Shown[Item], right: Shown[Item], kind: str, using: Sequence[str] = ()) -> Shown[Item]:
        """`left` joined to `right`. `kind`: INNER, CROSS, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI."""
        places = [(self._place(left, name), self._place(right, name)) for name in using]
        pairs = [(i, k) for i, k in places if i is not None and k is not None]
        ours, theirs = [left.columns[i] for i, _ in pairs], [right.columns[k] for _, k in pairs]
        left_rest = _without(left.columns, [i for i, _ in pairs])
        right_rest = _without(right.columns, [k for _, k in pairs])
        shown = [self.merged(one, other, kind) for one, other in zip(ours, theirs, strict=True)]
        if kind in HIDING:
            return Shown((*ours, *left_rest), left.hidden)
        compared = {"RIGHT": ours, "FULL": [*ours, *theirs]}.get(kind, theirs)
        return Shown((*shown, *left_rest, *right_rest), (*compared, *left.hidden, *right.hidden))

    def _place(self, side: Shown[Item], name: str) -> int | None:
        """Where the first column of that name stands."""
        names = (self.name(item) for item in side.columns)
        return next((i for i, own in enumerate(names) if own is not None and own.lower() == name.lower()), None)


def _without(items: Sequence[Item], places: Sequence[int]) -> tuple[Item, ...]:
    return tuple(item for i, item in enumerate(items) if i not in places)
