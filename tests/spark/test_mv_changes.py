"""Estimates of changed rows from Delta's history."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.maintenance.facts import RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.record import RunRecord
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.delta_source import _marked, _rows
from spark_mv.spark.run.source_commits import read_changes

pytestmark = pytest.mark.unit

# as Delta 4.4 writes it for two rows in the place of three, 497 others in the same file
REPLACED = {"numOutputRows": "499", "numCopiedRows": "497", "numDeletedRows": "3", "numRemovedFiles": "0"}


def test_rows_that_stay_are_not_changed() -> None:
    row = {"operation": "WRITE", "operationParameters": {"mode": "Overwrite"}, "operationMetrics": REPLACED}
    assert _rows(row) == (5, False)


def test_an_overwrite_counts_with_all_rows() -> None:
    row = {
        "operation": "WRITE",
        "operationParameters": {"mode": "Overwrite"},
        "operationMetrics": {"numOutputRows": "10"},
    }
    assert _rows(row) == (10, True)


def test_only_a_delete_leaves_rows_to_look_for() -> None:
    """An UPDATE and a MERGE write the old rows beside the files."""
    marks = {"numDeletedRows": "3", "numUpdatedRows": "3", "numDeletionVectorsAdded": "2"}
    assert [_marked({"operation": name, "operationMetrics": marks}) for name in ("DELETE", "UPDATE")] == [2, 0]
    assert _marked({"operation": "DELETE", "operationMetrics": {"numDeletedRows": "3"}}) == 0


def test_what_keeps_no_versions_may_have_changed_beside_what_did() -> None:
    def ask(_: str) -> list[dict[str, Any]]:
        return [{"n": 1}]

    record = RunRecord("q", "c", "2026-01-01 00:00:00.000000", "UTC", {})
    sources = (SourceFacts("files", (), "parquet"), SourceFacts("seen_through", (), "view", view_text="select 1"))
    facts = RunFacts("m", record.as_of, "UTC", "i", sources, TargetFacts(exists=True, record=record))
    assert [reason.code for reason in read_changes(Ask(ask), facts, "t").problems] == ["SOURCE_UNVERSIONED"]
