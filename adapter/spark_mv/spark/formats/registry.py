"""The table formats by the provider that DESCRIBE names."""

from __future__ import annotations

from collections.abc import Mapping

from spark_mv.spark.formats.delta import Delta
from spark_mv.spark.formats.iceberg import Iceberg
from spark_mv.spark.formats.table_format import TableFormat

FORMATS: Mapping[str, TableFormat] = {table_format.name: table_format for table_format in (Delta(), Iceberg())}


def format_of(provider: str) -> TableFormat | None:
    """The format that keeps versions of tables of this provider; None where none is known that does."""
    return FORMATS.get(provider.lower())
