"""Which drawn columns of a query are drawn once per row of it, so that the row's unique key can keep them.

`select id from (select *, rand() as dice from c) where dice < 0.1` draws once per row of `c`, as the same draw in WHERE
would. A draw that comes in through a join (a threshold, a draw per customer of an order) is shared by several rows, or
none; the key of one row cannot keep it. Not understood means not per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.syntax.aggregates import aggregates
from spark_mv.query.syntax.parser import Call

Draws = Callable[[str], bool]
"""Whether a function of that name draws per row."""

_PLAIN_CLAUSES = ("from_", "joins", "laterals", "where", "expressions", "with_", "order", "hint")


@dataclass(frozen=True)
class _Place:
    """One SELECT and the CTEs that it sees, by lower-case name."""

    select: exp.Select
    ctes: Mapping[str, tuple[exp.Expr, Mapping[str, object]]]


def drawn_per_row(tree: exp.Expr, columns: Sequence[exp.Column], key: Sequence[str], draws: Draws) -> bool:
    """Whether each of `columns`, which stand in the outermost SELECT of `tree`, is one draw per row and `key`."""
    place = _place(tree, {})
    if place is None:
        return False
    return all(_per_row(place, column, [name.lower() for name in key], draws) for column in columns)


def shared_in(tree: exp.Expr, path: Sequence[str], key: Sequence[str]) -> str:
    """The FROM item whose draw, which reaches an output column by `path` (outermost last), one row of may stand in several rows
    of the result; '' where none certainly does. The key's columns are others, and none is compared with one of the item's."""
    place, names = _place(tree, {}), [name.lower() for name in key]
    for step in reversed(path):
        alias = step.rpartition(".")[0].lower()
        items = _items(place.select) if place is not None else []
        named = [item for item in items if item.alias_or_name.lower() == alias]
        if place is None or len(named) != 1 or isinstance(named[0], exp.Lateral):
            return ""  # LATERAL draws for each row beside it
        (item,) = named
        inner = [_key_column(place, name, item) or _equal_to(place, name, item) for name in names]
        if len(items) == 1 and any(star.is_star for star in place.select.expressions):
            inner = [_inner_name(place, item, name) for name in names]
        if None in inner:
            elsewhere = (_key_item(place, name) for name, found in zip(names, inner, strict=True) if found is None)
            return alias if any(found is not None and found is not item for found in elsewhere) else ""
        names = [name for name in inner if name is not None]
        place = _query_of(place, item)
        if place is not None and _more(place.select, _PLAIN_CLAUSES):
            return ""  # one draw for a group, which the key of the group keeps
    return ""


def _key_item(place: _Place, name: str) -> exp.Expr | None:
    """The FROM item that the output column `name` is a column of, None where that is not certain."""
    entry = next((e for e in place.select.expressions if e.alias_or_name.lower() == name), None)
    inner = entry.unalias() if entry is not None else None
    return _item_of(place, inner) if isinstance(inner, exp.Column) and not inner.is_star else None


def _equal_to(place: _Place, name: str, item: exp.Expr) -> str | None:
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
                if isinstance(mine, exp.Column) and _item_of(place, mine) is item and other == entry.unalias():
                    return mine.name.lower()
    return None


def _place(node: exp.Expr, ctes: Mapping[str, tuple[exp.Expr, Mapping[str, object]]]) -> _Place | None:
    while isinstance(node, exp.Subquery) and not _more(node, ("this", "alias", "with_")):
        ctes = _with_ctes(node, ctes)
        node = node.this
    return _Place(node, _with_ctes(node, ctes)) if isinstance(node, exp.Select) else None


def _with_ctes(
    node: exp.Expr, ctes: Mapping[str, tuple[exp.Expr, Mapping[str, object]]]
) -> Mapping[str, tuple[exp.Expr, Mapping[str, object]]]:
    known = dict(ctes)
    clause = node.args.get("with_")
    for item in clause.expressions if clause is not None else []:
        known[item.alias.lower()] = (item, dict(known))
    return known


def _more(node: exp.Expr, known: Sequence[str]) -> bool:
    return any(value for key, value in node.args.items() if key not in known)


def _per_row(place: _Place, column: exp.Column, key: Sequence[str], draws: Draws) -> bool:
    if column.parts[0].name.lower() == "_metadata" or (len(column.parts) > 1 and column.parts[1].name == "_metadata"):
        return len(_items(place.select)) == 1
    item, name = _item_of(place, column), column.name
    if item is None:
        item, name = _struct_of(place, column)
    if item is None:
        return False
    if len(_items(place.select)) > 1:
        # the row of the item that draws is the row of the key
        names = [_key_column(place, name, item) for name in key]
        if not key or None in names:
            return False
        key = [name for name in names if name is not None]
    else:
        key = []
    inner = _query_of(place, item)
    return inner is not None and _made_per_row(inner, _inner_name(place, item, name), key, draws)


def _made_per_row(place: _Place, name: str, key: Sequence[str], draws: Draws) -> bool:
    """Whether column `name` of a subquery is drawn once per row of it."""
    select = place.select
    if _more(select, _PLAIN_CLAUSES) or any(aggregates(item) for item in select.expressions):
        return False
    made = next((item for item in select.expressions if item.alias_or_name.lower() == name.lower()), None)
    if made is None:
        stars = [item for item in select.expressions if item.is_star]
        if len(stars) != 1 or len(_items(select)) != 1:
            return False
        made = exp.column(name)
    expression = made.this if isinstance(made, exp.Alias) else made
    if expression.find(exp.Query, exp.Window):
        return False
    read = [c for c in expression.find_all(exp.Column) if _may_be_drawn(place, c, draws)]
    return all(_per_row(place, c, key, draws) for c in read)


def _may_be_drawn(place: _Place, column: exp.Column, draws: Draws) -> bool:
    items = _items(place.select)
    owner = _item_of(place, column)
    for item in [owner] if owner is not None else items:
        query = _query_of(place, item)
        if isinstance(item, exp.Table) and query is None and _names_table(item):
            continue
        if query is None or _any_draw(query, draws):
            return True
    return False


def _names_table(item: exp.Table) -> bool:
    return isinstance(item.this, exp.Identifier)


def _any_draw(place: _Place, draws: Draws) -> bool:
    """Whether anything below draws: its CTEs included."""
    below = [place.select, *(cte for cte, _ in place.ctes.values())]
    for node in (node for query in below for node in query.walk()):
        call = node.meta.get("call")
        if isinstance(call, Call) and draws(call.name):
            return True
    return False


def _items(select: exp.Select) -> list[exp.Expr]:
    """The FROM items: what stands in FROM, behind JOIN, and laterals."""
    source = select.args.get("from_")
    joins = [join.this for join in select.args.get("joins") or []]
    return [*([source.this] if source is not None else []), *joins, *(select.args.get("laterals") or [])]


def _item_of(place: _Place, column: exp.Column) -> exp.Expr | None:
    """The FROM item of a column, None where that is not certain."""
    items = _items(place.select)
    if any(item.args.get("joins") or item.args.get("pivots") or item.args.get("sample") for item in items):
        return None
    qualifier = column.table.lower()
    if qualifier:
        named = [item for item in items if item.alias_or_name.lower() == qualifier]
        return named[0] if len(named) == 1 else None
    if len(items) == 1:
        return items[0]
    # the others may have a column of that name only if they are tables, where nothing is drawn
    owners = [item for item in items if column.name.lower() in _output(place, item)]
    return owners[0] if len(owners) == 1 else None


def _struct_of(place: _Place, column: exp.Column) -> tuple[exp.Expr | None, str]:
    """The one FROM item, and the struct of it of which `column` is a field: `s.r`, `t.s.r`."""
    items, path = _items(place.select), [part.name for part in column.parts]
    if len(items) != 1 or any(items[0].args.get(word) for word in ("joins", "pivots", "sample")):
        return None, ""
    struct = path[1] if path[0].lower() == items[0].alias_or_name.lower() else path[0]
    return items[0], struct


def _output(place: _Place, item: exp.Expr) -> list[str]:
    query = _query_of(place, item)
    return [e.alias_or_name.lower() for e in query.select.expressions] if query is not None else []


def _query_of(place: _Place, item: exp.Expr) -> _Place | None:
    """The SELECT that a FROM item is, of a CTE or in parentheses."""
    if isinstance(item, exp.Subquery):
        return _place(item, place.ctes)
    if isinstance(item, exp.Table) and not item.args.get("db") and item.name.lower() in place.ctes:
        cte, seen = place.ctes[item.name.lower()]
        return _place(cte.this, seen)  # type: ignore[arg-type]
    return None


def _inner_name(place: _Place, item: exp.Expr, name: str) -> str:
    """The name inside of a column that an alias list renames: `AS d(id, dice)`, `WITH d(id, dice) AS`."""
    lists = [item.args.get("alias")]
    query = _query_of(place, item)
    if isinstance(item, exp.Table) and item.name.lower() in place.ctes:
        lists.append(place.ctes[item.name.lower()][0].args.get("alias"))
    for names in lists:
        columns = names.args.get("columns") if isinstance(names, exp.TableAlias) else None
        if not columns:
            continue
        at = next((i for i, c in enumerate(columns) if c.name.lower() == name.lower()), None)
        output = query.select.expressions if query is not None else []
        return output[at].alias_or_name if at is not None and at < len(output) else ""
    return name


def _key_column(place: _Place, name: str, item: exp.Expr) -> str | None:
    """The column of `item` that is output as `name`; None if it is none of its columns alone."""
    for entry in place.select.expressions:
        inner = entry.this if isinstance(entry, exp.Alias) else entry
        if entry.is_star and isinstance(entry, exp.Column):
            if entry.table.lower() == item.alias_or_name.lower():
                return _inner_name(place, item, name)
        elif entry.alias_or_name.lower() == name and isinstance(inner, exp.Column):
            return _inner_name(place, item, inner.name) if _item_of(place, inner) is item else None
    return None
