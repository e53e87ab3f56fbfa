"""What cannot be given one value per run is refused, with the cure."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.spark.run.rewrite import _unclear

pytestmark = pytest.mark.unit

PINS = Pins(datetime(2026, 1, 1, tzinfo=timezone.utc), columns=frozenset({"id", "d", "user"}))
SCHEMAS = {"t": {"id": "int", "d": "date", "user": "string"}, "u": {"id": "int", "d": "date"}}


@pytest.mark.parametrize(
    "sql,codes",
    [
        ("select id from t where d = 'today'", ["NOT_PINNED"]),
        ("select id from t where d = date'today'", []),
        ("select id, user from t", []),
        ("select id, user as u from u", ["AMBIGUOUS_WORD"]),
        ("select id, current_user() as u, now() as n, date_trunc('month', current_date) as m from t", []),
        ("select id, date_trunc('month', now()) from t", ["UNNAMED_COLUMN"]),
    ],
)
def test_words(sql: str, codes: list[str]) -> None:
    analysis = analyze(sql, unique_key=["id"], schemas=SCHEMAS)
    assert [error.code for error in _unclear(pin(sql, PINS), analysis)] == codes
