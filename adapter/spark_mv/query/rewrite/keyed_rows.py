"""Through which SELECTs of a query the columns of its unique_key come as they are: the rows of these have that key, too.

Nothing on the way may make one row of several (GROUP BY, DISTINCT, UNION without ALL). A join may repeat a row, or leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlglot import exp

from spark_mv.query.rewrite.from_items import (
    Place,
    from_items,
    inner_name,
    item_of,
    key_column,
    more,
    query_below,
    star_of,
    unwrapped,
)
from spark_mv.query.syntax.aggregates import aggregates, not_of_one_row
from spark_mv.query.syntax.ctes import CteNames
from spark_mv.query.syntax.joins import HIDING, join_kind

_ROW_BY_ROW = (
    "from_",
    "joins",
    "laterals",
    "where",
    "expressions",
    "with_",
    "order",
    "limit",
    "offset",
    "windows",
    "hint",
)


@dataclass(frozen=True)
class Keyed:
    """A SELECT whose rows the unique_key tells apart: `key` are the columns of it that are passed on as that. `whole`: each of its rows is one
    of the result."""

    place: Place
    key: tuple[str, ...]
    whole: bool = True


def keyed(tree: exp.Expr, start: int, key: Sequence[str]) -> Keyed | None:
    """The SELECT that begins at `start`: the outermost one, or one in its FROM or a UNION ALL, however deep, through which the columns of
    `key` come as they are. None for any other."""
    return _first(_terms(tree, CteNames(), tuple(key)), start, set())


def _first(found: Iterator[Keyed], start: int, seen: set[tuple[int, tuple[str, ...]]]) -> Keyed | None:
    return next((one for one in (_keyed_in(term, start, seen) for term in found) if one is not None), None)


def _keyed_in(found: Keyed, start: int, seen: set[tuple[int, tuple[str, ...]]]) -> Keyed | None:
    """`seen`: SELECTs that were gone through in vain, by their own names of the key's columns."""
    select = found.place.select
    written = select.meta.get("select")
    if written is not None and written.span[0] == start:
        return found
    if (id(select), found.key) in seen or more(select, _ROW_BY_ROW) or any(map(aggregates, select.expressions)):
        return None
    seen.add((id(select), found.key))
    for item in _visible(select):
        below, names = query_below(found.place, item), [_passed_on(found.place, name, item) for name in found.key]
        if below is None or None in names:
            continue
        whole = found.whole and _gives_each(select, item)
        terms = _terms(below, found.place.ctes, tuple(name for name in names if name))
        inner = _first((replace(term, whole=term.whole and whole) for term in terms), start, seen)
        if inner is not None:
            return inner
    return None


def _visible(select: exp.Select) -> Iterator[exp.Expr]:
    """The FROM items whose columns the SELECT has."""
    hidden = [join.this for join in select.args.get("joins") or [] if join_kind(join) in HIDING]
    return (item for item in from_items(select) if not any(item is other for other in hidden))


def _terms(node: exp.Expr, ctes: CteNames, key: tuple[str, ...]) -> Iterator[Keyed]:
    """The SELECTs of a query, each with its own names of the columns that are called `key` in the result."""
    node = unwrapped(node)
    if isinstance(node, exp.Select):
        yield Keyed(Place(node, ctes), key)
    elif isinstance(node, exp.Union) and not node.args.get("distinct"):
        left = node.this
        for term in _terms(left, ctes, key):
            yield replace(term, whole=False)
        listed, others = _listed(left), _listed(node.expression)
        if node.args.get("by_name"):
            names: list[str | None] = list(key)
        else:
            places = [listed.index(name) if listed.count(name) == 1 else len(others) for name in map(str.lower, key)]
            names = [others[at] if at < len(others) else None for at in places]
        if all(names):
            for term in _terms(node.expression, ctes, tuple(name for name in names if name)):
                yield replace(term, whole=False)


def _listed(node: exp.Expr) -> list[str]:
    """The names of a query's columns, as far as they are written: up to a `*`. What has none in the text cannot be named."""
    while isinstance(node, exp.Subquery | exp.SetOperation):
        node = node.this
    listed = node.expressions if isinstance(node, exp.Select) else []
    named = takewhile(lambda e: not e.is_star, listed)
    return [e.alias_or_name.lower() if isinstance(e, exp.Alias | exp.Column | exp.Dot) else "" for e in named]


def _passed_on(place: Place, name: str, item: exp.Expr) -> str | None:
    """As key_column; one item's columns may be passed on by a `*`, too."""
    select, column = place.select, name.lower()
    if any(entry.alias_or_name.lower() == column for entry in select.expressions):
        return key_column(place, column, item)
    stars = [entry for entry in select.expressions if entry.is_star]
    alone = [star for star in stars if isinstance(star, exp.Star)]
    excepted = (c.name.lower() for star in stars for c in star_of(star).args.get("except_") or [])
    if len(stars) != 1 or column in excepted:
        return None
    if not alone:
        return key_column(place, column, item)
    qualified = exp.column(name, table=item.alias_or_name)
    return inner_name(place, item, name) if len(from_items(select)) == 1 and item_of(place, qualified) is item else None


def _gives_each(select: exp.Select, item: exp.Expr) -> bool:
    """Whether the SELECT has a row for each one of the item, whatever else it joins."""
    source, joins = select.args.get("from_"), select.args.get("joins") or []
    if more(select, ("from_", "joins", "expressions", "with_", "order", "hint")) or source is None:
        return False
    if source.this is not item or any(map(not_of_one_row, select.expressions)):
        return False
    return all(join_kind(join) == "LEFT" for join in joins)
