"""Joins of a query about changes that decide no anchor. A row comes through a LEFT JOIN at least once, whatever stands on
its right; so where nothing is asked of that side, the join can be left out, and its table need not be read.

An inner join of which nothing is asked only takes rows away. Without it more anchors are found, no more than there are changed rows,
and they are computed anew for nothing. That is little beside reading a table which is many times larger than the change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from spark_mv.query.delta.expressions import has_query
from spark_mv.query.delta.names import Columns, FromColumns, Place, aliases, expand, is_whole_row
from spark_mv.query.delta.outer import outer_columns
from spark_mv.query.syntax.select_tree import Leaf, Node, SelectNode, reads


@dataclass(frozen=True)
class Asked:
    """What a SELECT asks of its FROM items: `places`; `idle` are the numbers of those that can be left out."""

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
    outweighs: Callable[[str], bool] | None,
) -> Asked | None:
    """`wanted`: the output columns (lower case) that matter. `followed`: whether the place of change is in an item; `outweighs`: whether a
    table (lower case) is so large that anchors without a partner in it are found sooner than told apart (None: what is followed is no change of a
    table). None where all is asked of all, or that cannot be told."""
    if wanted is None or node.laterals or any(s.using or s.fills_left for s in node.sources):
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
    for query in (*node.subqueries.values(), *(query for query in node.listed if followed(query))):
        places |= outer_columns(query, scope, tables)
    shown = {alias for alias, _ in places}
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
    large = outweighs or (lambda _: False)
    inner = _inner(node, scope, idle, shown, lambda item: any(map(large, reads(item))) and not followed(item))
    return Asked(frozenset(places), frozenset(idle | inner))


def _inner(
    node: SelectNode, scope: FromColumns, idle: set[int], shown: set[str], spared: Callable[[Leaf | Node], bool]
) -> set[int]:
    """The inner joins that can be left out: those of `spared` items that the others do not need to find each other."""
    items = {
        n: (a.lower(), s) for n, (a, s) in enumerate(zip(aliases(node), node.sources, strict=True)) if n not in idle
    }
    pieces = [piece.node for _, source in items.values() for piece in source.on]
    if not {source.kind for _, source in items.values()} <= {"", "INNER"} or any(map(has_query, pieces)):
        return set()
    links = [{alias for alias, _ in scope.references(piece)[0]} for piece in pieces]
    left = dict(items)
    while len(left) > 1:
        here = {alias for alias, _ in left.values()}
        ends = (
            n
            for n, (alias, source) in left.items()
            if alias not in shown
            and spared(source.item)
            and len({a for link in links if alias in link for a in link & here} - {alias}) < 2
        )
        number = next(ends, None)
        if number is None:
            break
        del left[number]
    return items.keys() - left.keys()
