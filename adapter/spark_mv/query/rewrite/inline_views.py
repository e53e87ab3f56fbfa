"""Put the text of a view in its place, where the view hides a clock, a draw or a model call.

Spark would evaluate such a view with its own clock at each read; only as part of the query can it be pinned and kept.
Other views stay what they are. Text outside the replaced names stays as written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import read_query
from spark_mv.query.syntax.source_text import Edit, apply_edits
from spark_mv.query.syntax.table_name import joined, quoted, table_key
from spark_mv.query.syntax.written_out import written_out


@dataclass(frozen=True)
class View:
    """A view's SELECT with all its table names qualified. `columns`: the view's own names for its columns, empty where
    they are those of the SELECT."""

    text: str
    columns: tuple[str, ...] = ()


@deep
def inline_views(sql: str, views: Mapping[str, View]) -> str:
    """The query with every reference to one of `views` (names as written in the query, dots, without quotes; case does
    not matter) replaced by its text. The texts may refer to views of the same mapping.

    >>> inline_views("select d from s.v", {"s.v": View("select current_date() from s.t", ("d",))})
    'select d from (SELECT * FROM (select current_date() from s.t) AS __mv_v(`d`)) AS `v`'
    """
    known = {table_key(name): view for name, view in views.items()}
    edits = []
    for table in _tables(sql):
        name = _dotted(table)
        view = known.get(name)
        if view is None:
            continue
        inner = inline_views(view.text, {n: v for n, v in views.items() if table_key(n) != name})
        if view.columns:
            columns = ", ".join(quoted(column) for column in view.columns)
            inner = f"SELECT * FROM ({inner}) AS __mv_v({columns})"
        alias = "" if table.alias else f" AS {quoted(table.name)}"
        start, end = _span(table)
        edits.append(Edit(start, end, f"({inner}){alias}"))
    return apply_edits(sql, edits) if edits else sql


def with_own_names(text: str, output: Sequence[str], columns: Sequence[str]) -> str:
    """A view's SELECT with the names that the view gives to its columns. `output`: the names that the SELECT gives; `columns`: the view's own.
    As it is where nothing tells which is which. A `*` stands for the columns that its tables had when the view was made, so they are listed.

    >>> with_own_names("select id, k from s.t", ["id", "k"], ["k", "id"])
    'SELECT `id` AS `k`, `k` AS `id` FROM (select id, k from s.t) AS __mv_v'
    >>> with_own_names("select id, id from s.t", ["id", "id"], ["a", "b"])
    'SELECT * FROM (select id, id from s.t) AS __mv_v(`a`, `b`)'
    >>> with_own_names("select *, rand() as r from s.t", ["id", "r"], ["id", "r"])
    'SELECT `id` AS `id`, `r` AS `r` FROM (select *, rand() as r from s.t) AS __mv_v'
    """
    names = [name.lower() for name in output]
    if len(output) != len(columns) or (names == [name.lower() for name in columns] and not has_star(text)):
        return text
    if len(set(names)) < len(names):
        return f"SELECT * FROM ({text}) AS __mv_v({', '.join(map(quoted, columns))})"
    listed = ", ".join(f"{quoted(name)} AS {quoted(column)}" for name, column in zip(output, columns, strict=True))
    return f"SELECT {listed} FROM ({text}) AS __mv_v"


@deep
def has_star(text: str) -> bool:
    """Whether a SELECT of the query has a `*` among its columns."""
    return any(select.is_star for select in read_query(text).find_all(exp.Select))


@deep
def qualify_tables(sql: str, namespace: str, but: Collection[str] = ()) -> str:
    """The query with each bare table name put into `namespace`: a view's names mean the schema it was created in. `but`: temporary views (lower case).

    >>> qualify_tables("with c as (select 1) select * from t, s.u, c", "spark_catalog.d")
    'with c as (select 1) select * from spark_catalog.d.t, s.u, c'
    """
    sql = written_out(sql)
    edits = [
        Edit(_span(t)[0], _span(t)[0], f"{namespace}.") for t in _tables(sql) if not t.db and t.name.lower() not in but
    ]
    return apply_edits(sql, edits)


@deep
def tables_of(sql: str) -> tuple[str, ...]:
    """The tables that the query names itself.

    >>> tables_of("with c as (select 1) select * from t, s.u, c")
    ('t', 's.u')
    """
    return tuple(_dotted(table) for table in _tables(sql))


def _tables(sql: str) -> Sequence[exp.Table]:
    """The tables that the query reads; names of CTEs are none."""
    tree = read_query(sql)
    found: dict[int, exp.Table] = {}
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                found[id(source)] = source
    return list(found.values())


def _span(table: exp.Table) -> tuple[int, int]:
    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    return int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1


def _dotted(table: exp.Table) -> str:
    return table_key(joined(part.name for part in table.parts))
