"""An expression of a SELECT said of the rows of one table, through the CTEs, views and subqueries between them that pass rows
on one by one:

    with o as (select date_trunc('day', ts) as day from t) select … from o where o.day >= x      t: date_trunc('day', t.ts) >= x
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.delta.clock_places import ClockPlaces, column_span
from spark_mv.query.delta.expressions import has_query
from spark_mv.query.delta.instants import draws
from spark_mv.query.delta.names import Place, aliases, is_whole_row, listed
from spark_mv.query.syntax.select_tree import Leaf, OutItem, SelectNode, Source, quoted
from spark_mv.query.syntax.source_blocks import span_of
from spark_mv.query.syntax.source_text import Edit, apply_edits


@dataclass(frozen=True)
class InTable:
    """The text over the columns of `table`, which is called `alias` in it."""

    table: Leaf
    alias: str
    text: str


def in_table(node: exp.Expr, select: SelectNode, clock: ClockPlaces, unstable: Collection[str]) -> InTable | None:
    """None where the expression reads no table or more than one, or a column that is not made of the table's row alone. `unstable`:
    names of functions that may give another value when they are asked again."""
    if has_query(node) or is_whole_row(node) or draws(node, unstable):
        return None
    scope, start = clock.scope(select), span_of(node).start
    used, complete = scope.references(node)
    if not complete or not used:
        return None
    tables: dict[int, InTable] = {}
    edits: dict[int, Edit] = {}
    for column in node.find_all(exp.Column):
        place = scope.resolve(column)
        found = _column(place, select, clock, unstable) if place is not None else None
        if place is None or found is None:
            return None
        tables[id(found.table)] = found
        if isinstance(_source(place, select).item, Leaf):
            continue
        span = column_span(column)
        if scope.whole(column) is None:
            return None  # a field of a column that an expression gives
        edits[span.start] = Edit(span.start - start, span.end - start, found.text)
    if len(tables) != 1:
        return None
    (table,) = tables.values()
    return InTable(table.table, table.alias, apply_edits(span_of(node).of(clock.sql), list(edits.values())))


def _source(place: Place, select: SelectNode) -> Source:
    return next(s for alias, s in zip(aliases(select), select.sources, strict=True) if alias.lower() == place[0])


def _column(place: Place, select: SelectNode, clock: ClockPlaces, unstable: Collection[str]) -> InTable | None:
    source = _source(place, select)
    if isinstance(source.item, Leaf):
        return InTable(source.item, source.alias, f"{quoted(source.alias)}.{quoted(place[1])}")
    node = source.item
    if not isinstance(node, SelectNode) or node.aggregate or node.distinct or node.windowed or node.laterals:
        return None
    item = _item(place[1], node, clock)
    if isinstance(item, OutItem):
        found = in_table(item.node, node, clock, unstable)
        return found and InTable(found.table, found.alias, f"({found.text})")
    return _column(item, node, clock, unstable) if item is not None else None


def _item(column: str, node: SelectNode, clock: ClockPlaces) -> OutItem | Place | None:
    """What gives an output column: an expression, or a column that a star passes on. None where two have the name."""
    found = [by for name, by in listed(node, clock.tables) if name.lower() == column]
    return found[0] if len(found) == 1 else None
