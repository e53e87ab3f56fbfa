"""Types of a query's columns, as far as they follow from those of its tables: what is no plain column, cast or text has none here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.delta.names import Columns, FromColumns, Place, aliases, expand, output
from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, SelectNode, SetNode, reads

FLOATING = frozenset({"double", "float"})
"""Types of which 0.0 and -0.0 are equal, and not the same value."""


@dataclass(frozen=True)
class ColumnTypes:
    """`of_table`: a table's columns with their types, all in lower case, by its name. `scope`: the FROM items of a SELECT."""

    of_table: Callable[[str], Mapping[str, str]]
    tables: Columns
    scope: Callable[[SelectNode], FromColumns]
    _known: dict[tuple[int, str], str | None] = field(default_factory=dict)  # by the id of a node, which outlives this

    def of(self, node: Leaf | Node, column: str) -> str | None:
        """The type of an output column (lower case); None where it is not known."""
        if (id(node), column) not in self._known:
            self._known[id(node), column] = self._of(node, column)
        return self._known[id(node), column]

    def _of(self, node: Leaf | Node, column: str) -> str | None:
        if isinstance(node, Leaf):
            return self.of_table(node.name.lower()).get(column)
        if isinstance(node, SetNode):
            names = [name.lower() for name in output(node, self.tables)]
            return self._in_arms(node, names.index(column)) if names.count(column) == 1 else None
        for item in node.items:
            if item.name is None:
                for alias, name in expand(node, item, self.tables):
                    if name.lower() == column:
                        return self.of_place((alias.lower(), column), node)
            elif item.name.lower() == column:
                return self._of_expression(item.node, node)
        return None

    def alike(self, node: SetNode) -> bool:
        """Whether all arms give columns of the same types, so that each has by itself those that it has among the others."""
        return all(self._in_arms(node, k) is not None for k in range(len(output(node, self.tables))))

    def may_float(self, place: Place, node: SelectNode) -> bool:
        """Whether a column of FROM is, or may be made of, floating-point numbers."""
        found = self.of_place(place, node)
        if found is not None:
            return found in FLOATING
        return any(kind in FLOATING for name in reads(node) for kind in self.of_table(name).values())

    def check_using(self, node: SelectNode, scope: FromColumns) -> None:
        """Raises where what RIGHT JOIN USING shows, the right side's column, may be of another type than the left side's: once partners are
        all that is looked for, it is the left side's."""
        for alias, source in zip(aliases(node), node.sources, strict=True):
            for column in map(str.lower, source.using if source.kind == "RIGHT" else ()):
                left = self.of_place((scope.compared[alias.lower(), column], column), node)
                if left is None or left != self.of(source.item, column):
                    raise NotIncremental("JOIN_KIND", f"RIGHT JOIN USING ({column}): its two sides may be of two types")

    def _in_arms(self, node: SetNode, position: int) -> str | None:
        found = {self.of(arm, output(arm, self.tables)[position].lower()) for arm in node.arms}
        return found.pop() if len(found) == 1 else None

    def of_place(self, place: Place, node: SelectNode) -> str | None:
        """The type of a column of FROM; None where it is not known."""
        sources = dict(zip((alias.lower() for alias in aliases(node)), node.sources, strict=True))
        return self.of(sources[place[0]].item, place[1]) if place[0] in sources else None

    def _of_expression(self, tree: exp.Expr, node: SelectNode) -> str | None:
        tree = tree.unnest()
        if isinstance(tree, exp.Cast):
            return tree.to.sql("spark").lower()
        if isinstance(tree, exp.Literal):
            return "string" if tree.is_string else None
        place = self.scope(node).whole(tree)
        return self.of_place(place, node) if place is not None else None
