"""Tags, which keep snapshots of an Iceberg table from expiring: the name by which ALTER TABLE can make one."""

from __future__ import annotations

from spark_mv.query.syntax.table_name import joined, parts_of
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.session.iceberg import CATALOG, stands_behind_delta
from spark_mv.spark.session.session_catalogue import SESSION_CATALOGUE


def altered_as(query: Query, table: str) -> str:
    """The table's name for what only Iceberg's ALTER TABLE knows: where Iceberg's tables stand beside Delta's, Delta's catalogue knows
    nothing of it."""
    spark = getattr(query, "spark", None)
    parts = parts_of(table)
    if spark is None or len(parts) > 3 or not stands_behind_delta(spark):
        return table
    if len(parts) == 3 and parts[0].lower() != SESSION_CATALOGUE:
        return table
    schema = parts[-2] if len(parts) > 1 else str(spark.catalog.currentDatabase())
    return joined([CATALOG, schema, parts[-1]])
