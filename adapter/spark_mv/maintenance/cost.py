"""Estimated costs of the strategies, in rows read and written: good for comparing them within one run, no more.

The factors follow measurements on narrow rows (docs): a whole recompute reads the sources and joins the table; changed
rows are staged, evaluated, staged again and published; finding rows in a big table costs a fraction of rewriting them.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_mv.maintenance.changes import Changes

WRITE = 4.0
"""Times that a changed row is read or written on its way."""
LOOK_UP = 0.3
"""Reading one row of the table to see whether it is affected, against recomputing it."""
COMPARE = {"snapshots": 2.0, "lineage": 0.8}
"""Comparing a row of two versions of a source, as a whole or by its id, against recomputing it."""
READ = 0.25
"""Reading one row of a source to find affected anchors, or below a filter by them, against recomputing it."""


def complete(changes: Changes) -> float:
    """COMPLETE_RECOMPUTE."""
    return float(changes.table_rows + changes.target_rows)


def append_only(changes: Changes) -> float:
    """New rows alone."""
    return _changed(changes) + 0.1 * changes.target_rows


def leaving(changes: Changes) -> float:
    """Rows of the table that its own columns tell: statistics leave few files to read."""
    return 0.1 * changes.target_rows


def linear(changes: Changes) -> float:
    """Changed rows alone; the table is looked up by key."""
    return _changed(changes) + LOOK_UP * changes.target_rows


def adjusted(changes: Changes, steps: int) -> float:
    """Changed rows alone, and the table's rows of their groups; where several sources changed, each of the `steps` also
    reads the others."""
    joined = READ * steps * changes.table_rows if len(changes.source_rows) > 1 else 0.0
    return _changed(changes) + joined + LOOK_UP * changes.target_rows


def restricted(changes: Changes, read: Mapping[str, int]) -> float:
    """Changed rows; `read`: how often each source (lower case) is read to find the anchors that they touch; and all sources once
    more for these anchors. Where many joined tables change at once, a recompute is cheaper."""
    found = sum(rows * read.get(name.lower(), 0) for name, rows in changes.source_rows.items())
    return _changed(changes) + READ * (found + changes.table_rows) + LOOK_UP * changes.target_rows


def below(changes: Changes, read: Mapping[str, int]) -> float:
    """As `restricted`, and all sources once more as they were."""
    return restricted(changes, read) + READ * changes.table_rows


def _changed(changes: Changes) -> float:
    return WRITE * changes.rows + sum(COMPARE.get(c.how, 0.0) * c.table_rows for c in changes.sources)
