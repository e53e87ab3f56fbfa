"""Facts of tables that nobody has looked at: `spark-mv explain` judges with the run's own functions, which want some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from spark_mv.query.syntax.ctes import CteNames, tables
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.table_name import joined, table_key

Schemas = Mapping[str, Mapping[str, str]]


def supposed_columns(sql: str, schemas: Schemas, unique_key: Sequence[str]) -> dict[str, dict[str, str]]:
    """The schemas, and for each table that is not among them the columns that the query names of it, of unknown type. A
    column without a table's name is taken for one of the first such table beside it; a star has the unique key.

    >>> supposed_columns("select *, u.z from t join u on t.id = u.id where x > 1", {"u": {"id": "int"}}, ["k"])
    {'u': {'id': 'int'}, 't': {'k': '', 'id': '', 'x': ''}}
    """
    found: dict[str, dict[str, str]] = {name: dict(columns) for name, columns in schemas.items()}
    parsed = parse(sql)
    if isinstance(parsed, QueryError):
        return found
    known = {table_key(name) for name in schemas}
    ctes = CteNames()
    open_: dict[int, list[exp.Table]] = {}
    for table in tables(parsed.tree):
        name = _name(table)
        if name and ctes.of(table) is None and table_key(name) not in known:
            select = table.find_ancestor(exp.Select)
            open_.setdefault(id(select), []).append(table)
            found.setdefault(name, {})
            if select is not None and any(item.is_star for item in select.expressions):
                found[name].update(dict.fromkeys(unique_key, ""))
    for column in parsed.tree.find_all(exp.Column):
        owner = next(_owners(column, open_), None) if not isinstance(column.this, exp.Star) else None
        if owner is not None:
            found[_name(owner)].setdefault(column.name, "")
    return found


def _name(table: exp.Table) -> str:
    return joined(part.name for part in table.parts) if isinstance(table.this, exp.Identifier) else ""


def _owners(column: exp.Column, open_: Mapping[int, list[exp.Table]]) -> Iterator[exp.Table]:
    """The tables of unknown columns that a column can be of, the nearest first."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for table in open_.get(id(select), []):
            if not column.table or column.table.lower() == table.alias_or_name.lower():
                yield table
        select = select.find_ancestor(exp.Select)
