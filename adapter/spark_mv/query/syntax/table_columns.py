"""Columns that are called by schema and table, `s.t.id`, as `{{ ref('t') }}.id` compiles to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import Parsed, parse
from spark_mv.query.syntax.source_text import Edit, apply_edits

_VISIBLE = re.compile(r"\S")


@deep
def by_table_alone(sql: str) -> str:
    """The query with blanks in the place of what such a column has before the table's name: where a query stands in for the table, and has its name as
    alias, it is known by that name alone. All places stay what they were, and so does text that cannot be read.

    >>> by_table_alone("select s.t.id, x.a.b from s.t join s.u as x on s.t.id = x.id")
    'select   t.id, x.a.b from s.t join s.u as x on   t.id = x.id'
    """
    read = parse(sql)
    if not isinstance(read, Parsed):
        return sql
    edits = []
    for column in read.tree.find_all(exp.Column):
        name = _name_of_table(column) if len(column.parts) > 2 else None
        if name is not None and "start" in name.meta and "start" in column.parts[0].meta:
            start, end = int(column.parts[0].meta["start"]), int(name.meta["start"])
            edits.append(Edit(start, end, _VISIBLE.sub(" ", sql[start:end])))
    return apply_edits(sql, edits)


def by_path(tree: exp.Expr) -> exp.Column | None:
    """A column that may be called by schema and table still, because another FROM item has the table's name."""
    paths = {
        tuple(p.name.lower() for p in t.parts)[-2:]
        for t in tree.find_all(exp.Table)
        if not t.alias and len(t.parts) > 1
    }
    for column in tree.find_all(exp.Column) if paths else ():
        parts = [part.name.lower() for part in column.parts]
        if any(tuple(parts[k : k + 2]) in paths for k in range(len(parts) - 2)):
            return column
    return None


def _name_of_table(column: exp.Column) -> exp.Expr | None:
    """The part of a column that is the name of its table, where others stand before it, and where it means the same without these."""
    parts = [part.name.lower() for part in column.parts]
    if any(name.name.lower() in parts for name in _parameters(column)):
        return None
    select = column.find_ancestor(exp.Select)
    while select is not None:
        items = list(_items(select))
        named = [item.alias_or_name.lower() for item in items]
        for count in range(len(parts) - 1, 1, -1):
            for item in items if named.count(parts[count - 1]) == 1 else ():
                path = [part.name.lower() for part in item.parts] if isinstance(item, exp.Table) else []
                if not item.alias and path[-count:] == parts[:count]:
                    return column.parts[count - 1]
        if set(parts) & set(named):
            return None
        select = select.find_ancestor(exp.Select)
    return None


def _parameters(column: exp.Column) -> Iterator[exp.Expr]:
    """Those of the lambdas around a column."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        yield from around.expressions
        around = around.find_ancestor(exp.Lambda)


def _items(select: exp.Select) -> Iterator[exp.Expr]:
    """The FROM items, those of joins in parentheses too."""
    stack = [select.args.get("from_"), *(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.From | exp.Join):
            stack.append(part.this)
        elif isinstance(part, exp.Expr):
            stack += part.args.get("joins") or []
            if (
                isinstance(part, exp.Subquery)
                and not part.alias
                and not isinstance(part.this, exp.Select | exp.SetOperation)
            ):
                stack.append(part.this)
            else:
                yield part
