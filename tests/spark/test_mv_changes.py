"""Estimates of changed rows from Delta's history."""

from __future__ import annotations

import pytest

from spark_mv.spark.run.changes import _rows

pytestmark = pytest.mark.unit

# as Delta 4.4 writes it for two rows in the place of three, 497 others in the same file
REPLACED = {"numOutputRows": "499", "numCopiedRows": "497", "numDeletedRows": "3", "numRemovedFiles": "0"}


def test_rows_that_stay_are_not_changed() -> None:
    row = {"operation": "WRITE", "operationParameters": {"mode": "Overwrite"}, "operationMetrics": REPLACED}
    assert _rows(row, 1000) == 5


def test_an_overwrite_counts_with_all_rows() -> None:
    row = {
        "operation": "WRITE",
        "operationParameters": {"mode": "Overwrite"},
        "operationMetrics": {"numOutputRows": "10"},
    }
    assert _rows(row, 1000) == 1010
