"""Delta as a table format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.state import StateFacts, StateVersion
from spark_mv.spark.formats import delta_source, state_history
from spark_mv.spark.formats.commits import Query, log_and_snapshot
from spark_mv.spark.formats.describe import Description, detailed
from spark_mv.spark.formats.history import History, last_change, latest_version, read_history
from spark_mv.spark.formats.retention import LONG_RUN, age, is_enforced, retention
from spark_mv.spark.formats.table_format import Publishing, Since, Versioned
from spark_mv.spark.formats.turn import USER_METADATA, TurnSession, tagged, take

FORGET_PROPERTY = "spark_mv.forget"
"""Table property whose change makes the commit that carries a request. Its value says nothing."""

_NOT_STORED = re.compile(r"(interval|time)\b", re.IGNORECASE)
"""Types of Spark that Delta does not have, as they begin."""


class Delta:
    """Versions are numbers, each commit one; the bookkeeping stands in the commit's metadata."""

    name = "delta"
    stays = ""
    retains = False
    replaces_by_key = True

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

    def last_change(self, query: Query, table: str) -> datetime | None:
        return last_change(query, table)

    def size(self, query: Query, table: str) -> int | None:
        """From the checksum that a commit leaves, else from the whole log, which is a job of Spark's."""
        try:
            snapshot = log_and_snapshot(getattr(query, "spark", None), table)[1]
            checksum = snapshot.checksumOpt()
            return int(checksum.get().tableSizeBytes() if checksum.isDefined() else snapshot.sizeInBytes())
        except Exception:  # no JVM here, another Delta, or a table that has gone: its statement says so
            return None

    def state(self, query: Query, table: str, columns: tuple[Column, ...]) -> StateFacts:
        return state_history.read_state(query, table, columns)

    def state_version(self, query: Query, table: str) -> StateVersion | None:
        found = latest_version(query, table)
        return None if found is None else StateVersion(found.version, found.version)

    def retain(self, query: Query, table: str, version: int, holder: str) -> None:
        return None

    def release(self, query: Query, table: str, holder: str) -> None:
        return None

    def unusable(self, query: Query) -> str:
        return ""

    def refused(self, columns: Mapping[str, Any]) -> list[str]:
        return []

    def not_stored(self, columns: Sequence[Column], properties: Mapping[str, Any], spark: Any = None) -> list[str]:
        return [
            f"column {column.name} is of type {column.type}: Delta tables have no {found[0].lower()}; cast it, to a text or a number"
            for column in columns
            if (found := _NOT_STORED.match(column.type)) is not None
        ]

    def stored(self, column: Column) -> Column:
        return column

    def properties(self) -> Mapping[str, str] | None:
        return None

    def growing(self) -> Mapping[str, str]:
        return {"delta.autoOptimize.autoCompact": "true"}

    def made_as(self, spark: Any, table: str) -> str:
        return table

    def written_as(self, table: str, branch: str) -> str:
        return table

    def publish(self, asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
        take(asked.turn, session, query, write, asked.settings)

    def tidy(self, asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
        with tagged(session, asked.turn.settings):
            write()

    def say(self, session: TurnSession, query: Query, table: str, id: str, text: str) -> None:
        with tagged(session, {USER_METADATA: text}):
            query(f"alter table {table} set tblproperties ('{FORGET_PROPERTY}' = '{id}')")
