"""What cannot be given one value per run is refused, with the cure."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from spark_mv.maintenance.rewrite import unclear
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.rewrite.pin import Pins, pin

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
        # left in the text beside one of the same name that was pinned
        ("select id, now() as a from t where d < `now`()", ["NOT_PINNED"]),
        ("select id, now() as a, system.builtin.now() as b from t", ["NOT_PINNED"]),
        ("select id, current_date() as a, overlay(user placing current_date from 1) as b from t", ["NOT_PINNED"]),
    ],
)
def test_words(sql: str, codes: list[str]) -> None:
    analysis = analyze(sql, unique_key=["id"], schemas=SCHEMAS)
    assert [error.code for error in unclear(pin(sql, PINS), analysis)] == codes


def test_of_two_calls_the_one_that_is_left_is_named() -> None:
    sql = "select id, now() as a from t where d < `now`()"
    (error,) = unclear(pin(sql, PINS), analyze(sql, unique_key=["id"], schemas=SCHEMAS))
    assert (error.line, error.column) == (1, 1 + sql.index("`now`"))


@pytest.mark.parametrize(
    "condition,cure",
    [
        ("ts >= 'now'", "TIMESTAMP'now' beside a timestamp"),
        ("ts > 'today UTC'", "TIMESTAMP'today UTC' beside a timestamp"),
        ("d in ('2026-01-01', 'yesterday')", "DATE'yesterday' beside a date"),
        ("ts >= '05:30:00'", "Write TIMESTAMP'05:30:00'"),
    ],
)
def test_the_cure_has_the_type_that_the_word_is_read_as(condition: str, cure: str) -> None:
    """DATE'now' instead of 'now' beside a timestamp would move the bound to midnight; a time of day is no date."""
    schemas = {"t": {"id": "int", "d": "date", "ts": "timestamp"}}
    sql = f"select id from t where {condition}"
    (error,) = unclear(pin(sql, PINS), analyze(sql, unique_key=["id"], schemas=schemas))
    assert cure in error.message
    name = error.message.split(" (line")[0]
    written = sql.replace(name, f"timestamp{name}" if condition.startswith("ts") else f"date{name}")
    assert not unclear(pin(written, PINS), analyze(written, unique_key=["id"], schemas=schemas))
