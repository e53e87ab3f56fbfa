"""Iceberg as a table format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from spark_mv.maintenance.errors import TurnTaken
from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.state import StateFacts, StateVersion
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats import iceberg_source, iceberg_state, iceberg_tags, iceberg_target
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description
from spark_mv.spark.formats.history import History
from spark_mv.spark.formats.iceberg_log import read_log
from spark_mv.spark.formats.session_settings import CATALOGUES, default_catalogue, is_icebergs, session_setting
from spark_mv.spark.formats.table_format import Publishing, Since, Versioned
from spark_mv.spark.formats.turn import TurnSession
from spark_mv.spark.session.iceberg import CATALOG, stands_behind_delta
from spark_mv.spark.session.jvm import load_class

EXTENSIONS = "spark.sql.extensions"
_SMALL = re.compile(r"\b(tiny|small)int\b", re.IGNORECASE)
_MISSING = re.compile(r"\b(variant|interval|void)\b(?!`?:)", re.IGNORECASE)
"""Types of Spark that Iceberg does not have, or not in each version of its format; a field of a struct may be called so."""


class Iceberg:
    """Versions are ids of snapshots, which tell nothing of their order; the bookkeeping stands in the snapshot's summary."""

    name = "iceberg"
    # renamed, it leaves its files where they are, and a Delta table needs the folder for itself
    stays = (
        "its table is an Iceberg table, which is not made one of another format in its place. Set file_format back to iceberg, give the "
        "model another alias, or drop the table with PURGE (its kept values go with it)"
    )
    retains = True
    replaces_by_key = False

    def newest(self, query: Query, table: str) -> SourceVersion | None:
        return read_log(query, table, 1).version

    def source(self, query: Query, table: str, description: Description) -> Versioned:
        return iceberg_source.versioned(query, table, description)

    def since(self, query: Query, source: SourceFacts, before: SourceVersion, columns: str) -> Since | Reason:
        return iceberg_source.since(query, source, before, columns)

    def described(self, query: Query, table: str, description: Description) -> Description:
        if not description.unclear:
            return description
        rows = query(f"show tblproperties {table}")
        return replace(description, known_properties={str(row["key"]): str(row["value"]) for row in rows})

    def history(self, query: Query, table: str, model: str = "") -> History | None:
        return iceberg_target.read_history(query, table, model)

    def last_change(self, query: Query, table: str) -> datetime | None:
        return iceberg_target.last_change(query, table)

    def size(self, query: Query, table: str) -> int | None:
        newest = read_log(query, table, 1).newest
        if newest is None:
            return 0
        size = newest.summary.get("total-files-size")
        return None if size is None else int(size)

    def state(self, query: Query, table: str, columns: tuple[Column, ...]) -> StateFacts:
        return iceberg_state.read_state(query, table, columns)

    def state_version(self, query: Query, table: str) -> StateVersion | None:
        return iceberg_state.newest_version(query, table)

    def retain(self, query: Query, table: str, version: int, holder: str) -> None:
        name = iceberg_tags.altered_as(query, table)
        query(f"alter table {name} create or replace tag {quoted(holder)} as of version {version}")

    def release(self, query: Query, table: str, holder: str) -> None:
        query(f"alter table {iceberg_tags.altered_as(query, table)} drop tag if exists {quoted(holder)}")

    def unusable(self, query: Query) -> str:
        spark = getattr(query, "spark", None)
        if spark is None or getattr(spark, "_jvm", None) is None:
            return _server_lacks(query)
        try:
            load_class(spark, "org.apache.iceberg.spark.SparkSessionCatalog")
        except Exception:  # no such class
            return (
                "this Spark has no Iceberg: add `formats: [delta, iceberg]` to the profile, or use file_format: delta"
            )
        return ""

    def refused(self, columns: Mapping[str, Any]) -> list[str]:
        clustered = columns.get("liquid_clustered_by") or columns.get("cluster_by")
        problem = (
            "liquid_clustered_by: Iceberg tables have no liquid clustering; use partition_by, or file_format: delta"
        )
        return [problem] if clustered else []

    def not_stored(self, columns: Sequence[Column], properties: Mapping[str, Any], spark: Any = None) -> list[str]:
        in_hive = stands_behind_delta(spark)
        third = str(properties.get("format-version", "")) == "3" and not in_hive
        where = ", and the catalogue of the embedded session, Hive's metastore, knows no such type" if in_hive else ""
        problems = []
        for column in columns:
            found = _MISSING.search(column.type)
            kind = found[1].lower() if found else ""
            if not kind or (kind != "interval" and third):
                continue
            have, cure = "have no interval", "cast it"
            if kind == "variant":
                have = f"have variants from version 3 of the format on{where}"
                cure = "make it text by to_json" + ("" if in_hive else ", say tblproperties={'format-version': '3'}")
            elif kind == "void":
                have = f"have columns of NULL alone from version 3 of the format on{where}"
                cure = "give it a type (cast(null as string))"
            problems.append(
                f"column {column.name} is of type {column.type}: Iceberg tables {have}; {cure}, or use file_format: delta"
            )
        return problems

    def stored(self, column: Column) -> Column:
        return replace(column, type=_SMALL.sub("int", column.type))

    def properties(self) -> Mapping[str, str] | None:
        """Rows that change or go are marked in files of their own instead of rewriting those that they stand in; old metadata
        files are removed, of which each publish leaves some."""
        modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("merge", "update", "delete")}
        return {"format-version": "2", **modes, "write.metadata.delete-after-commit.enabled": "true"}

    def growing(self) -> Mapping[str, str]:
        return {"write.metadata.delete-after-commit.enabled": "true"}

    def made_as(self, spark: Any, table: str) -> str:
        return f"{CATALOG}.{table}" if stands_behind_delta(spark) else table

    def written_as(self, table: str, branch: str) -> str:
        return iceberg_target.branch_of(table, branch)

    def publish(self, asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
        iceberg_target.publish(asked, session, query, write)

    def tidy(self, asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
        with suppress(TurnTaken):
            iceberg_target.publish(asked, session, query, write)

    def say(self, session: TurnSession, query: Query, table: str, id: str, text: str) -> None:
        iceberg_target.say_with_a_commit(session, query, table, text)


def _server_lacks(query: Query) -> str:
    """What keeps runs over Spark Connect or Thrift from writing Iceberg tables; empty where nothing does."""
    if "IcebergSparkSessionExtensions" not in session_setting(query, EXTENSIONS):
        return (
            f"the server's {EXTENSIONS} has not Iceberg's, by which branches are made: start it with "
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions there, or use file_format: delta"
        )
    if not is_icebergs(query, name := default_catalogue(query)):
        return (
            f"the catalogue in which the server finds names without one, {name}, is none of Iceberg's: make it one "
            f"({CATALOGUES}{name}, or spark.sql.defaultCatalog), or use file_format: delta"
        )
    return ""
