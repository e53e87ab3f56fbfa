"""All that the clock decides in a query, said of the rows of one table: then these rows are what a move of the clock changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from spark_mv.query.delta.clock_places import ClockPlaces
from spark_mv.query.delta.expressions import has_query
from spark_mv.query.delta.in_table import in_table
from spark_mv.query.delta.instants import draws, truths_differ
from spark_mv.query.rewrite.clock_move import is_comparison, pinned_condition
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.aggregates import aggregates, generates
from spark_mv.query.syntax.select_tree import Node, NotIncremental, Piece, SelectNode, selects
from spark_mv.query.syntax.source_text import SourceTextError


@dataclass(frozen=True)
class LeafClock:
    """The table `name` is called `alias` in all texts: `conditions` decide which of its rows pass, `values` (within columns
    and aggregates) what these give. `compared`: the conditions are solved comparisons."""

    name: str
    alias: str
    conditions: tuple[str, ...]
    values: tuple[str, ...] = ()
    compared: bool = False

    @property
    def plain(self) -> bool:
        """Whether the clock only decides which rows pass, by solved comparisons: these tell in which direction a row goes, and
        are NULL at every instant or at none."""
        return self.compared and not self.values

    def holds(self, pins: Pins) -> str:
        """Condition: the row passes."""
        return " AND ".join(f"({pinned_condition(text, pins)})" for text in self.conditions) or "true"

    def differs(self, before: Pins, now: Pins) -> str:
        """Condition: the row passes at one of the two instants only, or gives another value."""
        tests = [truths_differ(self.holds(before), self.holds(now), False)] if self.conditions else []
        tests += [f"NOT (({pinned_condition(v, before)}) <=> ({pinned_condition(v, now)}))" for v in self.values]
        return f"({' OR '.join(tests)})"


def leaf_clock(root: Node, clock: ClockPlaces, unstable: Collection[str], solved: Collection[int]) -> LeafClock | None:
    """`solved`: offsets of the solved predicates. None where the clock stands in more than one SELECT, in one that reads more than the table for it, or where it decides
    more than the table's rows."""
    holders = [node for node in selects(root) if clock.reads(node.tree)]
    if len(holders) != 1:
        return None
    (holder,) = holders
    pieces = [*holder.where, *(p for s in holder.sources if s.inner for p in s.on)]
    pieces = [piece for piece in pieces if clock.reads(piece.node)]
    values = list(_values(holder, clock))
    counted = [use for part in (*(p.node for p in pieces), *values) for use in clock.uses_in(part)]
    if sorted(counted, key=lambda use: use.start) != sorted(clock.uses_in(holder.tree), key=lambda use: use.start):
        return None
    parts = [*(p.node for p in pieces), *values]
    if holder.laterals or any(has_query(part) or draws(part, unstable) or generates(part) for part in parts):
        return None
    found = _of_table(holder, clock, pieces, values, unstable)
    return found and replace(found, compared=all(p.start in solved and is_comparison(p.node) for p in pieces))


def _of_table(
    holder: SelectNode, clock: ClockPlaces, pieces: list[Piece], values: list[exp.Expr], unstable: Collection[str]
) -> LeafClock | None:
    try:
        said = [in_table(part, holder, clock, unstable) for part in (*(p.node for p in pieces), *values)]
    except (NotIncremental, SourceTextError):
        return None
    tables = {id(found.table) for found in said if found is not None}
    if len(tables) != 1 or None in said:
        return None
    found = [one for one in said if one is not None]
    texts = tuple(one.text for one in found)
    return LeafClock(found[0].table.name, found[0].alias, texts[: len(pieces)], texts[len(pieces) :])


def _values(node: SelectNode, clock: ClockPlaces) -> Iterator[exp.Expr]:
    """The largest parts of the select list that read the clock and are said of single rows."""
    for item in node.items:
        if clock.reads(item.node):
            yield from _row_wise(item.node, clock)


def _row_wise(node: exp.Expr, clock: ClockPlaces) -> Iterator[exp.Expr]:
    if "span" in node.meta and not clock.reads(node):
        return
    if "span" in node.meta and not aggregates(node) and not node.find(exp.Window):
        yield node
        return
    for child in node.iter_expressions():
        yield from _row_wise(child, clock)
