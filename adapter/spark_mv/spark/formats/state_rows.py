"""Whether the rows that a state table had at one of its versions are still there."""

from __future__ import annotations

from spark_mv.maintenance.facts import Column
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Query


def readable(query: Query, table: str, version: int | None, columns: tuple[Column, ...]) -> bool:
    """Whether the rows of a version can be read. All values are: the files may be gone."""
    names = ", ".join(f"to_json(struct({quoted(c.name)}))" for c in columns)
    try:
        query(f"select max(hash({names})) as h from {table} version as of {version}")
    except Exception:  # vacuumed, expired, too old, another schema: whatever it is, they cannot be had
        return False
    return True
