"""The tables of a tree, and which CTE a table's name means."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables and CTEs that a tree reads, breadth first. Those that a hint names (`/*+ broadcast(t) */`) are not read there."""
    hints = {id(table) for hint in tree.find_all(exp.Hint) for table in hint.find_all(exp.Table)}
    return (table for table in tree.find_all(exp.Table) if id(table) not in hints)


def read_tables(tree: exp.Expr, ctes: CteNames) -> list[exp.Table]:
    """All of them but those inside CTEs that nobody reads."""
    found = list(tables(tree))
    inside = {id(table): {id(cte) for cte in ctes.around(table)} for table in found}
    while True:
        read = {id(ctes.of(table)) for table in found}
        left = [table for table in found if inside[id(table)] <= read]
        if len(left) == len(found):
            return found
        found = left


class CteNames:
    """The CTEs of one tree, which does not change meanwhile. What stands around a node is remembered: the first arm of a
    UNION of 500 has 500 nodes above it, and so has each of its neighbours."""

    def __init__(self) -> None:
        self._above: dict[int, tuple[exp.Expr, exp.Expr] | None] = {}
        self._named: dict[int, dict[str, list[exp.CTE]]] = {}

    def of(self, table: exp.Expr) -> exp.CTE | None:
        """The CTE that a table's name means: the nearest one around the table that is written before it, or a recursive one that the
        table stands in."""
        if not isinstance(table, exp.Table) or len(table.parts) > 1:
            return None
        name = table.name.lower()
        for around, inside in self._around(table):
            with_ = around if isinstance(around, exp.With) else around.args["with_"]
            if with_ is inside:
                continue
            end = (inside.index or 0) + bool(with_.args.get("recursive")) if inside.parent is with_ else None
            before = [cte for cte in self._of_with(with_).get(name, ()) if end is None or (cte.index or 0) < end]
            if before:
                return before[-1]
        return None

    def around(self, node: exp.Expr) -> Iterator[exp.CTE]:
        """The CTEs in whose definition a node stands, from the inside out."""
        for _, inside in self._around(node):
            if isinstance(inside, exp.CTE):
                yield inside

    def _around(self, node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
        """What is or has a WITH above a node, each with its child on the way there."""
        found = self._next(node)
        while found is not None:
            yield found
            found = self._next(found[0])

    def _next(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        passed: list[exp.Expr] = []
        found: tuple[exp.Expr, exp.Expr] | None = None
        while True:
            if id(node) in self._above:
                found = self._above[id(node)]
                break
            passed.append(node)
            around = node.parent
            if around is None:
                break
            if isinstance(around, exp.With) or around.args.get("with_") is not None:
                found = around, node
                break
            node = around
        self._above.update((id(one), found) for one in passed)
        return found

    def _of_with(self, with_: exp.Expr) -> dict[str, list[exp.CTE]]:
        """The CTEs of one WITH by name in lower case, in their order."""
        found = self._named.get(id(with_))
        if found is None:
            found = self._named[id(with_)] = {}
            for cte in with_.expressions:
                found.setdefault(cte.alias.lower(), []).append(cte)
        return found
