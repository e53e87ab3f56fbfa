"""Which drawn columns of a query are drawn once per row of it, so that the row's unique key can keep them.

`select id from (select *, rand() as dice from c) where dice < 0.1` draws once per row of `c`, as the same draw in WHERE
would. A draw that comes in through a join (a threshold, a draw per customer of an order) is shared by several rows, or
none; the key of one row cannot keep it. Not understood means not per row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from sqlglot import exp

from spark_mv.query.rewrite.from_items import (
    Place,
    from_items,
    inner_name,
    item_of,
    key_column,
    more,
    place_of,
    query_of,
    struct_of,
)
from spark_mv.query.rewrite.keyed_rows import Keyed
from spark_mv.query.syntax.aggregates import aggregates
from spark_mv.query.syntax.ctes import CteNames, tables

Draws = Callable[[exp.Expr], bool]
"""Whether a node of a tree is a call that draws per row."""

_PLAIN_CLAUSES = ("from_", "joins", "laterals", "where", "expressions", "with_", "order", "hint")


def drawn_per_row(found: Keyed, columns: Sequence[exp.Column], draws: Draws) -> bool:
    """Whether each of `columns`, which stand in the SELECT, is one draw per row and key of it."""
    key = [name.lower() for name in found.key]
    return all(_per_row(found.place, column, key, draws) for column in columns)


def read_twice(tree: exp.Expr, found: Keyed, draws: Draws) -> str:
    """A CTE whose rows are drawn, or made of such, and which stands in several FROM clauses, where it is the same rows each time; '' for none. Not that
    in which the SELECT stands."""
    used = Counter(t.name.lower() for t in tables(tree) if not t.args.get("db"))
    drawn: set[str] = set()
    for cte in tree.find_all(exp.CTE, bfs=False):
        name, inside = cte.alias.lower(), list(cte.this.walk())
        reads = {node.name.lower() for node in inside if isinstance(node, exp.Table)}
        if any(node is found.place.select for node in inside) or not (reads & drawn or any(map(draws, inside))):
            continue
        drawn.add(name)
        if used[name] > 1:
            return cte.alias
    return ""


def shared_in(tree: exp.Expr, path: Sequence[str], key: Sequence[str]) -> str:
    """The FROM item whose draw, which reaches an output column by `path` (outermost last), one row of may stand in several rows
    of the result; '' where none certainly does. The key's columns are others, and none is compared with one of the item's."""
    place, names = place_of(tree, CteNames()), [name.lower() for name in key]
    for step in reversed(path):
        alias = step.rpartition(".")[0].lower()
        items = from_items(place.select) if place is not None else []
        named = [item for item in items if item.alias_or_name.lower() == alias]
        if place is None or len(named) != 1 or isinstance(named[0], exp.Lateral):
            return ""  # LATERAL draws for each row beside it
        (item,) = named
        inner = [key_column(place, name, item) or _equal_to(place, name, item) for name in names]
        if len(items) == 1 and any(star.is_star for star in place.select.expressions):
            inner = [inner_name(place, item, name) for name in names]
        if None in inner:
            elsewhere = (_key_item(place, name) for name, found in zip(names, inner, strict=True) if found is None)
            return alias if any(found is not None and found is not item for found in elsewhere) else ""
        names = [name for name in inner if name is not None]
        place = query_of(place, item)
        if place is not None and more(place.select, _PLAIN_CLAUSES):
            return ""  # one draw for a group, which the key of the group keeps
    return ""


def _key_item(place: Place, name: str) -> exp.Expr | None:
    """The FROM item that the output column `name` is a column of, None where that is not certain."""
    entry = next((e for e in place.select.expressions if e.alias_or_name.lower() == name), None)
    inner = entry.unalias() if entry is not None else None
    return item_of(place, inner) if isinstance(inner, exp.Column) and not inner.is_star else None


def _equal_to(place: Place, name: str, item: exp.Expr) -> str | None:
    """A column of `item` that a join or WHERE compares with what is output as `name`."""
    joins = place.select.args.get("joins") or []
    if any(column.name.lower() == name for join in joins for column in join.args.get("using") or []):
        return name
    entry = next((e for e in place.select.expressions if e.alias_or_name.lower() == name), None)
    where = place.select.args.get("where")
    for on in (*(join.args.get("on") for join in joins), where.this if where is not None else None):
        for part in on.flatten() if isinstance(on, exp.And) else [on]:
            if not isinstance(part, exp.EQ) or entry is None:
                continue
            for mine, other in ((part.this, part.expression), (part.expression, part.this)):
                if isinstance(mine, exp.Column) and item_of(place, mine) is item and other == entry.unalias():
                    return mine.name.lower()
    return None


def _per_row(place: Place, column: exp.Column, key: Sequence[str], draws: Draws) -> bool:
    if column.parts[0].name.lower() == "_metadata" or (len(column.parts) > 1 and column.parts[1].name == "_metadata"):
        return len(from_items(place.select)) == 1
    item, name = item_of(place, column), column.name
    if item is None:
        item, name = struct_of(place, column)
    if item is None:
        return False
    if len(from_items(place.select)) > 1:
        # the row of the item that draws is the row of the key
        names = [key_column(place, name, item) for name in key]
        if not key or None in names:
            return False
        key = [name for name in names if name is not None]
    else:
        key = []
    inner = query_of(place, item)
    return inner is not None and _made_per_row(inner, inner_name(place, item, name), key, draws)


def _made_per_row(place: Place, name: str, key: Sequence[str], draws: Draws) -> bool:
    """Whether column `name` of a subquery is drawn once per row of it."""
    select = place.select
    if more(select, _PLAIN_CLAUSES) or any(aggregates(item) for item in select.expressions):
        return False
    made = next((item for item in select.expressions if item.alias_or_name.lower() == name.lower()), None)
    if made is None:
        stars = [item for item in select.expressions if item.is_star]
        if len(stars) != 1 or len(from_items(select)) != 1:
            return False
        made = exp.column(name)
    expression = made.this if isinstance(made, exp.Alias) else made
    if expression.find(exp.Query, exp.Window):
        return False
    read = [c for c in expression.find_all(exp.Column) if _may_be_drawn(place, c, draws)]
    return all(_per_row(place, c, key, draws) for c in read)


def _may_be_drawn(place: Place, column: exp.Column, draws: Draws) -> bool:
    items = from_items(place.select)
    owner = item_of(place, column)
    for item in [owner] if owner is not None else items:
        query = query_of(place, item)
        if isinstance(item, exp.Table) and query is None and _names_table(item):
            continue
        if query is None or _any_draw(query, draws):
            return True
    return False


def _names_table(item: exp.Table) -> bool:
    return isinstance(item.this, exp.Identifier)


def _any_draw(place: Place, draws: Draws) -> bool:
    """Whether anything below draws, in the CTEs that are read there, too."""
    pending, seen = [place.select], set()
    while pending:
        for node in pending.pop().walk():
            cte = place.ctes.of(node)
            if draws(node):
                return True
            if cte is not None and id(cte) not in seen:
                seen.add(id(cte))
                pending.append(cte.this)
    return False
