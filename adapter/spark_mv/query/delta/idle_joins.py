"""Outer joins of a query about changes that decide no anchor. A row comes through a LEFT JOIN at least once, whatever stands on
its right; so where nothing is asked of that side, the join can be left out, and its table need not be read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from spark_mv.query.delta.names import Columns, FromColumns, Place, aliases, expand, is_whole_row
from spark_mv.query.delta.outer import outer_columns
from spark_mv.query.syntax.select_tree import Leaf, Node, SelectNode


@dataclass(frozen=True)
class Asked:
    """What a SELECT asks of its FROM items: `places`; `idle` are the numbers of those of which nothing is asked."""

    places: frozenset[Place]
    idle: frozenset[int]

    def of(self, alias: str) -> frozenset[str]:
        """The columns (lower case) that are asked of one item."""
        return frozenset(column for name, column in self.places if name == alias.lower())


def asked(
    node: SelectNode,
    scope: FromColumns,
    tables: Columns,
    wanted: Collection[str] | None,
    followed: Callable[[Leaf | Node], bool],
) -> Asked | None:
    """`wanted`: the output columns (lower case) that matter. `followed`: whether the place of change is in an item. None where
    all is asked of all, or that cannot be told."""
    if wanted is None or node.laterals or any(s.using or s.kind in ("RIGHT", "FULL") for s in node.sources):
        return None
    places: set[Place] = set()
    for item in node.items:
        if item.name is None:
            listed = ((alias.lower(), column.lower()) for alias, column in expand(node, item, tables))
            places |= {place for place in listed if place[1] in wanted}
        elif item.name.lower() in wanted:
            places |= scope.references(item.node)[0]
    for piece in node.where:
        if is_whole_row(piece.node):
            return None
        places |= scope.references(piece.node)[0]
    for query in node.subqueries.values():
        places |= outer_columns(query, scope, tables)
    idle: set[int] = set()
    for number, (alias, source) in reversed(list(enumerate(zip(aliases(node), node.sources, strict=True)))):
        used = any(name == alias.lower() for name, _ in places)
        if source.kind == "LEFT" and not used and not followed(source.item):
            idle.add(number)
            continue
        for piece in source.on:
            if is_whole_row(piece.node):
                return None
            places |= scope.references(piece.node)[0]
    return Asked(frozenset(places), frozenset(idle))
