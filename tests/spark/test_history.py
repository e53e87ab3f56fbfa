"""What Delta's history tells, by every connection method."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from spark_mv.maintenance.record import RunRecord
from spark_mv.spark.formats.history import entries, read_history


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, {}),
        ("", {}),
        ({"mode": "Append"}, {"mode": "Append"}),
        ('{"mode":"Append","partitionBy":"[]"}', {"mode": "Append", "partitionBy": "[]"}),
        ('{"numFiles":"1","numOutputRows":"12"}', {"numFiles": "1", "numOutputRows": "12"}),
        # Thrift escapes nothing: a predicate may pretend to be an entry of the map
        (
            """{"mode":"Overwrite","predicate":"["(t = '","mode":"Append"}')"]"}""",
            {"predicate": """["(t = '"""},
        ),
    ],
)
def test_maps_of_the_history(value: object, expected: dict[str, str]) -> None:
    assert entries(value) == expected


def commit(
    version: int, operation: str, record: RunRecord | None = None, metadata: str | None = None
) -> dict[str, Any]:
    at = datetime(2026, 2, 1, tzinfo=timezone.utc)
    text = record.to_json() if record else metadata
    return {"version": version, "timestamp": at, "operation": operation, "userMetadata": text}


def ours(base: int | None, run_id: str = "run-1", model: str = "model.p.m") -> RunRecord:
    return RunRecord("q", "c", "t", "z", {}, base_version=base, run_id=run_id, model=model)


@pytest.mark.parametrize(
    ("commits", "record_version", "foreign", "clean"),
    [
        ([commit(1, "MERGE", ours(0))], 1, None, (1,)),
        ([commit(2, "OPTIMIZE"), commit(1, "MERGE", ours(0))], 1, None, (1,)),
        ([commit(2, "WRITE"), commit(1, "MERGE", ours(0))], 1, "WRITE", (1,)),
        # whatever the foreign commit carries, after a run and during it
        ([commit(2, "WRITE", metadata="job 7"), commit(1, "MERGE", ours(0))], 1, "WRITE", (1,)),
        ([commit(2, "MERGE", ours(0)), commit(1, "UPDATE", metadata='{"job":7}')], 2, "UPDATE", (0, 2)),
        ([commit(2, "MERGE", ours(0)), commit(1, "WRITE", ours(0, "run-2", "model.p.other"))], 2, "WRITE", (0, 2)),
        ([commit(2, "MERGE", ours(0)), commit(1, "WRITE", ours(0, "run-2"))], 2, "WRITE", (0, 2)),
        # a record that was copied, and one on a commit that no run makes
        ([commit(2, "WRITE", ours(0)), commit(1, "WRITE", ours(0))], 1, "WRITE", (1,)),
        ([commit(2, "WRITE", ours(None, "run-2")), commit(1, "MERGE", ours(0))], 1, "WRITE", (1,)),
        ([commit(2, "RESTORE", ours(0, "run-2")), commit(1, "MERGE", ours(0))], 1, "RESTORE", (1,)),
        # all rows are the run's own, whatever was written before
        ([commit(2, "CREATE OR REPLACE TABLE AS SELECT", ours(0)), commit(1, "WRITE")], 2, None, (2,)),
        # records of an older version of this package name neither model nor run
        ([commit(1, "MERGE", ours(0, "", ""))], 1, None, (1,)),
        ([commit(1, "MERGE", ours(0, "run-2", "model.p.other"))], None, "CREATE TABLE AS SELECT", ()),
    ],
)
def test_whose_commits(
    commits: list[dict[str, Any]], record_version: int | None, foreign: str | None, clean: tuple[int, ...]
) -> None:
    first = commit(0, "CREATE TABLE AS SELECT", None)
    history = read_history(lambda sql: [*commits, first], "t", "model.p.m")
    assert history is not None
    expected = (record_version, foreign or (None if history.record else first["operation"]), clean)
    assert (history.record_version, history.foreign_operation, history.clean) == expected
