"""AI answers that are still to come count against NO_OP only once they are due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.record import RunRecord, read_record
from spark_mv.maintenance.strategies.no_op import ai_due, no_op

RECORD = RunRecord("q", "c", "2026-02-01 06:00:00.000000", "UTC", {})
FACTS = RunFacts("m", RECORD.as_of, "UTC", "i", (), TargetFacts(), started_at="2026-02-01 12:00:00.000000")


@pytest.mark.parametrize(
    ("pending", "retry_at", "due"),
    [
        (0, None, False),
        (0, "2026-02-01 11:00:00.000000", False),
        (3, None, True),
        (3, "2026-02-01 12:00:00.000000", True),
        (3, "2026-02-01 12:00:00.000001", False),
    ],
)
def test_when_a_run_asks_again(pending: int, retry_at: str | None, due: bool) -> None:
    record = replace(RECORD, ai_pending=pending, ai_retry_at=retry_at)
    assert ai_due(FACTS, record) == due
    facts = replace(FACTS, target=TargetFacts(exists=True, record=record, intact=True))
    candidate = no_op(facts, "q", "c", False)
    assert candidate.applies != due
    if pending and not due:
        assert f"asked for again from {retry_at} UTC" in candidate.reasons[0].sentence


def test_a_record_of_an_earlier_release_is_read() -> None:
    text = RECORD.to_json().replace('"ai_retry_at":null,', "").replace('"unaudited":0', '"turn":0')
    record = read_record(text)
    assert record is not None and (record.ai_retry_at, record.unaudited) == (None, 0)
