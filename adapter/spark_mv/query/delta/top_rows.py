"""ORDER BY … LIMIT n of the outermost SELECT: the query without it, and the order said of its output columns.

What a table holds are the first n rows of the query without its LIMIT. Rows that the table lacks stand behind its last one, so
that the first n rows are known again as long as n rows stand no further behind than that one did (top-k views over a relation:
Yi, Yu, Yang, Xia and Chen 2003). The order has to name the unique_key, which the author says is unique. Should it not be, among
rows that the LIMIT leaves out, then rows may tie at its end, and the table has one of the results that the query may give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.expressions import has_query, sees_other_rows
from spark_mv.query.delta.names import Columns, FromColumns, output
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.aggregates import groups_or_windows
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.placing import SelectParts
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.select_tree import Node, NotIncremental, SelectNode, calls, quoted
from spark_mv.query.syntax.source_blocks import span_of


@dataclass(frozen=True)
class TopRows:
    """The first `count` rows in an order over output columns. `order`: the items of its ORDER BY; `columns`: all output
    columns that it reads, of which `plain` ones (lower case) stand there as they are."""

    count: int
    order: tuple[str, ...]
    columns: tuple[str, ...]
    plain: frozenset[str]

    @property
    def order_by(self) -> str:
        return ", ".join(self.order)


@dataclass(frozen=True)
class Limited:
    """A query with its ORDER BY … LIMIT blanked out, so that all else has its place in the `text`. `whole`: the text that `tree`
    was read from. `unsettled`: output columns (lower case) that are no function of their rows alone."""

    text: str
    whole: str
    tree: exp.Select
    count: int
    unsettled: frozenset[str] = frozenset()

    def rows(self, node: Node, tables: Columns) -> TopRows:
        """`node` is the tree of `text`. Raises NotIncremental where the order cannot be said of output columns."""
        assert isinstance(node, SelectNode)
        names = {name.lower(): name for name in output(node, tables)}
        found: list[tuple[str, tuple[str, ...], bool]] = []
        for item in self.tree.args["order"].expressions:
            text, read, plain = self._item(item.this, node, names, tables)
            nulls = "FIRST" if item.args.get("nulls_first") else "LAST"
            found.append((f"{text} {'DESC' if item.args.get('desc') else 'ASC'} NULLS {nulls}", read, plain))
        return TopRows(
            self.count,
            tuple(text for text, _, _ in found),
            tuple(dict.fromkeys(name for _, read, _ in found for name in read)),
            frozenset(name.lower() for _, read, plain in found if plain for name in read),
        )

    def _item(
        self, item: exp.Expr, node: SelectNode, names: dict[str, str], tables: Columns
    ) -> tuple[str, tuple[str, ...], bool]:
        """The text over output columns, these, and whether it is one of them. As Spark resolves it: output columns come before
        those of FROM."""
        if isinstance(item, exp.Literal) and item.is_int:
            at = int(item.name) - 1
            if 0 <= at < len(names) and len(names) == len(output(node, tables)):
                name = output(node, tables)[at]
                return quoted(name), (name,), True
        elif isinstance(item, exp.Column) and (shown := self._shown(item, node, names, tables)) is not None:
            return quoted(shown), (shown,), True
        elif not isinstance(item, exp.Column | exp.Literal):
            for other in node.items:
                if other.name is not None and other.node == item and not self._hidden(item, node):
                    return quoted(other.name), (other.name,), True
            read = list(item.find_all(exp.Column))
            if read and all(len(c.parts) == 1 and c.name.lower() in names for c in read) and _of_own_row(item):
                return f"({span_of(item).of(self.whole)})", tuple(names[c.name.lower()] for c in read), False
        raise NotIncremental(
            "ORDER_NOT_SHOWN", "ORDER BY … LIMIT orders by what is no output column: select what it orders by"
        )

    def _shown(self, column: exp.Column, node: SelectNode, names: dict[str, str], tables: Columns) -> str | None:
        if len(column.parts) == 1 and column.name.lower() in names:
            return names[column.name.lower()]
        scope = FromColumns.of(node, tables)
        place = scope.whole(column)
        for item in node.items:
            if (
                item.name
                and isinstance(item.node, exp.Column)
                and place is not None
                and scope.whole(item.node) == place
            ):
                return item.name
        return None

    def _hidden(self, item: exp.Expr, node: SelectNode) -> bool:
        """Whether a name in the expression is an output column of another meaning, which it would be taken for."""
        used = {column.name.lower() for column in item.find_all(exp.Column) if len(column.parts) == 1}
        given = {
            other.name.lower() for other in node.items
            if other.name and not (isinstance(other.node, exp.Column) and other.node.name.lower() == other.name.lower())
        }  # fmt: skip
        return bool(used & given) or any(other.name is None for other in node.items)


def _of_own_row(item: exp.Expr) -> bool:
    if has_query(item) or groups_or_windows(item) or sees_other_rows(item) or item.find(exp.Star, exp.Lambda):
        return False
    return all(level_of(name) is Level.DETERMINISTIC for name in calls(item))


def limited(analysis: Analysis) -> Limited | None:
    """None for a query without LIMIT in the outermost SELECT, with one of another kind than ORDER BY … LIMIT n, or with rows that
    draws, answers or an order decide besides."""
    if not analysis.shape.limit:
        return None
    found = parse(analysis.sql)
    if isinstance(found, QueryError) or not isinstance(found.tree, exp.Select):
        return None
    tree = found.tree
    limit, order, parts = tree.args.get("limit"), tree.args.get("order"), tree.meta.get("select")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    if (
        not isinstance(order, exp.Order)
        or not isinstance(number, exp.Literal)
        or not (number.is_int and int(number.name) > 0)
        or any(tree.args.get(key) for key in ("offset", "sort", "cluster", "distribute"))
        or not isinstance(parts, SelectParts)
    ):
        return None
    apart = [c.level for c in analysis.clauses if c.clause != "LIMIT"] + [p.level for p in analysis.predicates]
    if any(level > Level.COMMAND for level in apart):
        return None
    text = analysis.sql
    for start, end in _clauses(parts):
        blank = "".join(char if char.isspace() else " " for char in text[start:end])
        text = text[:start] + blank + text[end:]
    unsettled = frozenset(c.name.lower() for c in analysis.columns if c.level > Level.COMMAND)
    return Limited(text, analysis.sql, tree, int(number.name), unsettled)


def _clauses(parts: SelectParts) -> Iterator[tuple[int, int]]:
    for word, start, end in parts.clauses:
        if word in ("ORDER BY", "LIMIT"):
            yield start, end
