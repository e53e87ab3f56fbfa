"""A table's commits, oldest first, of whichever format it is: what the checkers of faults and of interleavings go by."""

from __future__ import annotations

import json
from dataclasses import dataclass

from direct import Direct
from integration_tests.under_format import FORMAT

from spark_mv.maintenance.record import RunRecord, read_record
from spark_mv.spark.formats.commits import Ask, Rows, commits
from spark_mv.spark.formats.history import KEEPS_ROWS, MAKES_ALL_ROWS, OURS
from spark_mv.spark.formats.iceberg_log import Snapshot, keeps_rows, loaded_table
from spark_mv.spark.formats.iceberg_states import RECORD

PROCEDURE = "call iceberg_catalog.system."
REWRITTEN = {
    "delta": "optimize {table}",
    "iceberg": f"{PROCEDURE}rewrite_data_files(table => '{{table}}', options => map('rewrite-all', 'true'))",
}[FORMAT]
CLEANED = {"delta": "vacuum {table}", "iceberg": f"{PROCEDURE}expire_snapshots(table => '{{table}}')"}[FORMAT]
PUT_BACK = {
    "delta": "restore table {table} to version as of {id}",
    "iceberg": f"{PROCEDURE}rollback_to_snapshot('{{table}}', {{id}})",
}[FORMAT]
SECOND = {"delta": r"DELTA_", "iceberg": r"(?i)conflict|CommitFailed|Cannot commit|ValidationException|ancestor|stale"}[
    FORMAT
]
"""What the format says to the second of two statements."""


@dataclass(frozen=True)
class Version:
    """`id`: as VERSION AS OF names it; `number`: counted from 0. `record`: the run's that made it, if one did; `base`: the number of the
    version that this run started from. `keeps`: whether the rows were left as they were, `anew`: whether all are new."""

    id: int
    number: int
    record: RunRecord | None
    base: int | None
    keeps: bool
    anew: bool


def versions(session: Direct, table: str) -> list[Version]:
    """Those of a table that is there."""
    if FORMAT == "iceberg":
        return _of_iceberg(session, table)
    return _of_delta(session.query(f"describe history {table}"))


def newest(session: Direct, table: str) -> Version:
    if FORMAT == "iceberg":
        return _of_iceberg(session, table)[-1]
    return _of_delta(commits(Ask(session.query, session.spark), table, 1))[-1]


def _of_delta(rows: Rows) -> list[Version]:
    found = []
    for row in sorted(rows, key=lambda row: int(row["version"])):
        at, operation = int(row["version"]), row["operation"]
        record = read_record(row["userMetadata"]) if operation in OURS else None
        base = at - 1 if record is None or record.base_version is None else record.base_version
        found.append(Version(at, at, record, base, operation in KEEPS_ROWS, operation in MAKES_ALL_ROWS))
    return found


def _of_iceberg(session: Direct, table: str) -> list[Version]:
    """What main has been, one after the other. A snapshot that was rolled back to, or whose record is a copy, is no run's."""
    found: list[Version] = []
    seen: set[str] = set()
    numbers: dict[int, int] = {}
    for number, (id, parent, operation, summary) in enumerate(_main_has_been(session, table)):
        record = read_record(summary.get(RECORD))
        if record is not None and (record.run_id in seen or "source-snapshot-id" in summary):
            record = None
        seen |= {record.run_id} if record is not None else set()
        base = number - 1 if record is None or record.base_version is None else numbers.get(record.base_version)
        kept = keeps_rows(Snapshot(id, "", operation, summary)) and id not in numbers
        numbers[id] = number
        found.append(Version(id, number, record, base, kept, parent is None))
    return found


def _main_has_been(session: Direct, table: str) -> list[tuple[int, int | None, str, dict[str, str]]]:
    """Ids of snapshots, their parents, operations and properties."""
    if not hasattr(session.spark, "_jvm"):  # Spark Connect
        session.spark.sql(f"refresh table {table}").collect()
        rows = session.spark.sql(
            f"select h.snapshot_id, s.parent_id, s.operation, s.summary from {table}.history h "
            f"join {table}.snapshots s on s.snapshot_id = h.snapshot_id order by h.made_current_at, s.committed_at"
        ).collect()
        return [(row.snapshot_id, row.parent_id, row.operation, dict(row.summary)) for row in rows]
    loaded = loaded_table(session.spark, table)
    parser = session.spark._jvm.org.apache.iceberg.SnapshotParser
    found = []
    for entry in loaded.history():
        data = json.loads(parser.toJson(loaded.snapshot(int(entry.snapshotId()))))
        summary = dict(data["summary"])
        operation = summary.pop("operation")
        found.append((data["snapshot-id"], data.get("parent-snapshot-id"), operation, summary))
    return found
