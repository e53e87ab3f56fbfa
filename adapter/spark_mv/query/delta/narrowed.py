"""The joined items of a restricted query, restricted too.

    … from customers c left join spent s on s.customer = c.id        rows whose c.id is affected: so are those of s that they join

Where the rows that a SELECT is asked for are told by a column of one FROM item, an equality in ON or WHERE hands the condition to the item
on its other side: rows of it with other values are joined to rows that nobody asked for. Spark moves such a condition down the side that has
the column, below its groups and windows, and never over to the other one. So a mart that joins the groups of a large table to its key would
compute all of these groups for a handful of keys.

What is said of an item holds below it, as long as nothing else reads the text that it is made of: of the keys of its groups, of what all its
windows are partitioned by, of the columns that a join passes on. Not through a RIGHT or FULL JOIN, where a row without a partner is a row too;
nor through an equality of expressions, or one equality through another: two columns that are equal to a third one by way of a cast need not be
equal to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.delta.names import Columns, FromColumns, Place, aliases, listed, output
from spark_mv.query.delta.partitions import shared_partition
from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, SelectNode, quoted, selects
from spark_mv.query.syntax.source_blocks import span_of
from spark_mv.query.syntax.source_text import Edit, SourceTextError

_ITEM = "`__mv_i`"


@dataclass(frozen=True)
class KnownColumns:
    """Columns of each table (lower case), and the types of the query's output columns (lower case) that the table of affected rows has too ('': not known).
    `comparable`: values are equal wherever they are compared."""

    tables: Columns
    types: Mapping[str, str]
    comparable: bool = True


def are_comparable(types: Iterable[str]) -> bool:
    """Whether values of columns of these types are equal wherever they are compared: a CHAR is padded for the comparison with another CHAR.

    >>> are_comparable(["bigint", "varchar(3)"]), are_comparable(["char(3)"])
    (True, False)
    """
    return not any(type_.lower().startswith("char") for type_ in types)


def narrowed(root: Node, affected: str, anchors: Mapping[str, str], known: KnownColumns) -> list[Edit]:
    """Edits of the text that `root` was built from. `anchors`: output column → column of the table `affected`; rows of `root` with other
    values are not asked for. Nothing where the structure does not tell."""
    if not isinstance(root, SelectNode) or not known.comparable:
        return []
    asked = {
        name.lower(): f"CAST(`__mv_k`.{quoted(column)} AS {type_})"
        for name, column in anchors.items()
        if (type_ := known.types.get(name.lower())) and "<" not in type_
    }
    places = Counter(select.start for select in selects(root))
    try:
        return list(_Narrowing(affected, known, places).of(root, asked))
    except (NotIncremental, SourceTextError):
        return []


@dataclass(frozen=True)
class _Narrowing:
    affected: str
    known: KnownColumns
    places: Counter[int]  # how many SELECTs of the tree stand at a place of the text: a CTE is read as often

    def of(self, node: Node, asked: Mapping[str, str]) -> Iterator[Edit]:
        """`asked`: output column (lower case) → the value in a row `__mv_k` of the affected ones that it has where the row is asked for."""
        if not isinstance(node, SelectNode) or not self._read_once(node) or not asked:
            return
        if any(source.fills_left for source in node.sources) or (node.aggregate and not node.grouped):
            return
        scope = FromColumns.of(node, self.known.tables)
        told = self._told(node, scope, asked)
        equal = list(_equalities(node, scope))
        for alias, source, tree in zip(aliases(node), node.sources, _from(node), strict=True):
            name = alias.lower()
            own = {column: value for (a, column), value in told.items() if a == name}
            if own and source.inner and not isinstance(source.item, Leaf):
                yield from self.of(source.item, own)
            given = {
                mine[1]: told[other] for mine, other in equal if mine[0] == name and other[0] != name and other in told
            }
            if given and self._has_once(source.item, given):
                if not own and not isinstance(source.item, Leaf):
                    yield from self.of(source.item, given)
                yield from self._edits(tree, given)

    def _read_once(self, node: SelectNode) -> bool:
        """Whether nothing else reads what its text says, and it has one to be edited."""
        return node.start >= 0 and self.places[node.start] == 1

    def _told(self, node: SelectNode, scope: FromColumns, asked: Mapping[str, str]) -> dict[Place, str]:
        """The columns of FROM items that output columns pass on, with their values in the rows that are asked for."""
        found: dict[Place, str] = {}
        shared = shared_partition(node, scope)[0] if node.windowed else None
        names = Counter(name.lower() for name in output(node, self.known.tables))
        for name, by in listed(node, self.known.tables):
            place, column = scope.passed_on(by), name.lower()
            if place and column in asked and names[column] == 1 and (shared is None or place in shared):
                found[place] = asked[column]
        return found

    def _has_once(self, item: Leaf | Node, columns: Iterable[str]) -> bool:
        names = Counter(name.lower() for name in output(item, self.known.tables))
        return all(names[column] == 1 for column in columns)

    def _edits(self, tree: exp.Expr, given: Mapping[str, str]) -> Iterator[Edit]:
        """The FROM item with the condition."""
        test = " AND ".join(f"{value} = {_ITEM}.{quoted(column)}" for column, value in given.items())
        where = f"WHERE EXISTS (SELECT 1 FROM {self.affected} AS `__mv_k` WHERE {test})"
        if isinstance(tree, exp.Table):
            start, end = tree.parts[0].meta.get("start"), tree.parts[-1].meta.get("end")
            if start is None or end is None:
                return
            alias = "" if tree.alias else f" AS {quoted(tree.parts[-1].name)}"
            yield Edit(start, start, "(SELECT * FROM ")
            yield Edit(end + 1, end + 1, f" AS {_ITEM} {where}){alias}")
        elif isinstance(tree, exp.Subquery):
            span = span_of(tree.this)
            yield Edit(span.start, span.start, "SELECT * FROM (")
            yield Edit(span.end, span.end, f"\n) AS {_ITEM} {where}")


def _from(node: SelectNode) -> list[exp.Expr]:
    """The FROM items as they were parsed, in the order of `sources`."""
    if not node.sources:
        return []
    found = [node.tree.args["from_"].this, *(join.this for join in node.tree.args.get("joins") or [])]
    return found[: len(node.sources)]  # behind them stand generators


def _equalities(node: SelectNode, scope: FromColumns) -> Iterator[tuple[Place, Place]]:
    """Pairs of columns of which the first one's rows matter only where it is equal to the second one."""
    before: set[str] = set()
    for alias, source in zip(aliases(node), node.sources, strict=True):
        own = alias.lower()
        pairs = [pair for piece in source.on if (pair := _pair(piece.node, scope))]
        pairs += [
            ((own, column), (scope.compared[own, column], column)) for column in (u.lower() for u in source.using)
        ]
        for one, other in pairs:
            for mine, its in ((one, other), (other, one)):
                if source.kind == "INNER" or (mine[0] == own and its[0] in before):
                    yield mine, its
        before.add(own)
    for piece in node.where:
        if pair := _pair(piece.node, scope):
            yield pair
            yield pair[::-1]


def _pair(node: exp.Expr, scope: FromColumns) -> tuple[Place, Place] | None:
    if not isinstance(node, exp.EQ):
        return None
    one, other = scope.whole(node.this), scope.whole(node.expression)
    return (one, other) if one and other else None
