"""Descriptions of Delta tables that this process has asked for: models share their sources, and a version of a table is described
the same however often one asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_mv.query.syntax.table_name import parts_of
from spark_mv.spark.formats.commits import Query, log_and_snapshot
from spark_mv.spark.formats.describe import Description
from spark_mv.spark.session.session_catalogue import in_session_catalogue

MOST = 1_000
_known: dict[tuple[str, str], tuple[tuple[str, int], Description]] = {}


def described(query: Query, table: str, ask: Callable[[], Description | None]) -> Description | None:
    """What `ask` says of the table, asked once per version of a Delta table. A table that others replaced meanwhile has another id or
    another version. What is no table of Delta's, or not in reach, is asked each time."""
    spark = getattr(query, "spark", None)
    place = _place(spark, table)
    version = _version(spark, table) if place else None
    if place is None or version is None:
        return ask()
    known = _known.get(place)
    if known is not None and known[0] == version:
        return known[1]
    description = ask()
    if description is not None and description.provider == "delta":
        if len(_known) >= MOST:
            _known.clear()
        _known[place] = version, description
    return description


def _place(spark: Any, table: str) -> tuple[str, str] | None:
    """Of which Spark it is what table; None for a name that is not the same table in every session."""
    try:
        same = len(parts_of(table)) == 2 and in_session_catalogue(spark, table)
        return (spark.sparkContext.applicationId, table) if same else None
    except Exception:  # no JVM in reach
        return None


def _version(spark: Any, table: str) -> tuple[str, int] | None:
    try:
        snapshot = log_and_snapshot(spark, table)[1]
        return str(snapshot.metadata().id()), int(snapshot.version())
    except Exception:  # no table of Delta's
        return None
