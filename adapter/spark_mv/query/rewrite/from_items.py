"""The FROM items of a SELECT, the queries that they are, and the columns that come through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.syntax.ctes import CteNames


@dataclass(frozen=True)
class Place:
    """One SELECT, and what the names of CTEs mean in the tree that it stands in."""

    select: exp.Select
    ctes: CteNames


def place_of(node: exp.Expr, ctes: CteNames) -> Place | None:
    """The SELECT that a query is, in parentheses or not; None for a set operation."""
    node = unwrapped(node)
    return Place(node, ctes) if isinstance(node, exp.Select) else None


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The query without the parentheses around it."""
    while isinstance(node, exp.Subquery) and not more(node, ("this", "alias", "with_")):
        node = node.this
    return node


def more(node: exp.Expr, known: Sequence[str]) -> bool:
    """Whether the query has other clauses than these."""
    return any(value for key, value in node.args.items() if key not in known)


def from_items(select: exp.Select) -> list[exp.Expr]:
    """The FROM items: what stands in FROM, behind JOIN, and laterals."""
    source = select.args.get("from_")
    joins = [join.this for join in select.args.get("joins") or []]
    return [*([source.this] if source is not None else []), *joins, *(select.args.get("laterals") or [])]


def item_of(place: Place, column: exp.Column) -> exp.Expr | None:
    """The FROM item of a column, None where that is not certain."""
    items = from_items(place.select)
    if any(item.args.get("joins") or item.args.get("pivots") or item.args.get("sample") for item in items):
        return None
    qualifier = column.table.lower()
    if qualifier:
        named = [item for item in items if item.alias_or_name.lower() == qualifier]
        return named[0] if len(named) == 1 else None
    if len(items) == 1:
        return items[0]
    # the others may have a column of that name only if they are tables, where nothing is drawn
    owners = [item for item in items if column.name.lower() in output(place, item)]
    return owners[0] if len(owners) == 1 else None


def struct_of(place: Place, column: exp.Column) -> tuple[exp.Expr | None, str]:
    """The one FROM item, and the struct of it of which `column` is a field: `s.r`, `t.s.r`."""
    items, path = from_items(place.select), [part.name for part in column.parts]
    if len(items) != 1 or any(items[0].args.get(word) for word in ("joins", "pivots", "sample")):
        return None, ""
    struct = path[1] if path[0].lower() == items[0].alias_or_name.lower() else path[0]
    return items[0], struct


def output(place: Place, item: exp.Expr) -> list[str]:
    """The columns of a FROM item that is a SELECT, as far as they are written."""
    query = query_of(place, item)
    return [e.alias_or_name.lower() for e in query.select.expressions] if query is not None else []


def query_of(place: Place, item: exp.Expr) -> Place | None:
    """The SELECT that a FROM item is, of a CTE or in parentheses."""
    below = query_below(place, item)
    return place_of(below, place.ctes) if below is not None else None


def query_below(place: Place, item: exp.Expr) -> exp.Expr | None:
    """The query that a FROM item is."""
    if isinstance(item, exp.Subquery):
        return item
    cte = place.ctes.of(item)
    return cte.this if cte is not None else None


def inner_name(place: Place, item: exp.Expr, name: str) -> str:
    """The name inside of a column that an alias list renames: `AS d(id, dice)`, `WITH d(id, dice) AS`."""
    lists = [item.args.get("alias")]
    query = query_of(place, item)
    if (cte := place.ctes.of(item)) is not None:
        lists.append(cte.args.get("alias"))
    for names in lists:
        columns = names.args.get("columns") if isinstance(names, exp.TableAlias) else None
        if not columns:
            continue
        at = next((i for i, c in enumerate(columns) if c.name.lower() == name.lower()), None)
        output = query.select.expressions if query is not None else []
        return output[at].alias_or_name if at is not None and at < len(output) else ""
    return name


def key_column(place: Place, name: str, item: exp.Expr) -> str | None:
    """The column of `item` that is output as `name`; None if it is none of its columns alone."""
    for entry in place.select.expressions:
        inner = entry.this if isinstance(entry, exp.Alias) else entry
        if entry.is_star and isinstance(entry, exp.Column):
            if entry.table.lower() == item.alias_or_name.lower():
                return inner_name(place, item, name)
        elif entry.alias_or_name.lower() == name and isinstance(inner, exp.Column):
            return inner_name(place, item, inner.name) if item_of(place, inner) is item else None
    return None


def star_of(entry: exp.Expr) -> exp.Expr:
    """The star of `*` or `t.*`, with its EXCEPT."""
    return entry.this if isinstance(entry, exp.Column) else entry
