"""What small tables allow: to hold in memory what a run stages, where Spark's tasks run in this process, and to write all rows of the
model's table rather than to find and replace those that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.steps.rewrite_rows import LARGE
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import log_and_snapshot
from spark_mv.spark.formats.delta_source import FEED_PROPERTY
from spark_mv.spark.formats.table_format import TableFormat
from spark_mv.spark.run.amendments import by_delta_names
from spark_mv.spark.session.held_rows import can_hold

BYTES = 64 * 2**20
"""Of the files of all sources and of the table, up to which staged rows are held: a million rows of a usual width, or some more."""


def replaced_whole(facts: RunFacts, config: Mapping[str, Any], followed: bool, format: TableFormat) -> bool:
    """Whether a run that reads the whole query also writes the whole table: a commit of all rows is quicker than one that finds some of
    them, up to LARGE rows. Not where the change feed has readers, to whom every row would come anew: other models that follow
    this one (`followed`), or those for whom the user's `tblproperties` turn the feed on."""
    record, asked = facts.target.record, by_delta_names(config.get("tblproperties") or {})
    small = record is not None and record.target_rows is not None and record.target_rows <= LARGE
    read = followed or asked.get(FEED_PROPERTY, "").lower() == "true"
    return small and facts.target.intact and format.replaces_by_key and not read


def holds(spark: Any, facts: RunFacts, target: str) -> bool:
    """Whether a run holds what it stages. What a query makes of small tables may be large: then Spark moves it to disk. Delta's
    checksums tell the size; of what is no table of Delta's it is not known."""
    if not can_hold(spark) or any(s.version is None and s.view_text is None for s in facts.sources):
        return False
    names = [quoted_name(name) for name in facts.source_versions] + ([target] if facts.target.exists else [])
    try:
        return sum(_bytes(log_and_snapshot(spark, name)[1]) for name in names) <= BYTES
    except Exception:  # another Delta, or a table that has gone: its statement says so
        return False


def _bytes(snapshot: Any) -> int:
    """Bytes of a table's files: from the checksum that a commit leaves, else from the whole log, which is a job of Spark's."""
    checksum = snapshot.checksumOpt()
    return int(checksum.get().tableSizeBytes() if checksum.isDefined() else snapshot.sizeInBytes())
