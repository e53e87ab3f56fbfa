"""Whether a run holds what it stages in memory: where its tables are small, and Spark's tasks run in this process."""

from __future__ import annotations

from typing import Any

from spark_mv.maintenance.facts import RunFacts
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import log_and_snapshot
from spark_mv.spark.session.held_rows import can_hold

BYTES = 64 * 2**20
"""Of the files of all sources and of the table, up to which staged rows are held: a million rows of a usual width, or some more."""


def holds(spark: Any, facts: RunFacts, target: str) -> bool:
    """Whether a run holds what it stages. What a query makes of small tables may be large: then Spark moves it to disk. Delta's
    checksums tell the size; of what is no table of Delta's it is not known."""
    if not can_hold(spark) or any(s.version is None and s.view_text is None for s in facts.sources):
        return False
    names = [quoted_name(name) for name in facts.source_versions] + ([target] if facts.target.exists else [])
    try:
        return sum(int(log_and_snapshot(spark, name)[1].sizeInBytes()) for name in names) <= BYTES
    except Exception:  # another Delta, or a table that has gone: its statement says so
        return False
