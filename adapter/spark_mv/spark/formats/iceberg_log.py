"""The newest snapshots of an Iceberg table's main branch, newest first.

Where the JVM of the session is in reach, the table's metadata is read through Iceberg's own classes (0.02 s); over Spark Connect or
Thrift two statements read the metadata tables. Either way the table is refreshed before it is believed: a session may have kept
an older state of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from spark_mv.maintenance.record import SourceVersion
from spark_mv.query.syntax.table_name import parts_of
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.session.jvm import static

_WRITTEN = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
MOVES = 200
"""Of main, that are looked through for one that put it back."""
_ID = re.compile(r"snapshotId=(\d+)")
BRANCHED = "spark_mv_branched"
"""Property of a snapshot that main was moved to by a statement, before another one dropped its branch."""


@dataclass(frozen=True)
class Snapshot:
    """`at`: when it was made (UTC). `schema`: the id of the columns that it is read with, None where that is not known. `sequence`:
    its sequence number, `row_ids`: whether its rows have ids of their own (format v3); both only where the metadata itself was read."""

    id: int
    at: str
    operation: str
    summary: Mapping[str, str] = field(default_factory=dict)
    schema: int | None = None
    parent: int | None = None
    sequence: int | None = None
    row_ids: bool = False


@dataclass(frozen=True)
class Log:
    """Up to a limit of `snapshots`, each the parent of the one before it. `schema`: the id of the table's columns. `others`:
    the snapshots that are still known, by their ids, each with the id of the columns that it is read with. `part`: whether the name
    stands for a branch, a tag or the metadata of a table (`t.branch_b`, `t.files`), of whose rows these snapshots tell nothing.
    `shapes`: by the id of columns, what they are (see _shape); empty where the metadata itself was not read, or for one snapshot.
    `touched`: snapshots behind which the table's metadata was changed without another one, in a way that is not known; empty where the
    metadata itself was read. `left`: those that main was at lately and are no parents of where it is now, because it was put back."""

    snapshots: tuple[Snapshot, ...]
    schema: int
    others: Mapping[int, int | None] = field(default_factory=dict)
    part: bool = False
    shapes: Mapping[int, str] = field(default_factory=dict)
    touched: frozenset[int] = frozenset()
    left: tuple[Snapshot, ...] = ()

    def reshaped(self, snapshot: Snapshot) -> bool:
        """Whether the table has had columns added, dropped, renamed or turned into others since a snapshot, or may have had: of a column
        that was dropped and added again the values are gone. A comment makes other columns as well, of the same shape."""
        since = self.snapshots[: self.snapshots.index(snapshot) + 1]
        if any(later.id in self.touched for later in since):
            return True
        if snapshot.schema is None or snapshot.schema == self.schema:
            return False
        before = self.shapes.get(snapshot.schema)
        return before is None or before != self.shapes.get(self.schema)

    @property
    def newest(self) -> Snapshot | None:
        return self.snapshots[0] if self.snapshots else None

    @property
    def as_read(self) -> bool:
        """Whether VERSION AS OF the newest snapshot gives the columns that the table has. A change of columns makes no
        snapshot, and a snapshot is read with the columns that it was made with."""
        return self.newest is not None and self.newest.schema == self.schema

    @property
    def version(self) -> SourceVersion:
        """The table's newest version; 0 is that of a table without a snapshot."""
        if self.newest is None:
            return SourceVersion(0, f"columns {self.schema}")
        mark = "" if self.as_read else f" columns {self.schema}"
        return SourceVersion(self.newest.id, self.newest.at + mark)


def keeps_rows(snapshot: Snapshot) -> bool:
    """Whether a snapshot leaves the rows as they are: compaction, rewritten manifests, a commit that wrote nothing."""
    return snapshot.operation == "replace" or not any(int(snapshot.summary.get(key, "0")) for key in _WRITTEN)


def read_log(query: Query, table: str, limit: int) -> Log:
    """Raises what Spark raises for a table that is none of Iceberg's."""
    spark = getattr(query, "spark", None)
    found = _from_metadata(spark, table, limit) if spark is not None else None
    return _from_tables(query, table, limit) if found is None else found


def loaded_table(spark: Any, table: str) -> Any:
    """Iceberg's own object for a table, as it is now, in a session whose JVM is in reach. Iceberg asks for the settings of the session
    that is active in the calling thread of the JVM: in a thread that has sent statements only, there is none."""
    static(spark, "org.apache.spark.sql.SparkSession", "setActiveSession")(spark._jsparkSession)
    load = static(spark, "org.apache.iceberg.spark.Spark3Util", "loadIcebergTable")
    loaded = load(spark._jsparkSession, table)
    loaded.refresh()
    return loaded


def _from_metadata(spark: Any, table: str, limit: int) -> Log | None:
    """From the table's metadata, or None where it cannot be read this way."""
    try:
        loaded = loaded_table(spark, table)
        to_json = static(spark, "org.apache.iceberg.SnapshotParser", "toJson")
        found: list[Snapshot] = []
        current = loaded.currentSnapshot()
        while current is not None and len(found) < limit:
            found.append(_snapshot(json.loads(to_json(current))))
            parent = found[-1].parent
            current = None if parent is None else loaded.snapshot(parent)
        several = {int(s.snapshotId()): s for s in loaded.snapshots()} if limit > 1 else {}
        known = {id: s.schemaId() for id, s in several.items()}
        schema = int(loaded.schema().schemaId())
        shapes = _shapes(spark, loaded) if limit > 1 and any(s.schema != schema for s in found) else {}
        off = ({int(id) for id in _ID.findall(_newest_of_main(loaded))} if several else set()) - {s.id for s in found}
        left = [_snapshot(json.loads(to_json(s))) for id, s in several.items() if id in off and _is_later(s, found)]
        return Log(tuple(found), schema, known, _is_part(spark, table, loaded), shapes, left=_newest_first(left))
    except Exception:  # no JVM here, another Iceberg, no table of Iceberg's: the statement says what is the matter
        return None


def _newest_of_main(loaded: Any) -> str:
    """The newest entries of the table's own log of where main was, as Iceberg prints them: one answer of the JVM."""
    entries = loaded.history()
    return str(entries.subList(max(0, len(entries) - MOVES), len(entries)).toString())


def _is_later(snapshot: Any, found: Sequence[Snapshot]) -> bool:
    """Whether a snapshot of Iceberg's was made since the oldest of those found: whatever is older is a parent of that one, or of no interest."""
    return bool(found) and _text(int(snapshot.timestampMillis()) * 1000) > found[-1].at


def _newest_first(left: Sequence[Snapshot]) -> tuple[Snapshot, ...]:
    return tuple(sorted(left, key=lambda snapshot: snapshot.at, reverse=True))


def _shapes(spark: Any, loaded: Any) -> dict[int, str]:
    to_json = static(spark, "org.apache.iceberg.SchemaParser", "toJson")
    return {int(id): _shape(json.loads(to_json(schema))) for id, schema in loaded.schemas().items()}


def _shape(schema: Any) -> str:
    """Ids, names and types of columns, whatever their order, without comments and constraints.

    >>> _shape({"schema-id": 2, "fields": [{"id": 2, "name": "v", "required": False, "type": "int", "doc": "a value"}, {"id": 1, "name": "k", "type": "int"}]})
    '[[1, "k", "int"], [2, "v", "int"]]'
    """

    def fields(found: Any) -> Any:
        if not isinstance(found, dict):
            return found
        if "fields" in found:
            return sorted([field["id"], field["name"], fields(field["type"])] for field in found["fields"])
        return sorted((key, fields(value)) for key, value in found.items() if not key.endswith("-required"))

    return json.dumps(fields(schema))


def _is_part(spark: Any, table: str, loaded: Any) -> bool:
    """See Log.part. The object of a branch is that of its table, which has another name."""
    from py4j.java_gateway import is_instance_of  # there where a JVM is

    own, asked = str(loaded.name()).casefold(), parts_of(table)[-1].casefold()
    whole = is_instance_of(spark.sparkContext._gateway, loaded, "org.apache.iceberg.BaseTable")
    return not (whole and own.endswith(asked))


def _snapshot(data: Mapping[str, Any]) -> Snapshot:
    summary = dict(data.get("summary") or {})
    return Snapshot(
        id=int(data["snapshot-id"]),
        at=_text(int(data["timestamp-ms"]) * 1000),
        operation=str(summary.pop("operation", "")),
        summary=summary,
        schema=data.get("schema-id"),
        parent=data.get("parent-snapshot-id"),
        sequence=data.get("sequence-number"),
        row_ids="first-row-id" in data,
    )


def _from_tables(query: Query, table: str, limit: int) -> Log:
    query(f"refresh table {table}")
    rows = query(
        "select snapshot_id, parent_id, unix_micros(committed_at) as micros, operation, to_json(summary) as summary, "
        f"snapshot_id in (select snapshot_id from {table}.refs where name = 'main') as is_main, "
        f"snapshot_id in (select snapshot_id from {table}.history) as was_main from {table}.snapshots"
    )
    entries = query(
        "select latest_snapshot_id, latest_schema_id, latest_sequence_number, unix_micros(timestamp) as micros, file "
        f"from {table}.metadata_log_entries order by timestamp, file"
    )
    return _joined(rows, entries, limit)


def _joined(rows: Sequence[Mapping[str, Any]], entries: Sequence[Mapping[str, Any]], limit: int) -> Log:
    """The log from the rows of the table `snapshots`, and of `metadata_log_entries` in their order. With which columns a
    snapshot was made stands with the first metadata file that had it as its newest; so does a number that grows as its sequence number does."""
    schemas: dict[int, int] = {}
    numbers: dict[int, int] = {}
    for entry in entries:
        if entry["latest_snapshot_id"] is not None and entry["latest_schema_id"] is not None:
            schemas.setdefault(int(entry["latest_snapshot_id"]), int(entry["latest_schema_id"]))
        if entry["latest_snapshot_id"] is not None and entry["latest_sequence_number"] is not None:
            numbers.setdefault(int(entry["latest_snapshot_id"]), int(entry["latest_sequence_number"]))
    by_id = {int(row["snapshot_id"]): row for row in rows}
    found: list[Snapshot] = []
    current = next((int(row["snapshot_id"]) for row in rows if row["is_main"]), None)
    while current in by_id and len(found) < limit:
        found.append(_of_row(by_id[current], schemas, numbers))
        current = found[-1].parent
    last = entries[-1]["latest_schema_id"] if entries else None
    branched = {s.id for s in found if BRANCHED in s.summary}
    known = {id: schemas.get(id) for id in by_id}
    off = (row for id, row in by_id.items() if row["was_main"] and id not in {s.id for s in found})
    left = [s for s in (_of_row(row, schemas, numbers) for row in off) if found and s.at > found[-1].at]
    return Log(
        tuple(found),
        -1 if last is None else int(last),
        known,
        touched=_touched(entries, branched),
        left=_newest_first(left),
    )


def _of_row(row: Mapping[str, Any], schemas: Mapping[int, int], numbers: Mapping[int, int]) -> Snapshot:
    id = int(row["snapshot_id"])
    parent = None if row["parent_id"] is None else int(row["parent_id"])
    summary = json.loads(row["summary"] or "{}")
    at = _text(int(row["micros"]))
    return Snapshot(id, at, str(row["operation"]), summary, schemas.get(id), parent, numbers.get(id))


def _touched(entries: Sequence[Mapping[str, Any]], branched: Set[int]) -> frozenset[int]:
    """See Log.touched. A commit of metadata alone shows as one more entry with the same newest snapshot, of which the drop of the branch is
    one where a statement moved main. What main was put back to is not touched by that."""
    found: set[int] = set()
    seen: set[int] = set()
    for id, times in groupby(entry["latest_snapshot_id"] for entry in entries):
        if id is not None and len(list(times)) > (2 if id in branched and id not in seen else 1):
            found.add(int(id))
        seen.add(id)
    return frozenset(found)


def _text(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
