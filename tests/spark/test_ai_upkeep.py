"""What removing answers says where a MERGE does not tell how many rows it removed."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.spark.run import ai_upkeep


@pytest.mark.parametrize(("provider", "counts"), [("delta", 0), ("iceberg", 1)])
def test_rows_are_counted_before_a_merge_that_says_nothing(provider: str, counts: int) -> None:
    counted: list[str] = []

    def query(sql: str) -> list[dict[str, Any]]:
        first = sql.split(maxsplit=1)[0].upper()
        if first == "DESCRIBE":
            if "ai_similar" in sql:
                raise RuntimeError("[TABLE_OR_VIEW_NOT_FOUND] there is no ai_similar")
            rows = [("id", "int"), ("", ""), ("# Detailed Table Information", ""), ("Provider", provider)]
            return [{"col_name": name, "data_type": text, "comment": ""} for name, text in rows]
        if first == "SELECT":
            counted.append(sql)
            return [{"n": 7}]
        assert first == "MERGE", sql
        return [{"num_affected_rows": 7, "num_deleted_rows": 7}] if provider == "delta" else []

    used = ai_upkeep._Used("shop")
    said = ai_upkeep._prune(
        query, "s.ai_results", used, "2026-01-01 00:00:00 UTC", dry_run=False, include_unowned=False
    )
    assert (said, len(counted)) == ("s.ai_results: 7 rows removed", counts)
