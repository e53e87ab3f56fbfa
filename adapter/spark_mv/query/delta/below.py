"""Groups over a part of a query that is not linear in what changed: groups of groups, groups of the newest row of each key.

    came = rows of the part now, went = its rows before, both for the keys that a change touches

The part's rows of all other keys are the same in both states. So what stands above it, if that is linear, has the same rows to
take and to give as if a table with the part's rows had changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.delta.distributive import GroupPart, is_exact, is_ordered, part_of
from spark_mv.query.delta.names import Columns, FromColumns, aliases
from spark_mv.query.functions.catalogue import Mark, is_marked
from spark_mv.query.syntax.aggregates import called, is_aggregate
from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, SelectNode, calls, reads, selects

Types = Mapping[str, Mapping[str, str]]
"""Table in lower case → column in lower case → its type."""

_ENDS = (GroupPart.MIN, GroupPart.MAX)
_OF_TIME = frozenset({"date_trunc", "trunc", "to_date", "date"})


def _counts(name: str) -> bool:
    """Whether the aggregate gives the same value of the same rows in whatever order they come: a number of rows, or a boolean."""
    return part_of(name) is GroupPart.COUNT or (part_of(name) in _ENDS and not is_marked(name, Mark.PICKS))


def _picks(name: str) -> bool:
    """Whether it does so where equal values are the same: the least or the greatest of them."""
    return part_of(name) in _ENDS and is_marked(name, Mark.PICKS)


def part_below(root: Node, changed: Collection[str], unstable: frozenset[str], exact: ExactTypes) -> SelectNode:
    """The part that all changed tables (lower case) stand in and nothing above it groups, orders or compares with other rows. Raises
    NotIncremental where there is none, or where it need not give the same rows when it is asked again."""
    node: Leaf | Node = root
    while True:
        above = node
        assert isinstance(above, SelectNode)
        node = _item(above, changed)
        if not isinstance(node, SelectNode):
            raise NotIncremental("NOT_LINEAR", "the rows that are grouped are no query of their own")
        if node.aggregate or node.windowed or node.distinct:
            break
    if any(name in unstable for select in selects(node) for name in calls(select.tree)):
        raise NotIncremental("NOT_LINEAR", "a part of the query need not give the rows that it gave")
    for select in selects(node):
        exact.check(select)
    if any(reads(root)[name] != reads(node)[name] for name in changed):
        raise NotIncremental("NOT_LINEAR", "a changed table is read in more than one place")
    return node


def _item(node: SelectNode, changed: Collection[str]) -> Leaf | Node:
    """The FROM item that the changed tables stand in, in which the rows of the SELECT are linear."""
    for k, source in enumerate(node.sources):
        if not any(name in reads(source.item) for name in changed):
            continue
        if not node.is_linear_in(k):
            break
        return source.item
    raise NotIncremental("NOT_LINEAR", "what changed is not joined by inner joins")


@dataclass(frozen=True)
class ExactTypes:
    """Whether aggregates give the same value in whatever order their rows come: the `types` of the tables' columns tell."""

    types: Types
    tables: Columns

    def check(self, node: SelectNode) -> None:
        """Raises NotIncremental where an aggregate of the SELECT depends on the order of its rows, as sums of doubles do."""
        for part in node.tree.walk(prune=lambda n: isinstance(n, exp.Query) and n is not node.tree):
            if not is_aggregate(part):
                continue
            name, argument = called(part), part.this
            exact = _counts(name)
            if _picks(name) and isinstance(argument, exp.Expr):
                exact = self._made_of(argument, node, is_ordered)
            elif part_of(name) is GroupPart.SUM and isinstance(argument, exp.Expr):
                exact = self._made_of(argument, node, is_exact)
            if not exact:
                sentence = f"{name or part.key} below the groups may depend on the order of its rows"
                raise NotIncremental("INEXACT_SUM", sentence)

    def _made_of(self, node: exp.Expr, select: SelectNode, type_fits: Callable[[str], bool]) -> bool:
        """Whether the values of the expression are of a type that fits, as its columns are."""

        def fits(part: object) -> bool:
            return isinstance(part, exp.Expr) and self._made_of(part, select, type_fits)

        if isinstance(node, exp.Paren | exp.Neg):
            return fits(node.this)
        if isinstance(node, exp.Distinct):
            return all(map(fits, node.expressions))
        if isinstance(node, exp.Coalesce):
            return all(map(fits, (node.this, *node.expressions)))
        if isinstance(node, exp.Case):
            given = [branch.args["true"] for branch in node.args["ifs"]]
            return all(map(fits, (*given, *filter(None, [node.args.get("default")]))))
        if isinstance(node, exp.Null):
            return True
        if isinstance(node, exp.Literal):
            number = not node.is_string and node.name.replace(".", "", 1).isdigit()  # no 1e3, no 1.0D
            return number or (node.is_string and type_fits is is_ordered)
        if isinstance(node, exp.Column):
            return self._column(node, select, type_fits)
        if _counts(called(node)):
            return True
        if part_of(called(node)) is not None:
            return fits(node.this)
        if type_fits is is_ordered:
            return called(node) in _OF_TIME and all(map(fits, node.iter_expressions()))
        return isinstance(node, exp.Add | exp.Sub | exp.Mul) and fits(node.this) and fits(node.args.get("expression"))

    def _column(self, column: exp.Column, select: SelectNode, type_fits: Callable[[str], bool]) -> bool:
        place = FromColumns.of(select, self.tables).whole(column)
        sources = dict(zip((alias.lower() for alias in aliases(select)), select.sources, strict=True))
        item = sources[place[0]].item if place is not None else None
        if place is None or item is None:
            return False
        if isinstance(item, Leaf):
            return type_fits(self.types.get(item.name.lower(), {}).get(place[1], ""))
        if isinstance(item, SelectNode):
            given = [found.node for found in item.items if (found.name or "").lower() == place[1]]
            return len(given) == 1 and self._made_of(given[0], item, type_fits)
        return False
