"""The output columns of a SELECT that can serve as anchors: each is a value of its own row alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.delta.clock_places import ClockPlaces
from spark_mv.query.delta.column_types import ColumnTypes
from spark_mv.query.delta.expressions import has_query, own_functions, sees_other_rows
from spark_mv.query.delta.joined import Joined
from spark_mv.query.delta.names import FromColumns, Place, is_whole_row, star_texts
from spark_mv.query.delta.partitions import shared_partition
from spark_mv.query.syntax.aggregates import aggregates
from spark_mv.query.syntax.select_tree import NotIncremental, OutItem, SelectNode, calls

Shared = tuple[set[Place], list[exp.Expr]]


@dataclass
class Anchors:
    """`unstable` as in Affected; `moved`: the clock moved a row; `types` of the columns of FROM. What is known of an expression is remembered by its id: the
    tree outlives the question, and a join of 30 tables asks 30 times."""

    unstable: frozenset[str]
    clock: ClockPlaces
    moved: bool
    types: ColumnTypes
    _unstable: dict[int, bool] = field(default_factory=dict)
    _alone: dict[int, bool] = field(default_factory=dict)

    def listed(
        self, node: SelectNode, scope: FromColumns, joined: Joined, focused: bool, wanted: Collection[str] | None = None
    ) -> tuple[list[tuple[str, str]], list[str | None]]:
        """The columns that can serve as anchors (text, name), and those of `Rendered`. `focused`: a change below is followed.
        `wanted`: the names (lower case) that matter; all of them if None."""
        # where nothing of a partition is looked for, its rows are those that it is made of
        shared = shared_partition(node, scope) if node.windowed and focused else None
        if node.aggregate and not node.grouped:
            raise NotIncremental("GLOBAL_AGGREGATE", "an aggregate without GROUP BY has one group: the whole source")
        entries: dict[str, tuple[str, str]] = {}
        columns: list[str | None] = []
        for item in node.items:
            for text, name, usable in self._entries(node, item, scope, joined, shared):
                usable = usable and name.lower() not in entries and (wanted is None or name.lower() in wanted)
                columns.append(name if usable else None)
                if usable:
                    entries[name.lower()] = text, name
        return list(entries.values()), columns

    def _entries(
        self, node: SelectNode, item: OutItem, scope: FromColumns, joined: Joined, shared: Shared | None
    ) -> Iterator[tuple[str, str, bool]]:
        moving = self.clock.offered(node) if self.moved else frozenset()
        if item.name is None:
            for alias, column, text in star_texts(node, item, self.clock.tables):
                place = (alias.lower(), column.lower())
                usable = place not in moving and joined.believed([place])
                yield text, column, usable and (shared is None or place in shared[0])
            return
        if usable := self.alone(item.node):
            used, complete = scope.references(item.node)
            usable = not (node.aggregate and (aggregates(item.node) or own_functions(item.node))) and not used & moving
            usable = usable and (complete or bool(node.laterals and not used)) and joined.believed(used)
            if scope.whole(item.node) is None:
                # one group, or partition, has 0.0 and -0.0, of which an expression may make two values
                here = node.aggregate or shared is not None
                two = self.types.may_float if here else self.types.may_stand_for_two
                usable = usable and not any(two(place, node) for place in used)
            if shared is not None:
                usable = usable and bool(used) and (used <= shared[0] or item.node in shared[1])
        yield item.text, item.name, usable

    def alone(self, node: exp.Expr) -> bool:
        """Whether an expression is a value of its own row alone, whatever other rows or columns there are."""
        if id(node) not in self._alone:
            others = has_query(node) or node.find(exp.Window) is not None or sees_other_rows(node)
            self._alone[id(node)] = not (others or is_whole_row(node) or self.is_unstable(node))
        return self._alone[id(node)]

    def is_unstable(self, node: exp.Expr) -> bool:
        """Whether an expression may have another value when it is evaluated again."""
        if id(node) not in self._unstable:
            self._unstable[id(node)] = any(name in self.unstable for name in calls(node)) or self.moves(node)
        return self._unstable[id(node)]

    def moves(self, node: exp.Expr) -> bool:
        """Whether an expression follows the clock by itself, which moved."""
        return self.moved and self.clock.reads(node)
