"""Which FROM item a column of one SELECT belongs to, and which columns a query gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, OutItem, SelectNode, SetNode

Columns = Mapping[str, tuple[str, ...]]  # table name in lower case → its columns


def output(node: Leaf | Node, tables: Columns) -> tuple[str, ...]:
    """The output columns of a table or query, stars spelled out. Raises NotIncremental where they are not known."""
    if isinstance(node, Leaf):
        if node.name.lower() not in tables:
            raise NotIncremental("UNKNOWN_COLUMNS", f"the columns of {node.name} are not known")
        return tables[node.name.lower()]
    if isinstance(node, SetNode):
        return output(node.arms[0], tables)
    names: list[str] = []
    for item in node.items:
        names += [item.name] if item.name is not None else [c for _, c in expand(node, item, tables)]
    return tuple(names)


def expand(node: SelectNode, item: OutItem, tables: Columns) -> list[tuple[str, str]]:
    """A star as (alias of the FROM item, column), in order. A column of USING stands once, with its left side."""
    star = item.node if isinstance(item.node, exp.Star) else item.node.this
    if star.args.get("replace") or star.args.get("rename"):
        raise NotIncremental("STRUCTURE", "a star with REPLACE or RENAME")
    dropped = {column.name.lower() for column in star.args.get("except_") or []}
    wanted = item.node.table.lower() if isinstance(item.node, exp.Column) else ""
    found: list[tuple[str, str]] = []
    shared: set[str] = set()
    for source in node.sources:
        if source.kind in ("LEFT SEMI", "LEFT ANTI"):
            continue
        if wanted and source.alias.lower() != wanted:
            continue
        for column in output(source.item, tables):
            merged = column.lower() in {c.lower() for c in source.using} and not wanted
            if column.lower() not in dropped and not (merged and column.lower() in shared):
                found.append((source.alias, column))
            shared.add(column.lower())
    if node.laterals and not wanted:
        raise NotIncremental("STRUCTURE", "a star beside LATERAL VIEW")
    return found


@dataclass
class Scope:
    """The FROM items of one SELECT. `sources`: alias → columns, lower case. `outer` is the scope around a subquery."""

    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    laterals: frozenset[str] = frozenset()  # columns made by LATERAL VIEW, whatever their names

    @classmethod
    def of(cls, node: SelectNode, tables: Columns) -> Scope:
        scope = cls()
        for k, source in enumerate(node.sources):
            alias = (source.alias or f"_{k}").lower()
            if alias in scope.sources:
                raise NotIncremental("STRUCTURE", f"two FROM items are called {alias}")
            columns = [c.lower() for c in output(source.item, tables)]
            if source.renames and [c.lower() for c in source.renames] != columns:
                raise NotIncremental("COLUMN_ALIASES", f"{source.alias} renames its columns in parentheses")
            scope.sources[alias] = frozenset(columns)
        return scope

    def resolve(self, column: exp.Column) -> tuple[str, str] | None:
        """(alias, column), or None for what is not here: an outer column, a lateral alias, a generated column."""
        parts = [part.name.lower() for part in column.parts]
        for k in range(len(parts) - 1, 0, -1):
            # the alias is the last part of a table's name, or all there is before the column
            if parts[k - 1] in self.sources and parts[k] in self.sources[parts[k - 1]]:
                return parts[k - 1], parts[k]
        owners = [alias for alias, columns in self.sources.items() if parts[0] in columns]
        return (owners[0], parts[0]) if owners else None

    def references(self, node: exp.Expr) -> tuple[set[tuple[str, str]], bool]:
        """The columns that an expression uses, subqueries excluded, and whether all of them were found here."""
        found: set[tuple[str, str]] = set()
        complete = True
        lambdas: set[str] = set()
        for item in node.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(item, exp.Lambda):
                lambdas |= {e.name.lower() for e in item.expressions}
        for item in node.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
                if item.parts[0].name.lower() in lambdas:
                    continue
                place = self.resolve(item)
                complete = complete and place is not None
                if place is not None:
                    found.add(place)
        return found, complete
