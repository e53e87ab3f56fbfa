"""What the metadata tables of an Iceberg table tell: versions, what happened since one, and our own bookkeeping."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.forget import ForgetRequest, request_text
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import RunRecord, SourceVersion
from spark_mv.maintenance.state import StateFacts, StateRecord
from spark_mv.spark.formats import iceberg_log, iceberg_source
from spark_mv.spark.formats.iceberg import Iceberg
from spark_mv.spark.formats.iceberg_log import read_log
from spark_mv.spark.formats.own_tables import own_format
from spark_mv.spark.formats.table_format import Since
from spark_mv.spark.session.ended import connection_is_lost

pytestmark = pytest.mark.unit

Snapshot = tuple[int, "int | None", str, dict[str, Any], int]  # id, parent, operation, summary, id of the columns
Query = Callable[[str], list[dict[str, Any]]]


def table(*snapshots: Snapshot, main: int | None, columns: int = 0) -> Query:
    """A table's metadata tables, as Spark answers for them over a connection without a JVM."""

    def query(sql: str) -> list[dict[str, Any]]:
        if ".metadata_log_entries" in sql:
            names = ("latest_snapshot_id", "latest_schema_id", "latest_sequence_number")
            made = [(id, schema, number) for number, (id, _, _, _, schema) in enumerate(snapshots, 1)]
            last = made[-1][:2] if made else (None, 0)
            changed = [(main, columns, len(made))] if (main, columns) != last else []
            return [dict(zip(names, row, strict=True)) for row in ((None, 0, None), *made, *changed)]
        if ".snapshots" in sql:
            return [
                {
                    "snapshot_id": id,
                    "parent_id": parent,
                    "micros": 1_000_000 * id,
                    "operation": operation,
                    "summary": json.dumps({k: str(v) for k, v in summary.items()}),
                    "is_main": id == main,
                    "was_main": True,
                }
                for id, parent, operation, summary, _ in snapshots
            ]
        return []

    return query


NEW = {"added-records": 2, "added-data-files": 1}
MERGED = {"added-records": 1, "added-position-deletes": 3, "added-delete-files": 1, "added-data-files": 1}
HISTORY: tuple[Snapshot, ...] = (
    (50, None, "append", NEW, 0),
    (20, 50, "append", NEW, 0),
    (70, 20, "replace", {"added-data-files": 1, "deleted-data-files": 2, "added-records": 4, "deleted-records": 4}, 0),
    (30, 70, "overwrite", MERGED, 0),
    (90, 30, "append", NEW, 1),
)
COLUMNS = (Column("id", "bigint"),)


def since(query: Query, before: int, now: int, name: str = "s.t") -> Since | Reason:
    source = SourceFacts(name, COLUMNS, "iceberg", SourceVersion(now, ""))
    return Iceberg().since(query, source, SourceVersion(before, ""), source.columns_print)


def test_versions_are_ids_of_snapshots_and_tell_changed_columns() -> None:
    assert read_log(table(main=None), "t", 1).version == SourceVersion(0, "columns 0")
    log = read_log(table(*HISTORY, main=30), "t", 9)
    assert [s.id for s in log.snapshots] == [30, 70, 20, 50] and log.as_read
    assert log.version == SourceVersion(30, "1970-01-01 00:00:30.000000")
    changed = read_log(table(*HISTORY, main=30, columns=2), "t", 1)
    assert not changed.as_read and changed.version != log.version


def test_what_happened_since() -> None:
    found = since(table(*HISTORY, main=20), 50, 20)
    assert isinstance(found, Since) and found.how == "appended"
    assert [(c.net, c.rows) for c in found.commits] == [(2, 2)]
    # a compaction is no write; rows that a merge marks as gone count, whatever files they stand in
    found = since(table(*HISTORY, main=30), 50, 30)
    assert isinstance(found, Since) and found.how == "snapshots"
    assert [(c.appends, c.net, c.rows) for c in found.commits] == [(False, -2, 4), (True, 2, 2)]
    # what files hold tells the changes only where none of them marks rows of another as gone
    whole = tuple((i, p, o, {**s, "total-delete-files": 0}, c) for i, p, o, s, c in HISTORY[:4])
    found = since(table(*whole, main=30), 50, 30)
    assert isinstance(found, Since) and found.how == "changelog"
    # behind a name without a schema there is no table `changes`
    found = since(table(*whole, main=30), 50, 30, "t")
    assert isinstance(found, Since) and found.how == "snapshots"
    only_moved = since(table(*HISTORY, main=70), 20, 70)
    assert isinstance(only_moved, Since) and only_moved.commits == ()


@pytest.mark.parametrize(
    "query,before,now,code",
    [
        (table(*HISTORY, main=20), 30, 20, "SOURCE_ROLLED_BACK"),
        (table(*HISTORY[1:], main=20), 50, 20, "HISTORY_GONE"),
        (table(*HISTORY, main=20), 0, 20, "SOURCE_RECREATED"),
        (table(*HISTORY, main=20), 50, 30, "SOURCE_MOVED"),
        (table(*HISTORY, main=90, columns=1), 30, 90, "SOURCE_SCHEMA_CHANGED"),
    ],
)
def test_what_cannot_be_followed(query: Query, before: int, now: int, code: str) -> None:
    found = since(query, before, now)
    assert isinstance(found, Reason) and found.code == code


def test_the_newest_record_that_is_ours_and_who_wrote_since() -> None:
    record = RunRecord("q", "c", "2026-01-01", "UTC", {}, base_version=50, run_id="r1", model="m")
    ours = {"spark_mv": record.to_json(), **MERGED}
    asked = {"spark_mv": request_text(ForgetRequest("f", ("drawn",)))}
    written: tuple[Snapshot, ...] = (HISTORY[0], (20, 50, "overwrite", ours, 0), (70, 20, "append", asked, 0))

    def read(query: Query) -> Any:
        return Iceberg().history(query, "t", "m")

    found = read(table(*written, main=70))
    assert (found.record, found.intact, found.record_version, found.version) == (record, True, 20, 70)
    assert [request.id for request in found.forget] == ["f"] and found.clean == (20,)
    moved = read(table(*written, (71, 70, "replace", HISTORY[2][3], 0), main=71))
    assert moved.intact
    foreign = read(table(*written, (72, 70, "append", NEW, 0), main=72))
    assert not foreign.intact and foreign.foreign_operation == "APPEND"
    # rolled back to what a run left: that is what the table is again
    assert read(table(*written, main=20)).intact
    # a copy of our snapshot is not ours, nor is another model's
    assert read(table(*written, (73, 70, "append", {**ours, **NEW}, 0), main=73)).foreign_operation == "APPEND"
    other = {"spark_mv": replace(record, model="other").to_json()}
    assert read(table((20, None, "append", other, 0), main=20)).record is None


RIGHT = {"iceberg-version": "Apache Iceberg 1.12.0 (commit 212aa894)", "total-equality-deletes": "0"}


@pytest.mark.parametrize(
    "changed,columns,told",
    [
        ({}, "id", True),
        ({"sequence": None}, "id", False),
        ({"row_ids": False}, "id", False),
        ({"parent": 7}, "id", False),  # an older snapshot has expired
        ({"summary": {**RIGHT, "iceberg-version": "Apache Iceberg 1.10.1 (commit 1)"}}, "id", False),
        ({"summary": {**RIGHT, "iceberg-version": "Apache Iceberg 1.10.2-SNAPSHOT (commit 1)"}}, "id", False),
        ({"summary": {**RIGHT, "iceberg-version": "another writer"}}, "id", False),
        ({"summary": {"total-equality-deletes": "0"}}, "id", False),
        ({"summary": {**RIGHT, "total-equality-deletes": "1"}}, "id", False),
        ({}, "_ROW_ID", False),
    ],
)
def test_where_the_ids_of_rows_tell_what_changed(changed: dict[str, Any], columns: str, told: bool) -> None:
    first = iceberg_log.Snapshot(1, "", "append", RIGHT, 0, None, 1, True)
    log = iceberg_log.Log((replace(first, id=2, parent=1, sequence=2), replace(first, **changed)), 0)
    source = SourceFacts("s.t", (Column(columns, "bigint"),), "iceberg", SourceVersion(2, ""))
    assert iceberg_source.has_lineage(log, 1, source) is told


def test_types_that_its_tables_do_not_have() -> None:
    columns = [
        Column("id", "bigint"),
        Column("v", "struct<a:variant>"),
        Column("took", "interval day to second"),
        Column("s", "struct<variant:string,interval:int>"),
        Column("nothing", "array<void>"),
    ]
    said = Iceberg().not_stored(columns, {})
    assert [text.split(" is of type ")[0] for text in said] == ["column v", "column took", "column nothing"]
    assert "'format-version': '3'" in said[0] and "cast it" in said[1] and "cast(null as string)" in said[2]
    (left,) = Iceberg().not_stored(columns, {"format-version": 3})
    assert "took" in left


def test_an_older_version_that_a_tag_holds_is_compared() -> None:
    # 20 has expired, and with it all that leads from 70 to 50
    cut = (HISTORY[0], *HISTORY[2:4])
    found = since(table(*cut, main=30), 50, 30)
    assert isinstance(found, Since) and (found.how, [c.rows for c in found.commits]) == ("snapshots", [None])
    # not where its columns are others, or nothing has expired: then it was rolled back
    other = since(table((50, None, "append", NEW, 3), *HISTORY[2:4], main=30), 50, 30)
    assert isinstance(other, Reason) and other.code == "SOURCE_ROLLED_BACK"


def test_the_state_of_a_model() -> None:
    record = StateRecord("s", kept={"draw": "1"}, run_id="r1")
    ours = {"spark_mv": record.to_json(), **NEW}

    def read(*more: Snapshot, main: int) -> StateFacts:
        return Iceberg().state(table((50, None, "append", ours, 0), *more, main=main), "t", COLUMNS)

    found = read(main=50)
    assert (found.record, found.record_version, found.version, found.foreign) == (record, 50, 50, None)
    moved = read((20, 50, "replace", HISTORY[2][3], 0), main=20)
    assert moved.foreign is None and moved.number is not None and found.number is not None
    assert moved.number > found.number  # ids of snapshots tell nothing of their order
    foreign = read((20, 50, "delete", {"deleted-data-files": 1}, 0), main=20)
    assert (foreign.foreign, foreign.record_version, foreign.readable) == ("DELETE", 50, True)
    # a copy of our commit is somebody else's
    assert read((20, 50, "append", ours, 0), main=20).foreign == "APPEND"
    assert Iceberg().state(table(main=None), "t", COLUMNS) == StateFacts(True, COLUMNS)


@pytest.mark.parametrize(
    "wanted,settings,name",
    [
        ("Iceberg", {}, "iceberg"),
        ("parquet", {}, "delta"),
        (None, {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}, "delta"),
        (None, {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"}, "iceberg"),
        (None, {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}, "delta"),
        (
            None,
            {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.defaultCatalog": "lake"},
            "iceberg",
        ),
    ],
)
def test_the_format_of_tables_of_our_own(wanted: str | None, settings: dict[str, str], name: str) -> None:
    def over_thrift(sql: str) -> list[dict[str, str]]:
        return [{"key": sql, "value": settings.get(sql.removeprefix("set ").strip("`"), "<undefined>")}]

    assert own_format(over_thrift, wanted).name == name


class SparkConnectGrpcException(Exception):
    """As Spark's client calls a reply that did not come."""


def test_what_became_of_a_statement_is_not_known() -> None:
    try:
        raise ValueError("said by dbt") from SparkConnectGrpcException("UNAVAILABLE")
    except ValueError as error:
        assert connection_is_lost(error)
    assert not connection_is_lost(ValueError("DIVIDE_BY_ZERO"))


def test_metadata_that_was_changed_without_a_snapshot() -> None:
    """Columns may be others: without Iceberg's classes that is not known."""

    def touched(*ids: int | None, branched: frozenset[int] = frozenset()) -> set[int]:
        return set(iceberg_log._touched([{"latest_snapshot_id": id} for id in ids], branched))

    assert touched(None, None, 1, 2) == set()
    assert touched(None, 1, 1, 2) == {1} and touched(1, 2, 2) == {2}
    # main was moved to it by a statement, and its branch was dropped by another
    assert touched(1, 2, 2, branched=frozenset({2})) == set()
    assert touched(1, 2, 2, 2, branched=frozenset({2})) == {2}
    # put back to it, and then altered
    assert touched(1, 2, 2, 3, 2, branched=frozenset({2})) == set()
    assert touched(1, 2, 2, 3, 2, 2, branched=frozenset({2})) == {2}
