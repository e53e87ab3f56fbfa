"""What an Iceberg table's snapshots say of a source since the last run: a look at metadata, no data is read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.query.syntax.table_name import parts_of, quoted_name
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description
from spark_mv.spark.formats.iceberg_aside import reads_aside
from spark_mv.spark.formats.iceberg_log import Log, Snapshot, keeps_rows, read_log
from spark_mv.spark.formats.table_format import Commit, Since, Versioned

_LINEAGE = frozenset({"_row_id", "_last_updated_sequence_number"})
"""Columns that Iceberg has of each row of format v3."""
FIRST_RIGHT_IDS = (1, 10, 2)
"""The release since which rows keep their ids where manifests are merged."""
_RELEASE = re.compile(r"Apache Iceberg (\d+)\.(\d+)\.(\d+)\b(?!-)")
FAR = 10_000
"""Snapshots to look back for the one that the last run read."""


def versioned(query: Query, table: str, description: Description) -> Versioned:
    """See TableFormat.source. No version where the rows that the name stands for are none of the table's main branch."""
    if reads_aside(query, description):
        return Versioned()
    try:
        log = read_log(query, table, 1)
    except Exception:  # where statements are all there is, a branch or a table's metadata has no such tables itself
        return Versioned()
    if log.part:
        return Versioned()
    why = obstacle(table, log)
    return Versioned(version=log.version, pinnable=not why, obstacle=why)


def obstacle(name: str, log: Log) -> str:
    """Why a query cannot name the source's newest version; empty where it can."""
    if log.newest is None:
        return f"{name} has no snapshot yet"
    return "" if log.as_read else f"the columns of {name} changed since its newest snapshot"


def since(query: Query, source: SourceFacts, before: SourceVersion, columns: str) -> Since | Reason:
    """See TableFormat.since. Rows that came and went are read off the files that were added and removed; where files mark rows of
    others as gone, or these are most of the table, by the ids that rows of format v3 have; else the two versions are compared."""
    name, now = source.name, source.version
    assert now is not None
    if set(columns.split()) ^ set(source.columns_print.split()) or not columns:
        what = "are others than" if columns else "are not known to be"
        return Reason("SOURCE_SCHEMA_CHANGED", f"the columns of {name} {what} those that the last run read")
    log = read_log(query, quoted_name(name), FAR)
    ids = [snapshot.id for snapshot in log.snapshots]
    if now.version not in ids:
        return Reason("SOURCE_MOVED", f"{name} was rolled back or replaced while this run looked at it")
    if before.version not in ids:
        return _held(before, log) or _lost(name, before, log)
    low = ids.index(before.version)
    base = log.snapshots[low]
    if base.schema is None or base.schema != log.schema:
        return Reason("SOURCE_SCHEMA_CHANGED", f"the columns of {name} changed since snapshot {before.version}")
    writes = [s for s in log.snapshots[ids.index(now.version) : low] if not keeps_rows(s)]
    commits = tuple(_commit(snapshot) for snapshot in writes)
    only_new = bool(commits) and all(commit.appends for commit in commits)
    # the table `changes` of a table is found behind a name with a schema: without one, Spark takes the table for the schema
    whole = len(parts_of(name)) > 1 and all(
        _whole_files(snapshot) for snapshot in log.snapshots[ids.index(now.version) : low + 1]
    )
    if only_new:
        return Since("appended", commits)
    touched = sum(_number(s.summary, key) for s in writes for key in ("added-records", "deleted-records"))
    if whole and (touched < _number(base.summary, "total-records") or not has_lineage(log, low, source)):
        return Since("changelog", commits)
    if has_lineage(log, low, source):
        return Since("lineage", commits, base.sequence)
    return Since("snapshots", commits)


def has_lineage(log: Log, low: int, source: SourceFacts) -> bool:
    """Whether the ids of the rows tell what changed since the snapshot that is number `low` of the log: rows of format v3, whose
    whole history is known, was written by releases that give right ids, and has no equality deletes."""
    if not _LINEAGE.isdisjoint(column.name.lower() for column in source.columns):
        return False
    return (
        log.snapshots[-1].parent is None
        and all(snapshot.row_ids and snapshot.sequence is not None for snapshot in log.snapshots[: low + 1])
        and all(_right_ids(snapshot) for snapshot in log.snapshots)
    )


def _right_ids(snapshot: Snapshot) -> bool:
    release = _RELEASE.match(snapshot.summary.get("iceberg-version", ""))
    known = tuple(int(part) for part in release.groups()) if release else ()
    return known >= FIRST_RIGHT_IDS and snapshot.summary.get("total-equality-deletes") == "0"


def _whole_files(snapshot: Snapshot) -> bool:
    """Whether no file of the table marks rows of another as gone (merge-on-read): Iceberg tells what files hold, not what such marks
    mean."""
    return snapshot.summary.get("total-delete-files") == "0"


def _held(before: SourceVersion, log: Log) -> Since | None:
    """Where snapshots between have expired and the older one is held by a tag, or a branch: the two versions are compared, whatever
    happened between them. None where that cannot be."""
    cut = log.snapshots[-1].parent is not None
    columns = log.others.get(before.version)
    if not cut or columns is None or columns != log.schema:
        return None
    return Since("snapshots", (Commit(),))


def _lost(name: str, before: SourceVersion, log: Log) -> Reason:
    if before.version == 0:
        return Reason("SOURCE_RECREATED", f"{name} had no snapshot when the last run read it")
    if before.version in log.others:
        return Reason(
            "SOURCE_ROLLED_BACK", f"{name} was rolled back or replaced: snapshot {before.version} is not behind it"
        )
    return Reason(
        "HISTORY_GONE", f"snapshot {before.version} of {name} has expired, or is one of another table of this name"
    )


def _commit(snapshot: Snapshot) -> Commit:
    came, went = _rows(snapshot.summary)
    appends = snapshot.operation == "append"
    if went is None:
        return Commit(appends, None, None)
    return Commit(appends, came - went, came + went)


def _rows(summary: Mapping[str, str]) -> tuple[int, int | None]:
    """Rows that came and that went, those counted twice that a rewritten file carries over, of which MERGE tells how many they are.
    None: not known, because equality deletes name values and not rows.

    >>> _rows({"added-records": "5", "deleted-records": "3"}), _rows({"added-records": "1", "added-equality-deletes": "2"})
    ((5, 3), (1, None))
    >>> _rows({"added-records": "5", "deleted-records": "4", "spark.merge-into.num-target-rows-copied": "3"})
    (2, 1)
    """
    copied = _number(summary, "spark.merge-into.num-target-rows-copied")
    went = (
        _number(summary, "deleted-records")
        + _number(summary, "added-position-deletes")
        - _number(summary, "removed-position-deletes")
    )
    came = max(_number(summary, "added-records") - copied, 0)
    return came, None if _number(summary, "added-equality-deletes") else max(went - copied, 0)


def _number(summary: Mapping[str, str], key: str) -> int:
    return int(summary.get(key, "0"))
