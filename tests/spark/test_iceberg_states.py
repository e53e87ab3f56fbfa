"""Who publishes of those that make an Iceberg table anew, judged by the states that it has had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.spark.formats.iceberg_states import CLAIM, RECORD, judged

pytestmark = pytest.mark.unit

A_CLAIMS = ("a0", "s", {CLAIM: "a"})
A_REPLACES = ("a1", None, {CLAIM: "a", RECORD: '{"run_id":"a"}'})
B_CLAIMS = ("b0", "a0", {CLAIM: "b"})
B_REPLACES = ("b1", None, {CLAIM: "b", RECORD: '{"run_id":"b"}'})
C_MERGES = ("c1", "b0", {RECORD: '{"run_id":"c"}'})
D_CLAIMS = ("d0", "b0", {CLAIM: "d"})
D_REPLACES = ("d1", None, {CLAIM: "d", RECORD: '{"run_id":"d"}'})
SOMEBODY_REPLACES = ("x", None, {})


def state(id: str, parent: str | None, summary: dict[str, str]) -> Any:
    newest = SimpleNamespace(snapshotId=lambda: id, parentId=lambda: parent, summary=lambda: summary)
    return SimpleNamespace(currentSnapshot=lambda: newest)


@pytest.mark.parametrize(
    ("run", "history", "made", "follows"),
    [
        ("a", [A_CLAIMS, A_REPLACES], "a1", "a0"),
        ("a", [A_CLAIMS, A_CLAIMS, A_REPLACES, A_REPLACES], "a1", "a0"),  # branches came and went
        ("a", [A_CLAIMS, A_REPLACES, ("c", "a1", {RECORD: "c"})], "a1", "a0"),
        ("a", [A_CLAIMS, B_CLAIMS, A_REPLACES], "a1", "b0"),
        ("b", [B_CLAIMS, A_REPLACES, B_REPLACES], "b1", "b0"),
        ("b", [B_CLAIMS, A_REPLACES, B_CLAIMS, B_REPLACES], "b1", "b0"),  # put back before
        ("a", [A_CLAIMS, B_CLAIMS, A_REPLACES, B_REPLACES, A_REPLACES], "a1", "b0"),
        ("b", [B_CLAIMS, C_MERGES, A_REPLACES, B_REPLACES], "b1", "c1"),
        ("b", [B_CLAIMS, D_CLAIMS, D_REPLACES, B_REPLACES], "b1", "d1"),  # whose claim was the last
        ("b", [B_CLAIMS, D_CLAIMS, A_REPLACES, B_REPLACES], "b1", "d0"),
        ("b", [B_CLAIMS, SOMEBODY_REPLACES, B_REPLACES], "b1", "x"),
        ("b", [B_CLAIMS, SOMEBODY_REPLACES], None, "x"),
    ],
)
def test_what_a_run_made_and_what_it_should_have_followed(
    run: str, history: list[tuple[str, str | None, dict[str, str]]], made: str | None, follows: str
) -> None:
    ours, before = judged([state(*one) for one in reversed(history)], run)
    assert (ours and ours.currentSnapshot().snapshotId()) == made
    assert before.currentSnapshot().snapshotId() == follows
