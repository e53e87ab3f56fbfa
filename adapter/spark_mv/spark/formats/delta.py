"""Delta as a table format."""

from __future__ import annotations

from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.spark.formats import delta_source
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description, detailed
from spark_mv.spark.formats.history import History, latest_version, read_history
from spark_mv.spark.formats.retention import LONG_RUN, age, is_enforced, retention
from spark_mv.spark.formats.table_format import Since, Versioned


class Delta:
    """Versions are numbers, each commit one; the bookkeeping stands in the commit's metadata."""

    name = "delta"

    def newest(self, query: Query, table: str) -> SourceVersion | None:
        return latest_version(query, table)

    def source(self, query: Query, table: str, description: Description) -> Versioned:
        version = latest_version(query, table)
        kept = retention(description.properties)
        old = version is not None and age(version.timestamp) > kept - LONG_RUN
        return Versioned(
            version=version,
            pinnable=not (old and is_enforced(query)),
            change_feed=description.properties.get(delta_source.FEED_PROPERTY, "").lower() == "true",
            retention=kept,
        )

    def since(self, query: Query, source: SourceFacts, before: SourceVersion, columns: str) -> Since | Reason:
        return delta_source.since(query, source, before, columns)

    def described(self, query: Query, table: str, description: Description) -> Description:
        return detailed(description, query(f"describe detail {table}")[0]) if description.unclear else description

    def history(self, query: Query, table: str, model: str = "") -> History | None:
        return read_history(query, table, model)
