"""Strings that Spark reads as the clock: pinned, refused with a cure, or left alone because they are only strings."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_mv.maintenance.rewrite import unclear
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.query.solver.solve import solve

pytestmark = pytest.mark.unit

FIXTURE = Path(__file__).parent / "fixtures" / "clock_words.txt"
CASES = [line.split(" | ") for line in FIXTURE.read_text(encoding="utf-8").splitlines() if " | " in line]
TABLES = {
    "t": {
        "id": "int",
        "d": "date",
        "ts": "timestamp",
        "tn": "timestamp_ntz",
        "w": "string",
        "p": "string",
        "st": "struct<d: date, w: string>",
        "m": "map<string,date>",
        "a": "array<struct<d: date, w: string>>",
        "l": "array<string>",
        "da": "array<date>",
        "cm": "map<struct<a: int, b: int>,date>",
    },
    "u": {"n": "int"},
}
PINS = Pins(datetime(2026, 1, 31, 23, 30, tzinfo=timezone.utc))


def _outcome(expression: str) -> str:
    return _outcome_of(f"select id, {expression} as x from t")


def _outcome_of(sql: str) -> str:
    analysis, pinned = analyze(sql, unique_key="id", schemas=TABLES), pin(sql, PINS)
    if any(error.code == "NOT_PINNED" for error in unclear(pinned, analysis)):
        return "refused"
    if Level.COMMAND in analysis.levels:
        return "pinned" if pinned.places else "lost"
    return "plain" if not pinned.places else "pinned without a word"


@pytest.mark.parametrize(("expected", "expression"), CASES, ids=[expression for _, expression in CASES])
def test_outcome(expected: str, expression: str) -> None:
    assert _outcome(expression) == expected


@pytest.mark.parametrize(
    ("expected", "sql"),
    [
        ("refused", "select id from t lateral view explode(array(d)) g as x where x >= 'today'"),
        ("refused", "select id from t lateral view explode(map(1, m)) g as x, y where y['k'] >= 'today'"),
        ("refused", "select id from t lateral view inline(a) g as x, y where x >= 'today'"),
        ("plain", "select id from t lateral view inline(a) g as x, y where y >= 'today'"),
        ("plain", "select id from t lateral view explode(l) g as x where x = 'today'"),
        ("plain", "select id from (select id, explode(l) as x from t) where x = 'today'"),
        ("refused", "select id from (select id, st.d as x from t) where x = 'today'"),
        ("refused", "select id from t where id in (select n from u where st.d > 'today')"),
        ("plain", "select id from nobody_knows where slot = 'now' and nobody_knows.slot = '12:30'"),
        ("refused", "select id, d as k, k >= 'today' as f from t"),
        ("refused", "select id, max(d) as k from t group by id having k >= 'today'"),
        ("plain", "select id from values (1, 'a') as z(id, k) where k = 'now'"),
        ("refused", "with p as (select '12:30' as k) select id from t, p where ts > p.k"),
        ("refused", "select id, coalesce(ts, k) as a from t, (select '12:30' as k) p"),
        ("plain", "select id from t, (select 'today' as k) p where ts > k"),
        ("refused", "select id from (select id, coalesce(d, ts) as q from t) where q > 'today'"),
        ("plain", "select id from t where unix_timestamp(ts) < 5"),
        ("pinned", "select id from t where unix_timestamp() - unix_timestamp(ts) < 3600"),
    ],
)
def test_outcome_of_a_query(expected: str, sql: str) -> None:
    assert _outcome_of(sql) == expected


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("datediff('today', d)", "datediff(DATE'2026-01-31', d)"),
        ("hour('now')", "hour(TIMESTAMP'2026-01-31 23:30:00.000000+00:00')"),
        ("date_trunc('DAY', ' Tomorrow UTC ')", "date_trunc('DAY', CAST(DATE'2026-02-01' AS TIMESTAMP))"),
        ("timestamp'12:30'", "TIMESTAMP'2026-01-31 12:30'"),
        ("cast('T12' as timestamp)", "TIMESTAMP'2026-01-31 12:00'"),
        # the day is that of the zone behind the time
        ("cast('12:30:00+01:00' as timestamp)", "TIMESTAMP'2026-02-01 12:30:00+01:00'"),
        ("to_timestamp('12:30 America/New_York')", "to_timestamp(TIMESTAMP'2026-01-31 12:30 America/New_York')"),
    ],
)
def test_value(written: str, literal: str) -> None:
    assert pin(f"select {written} as x from t", PINS).sql == f"select {literal} as x from t"


@pytest.mark.parametrize(
    "predicate",
    [
        "datediff('today', d) < 30",
        "d > date'today UTC'",
        "ts > timestamp'12:30'",
        "ts > cast('today Z' as timestamp) and d > current_date()",
    ],
)
def test_no_bounds_from_a_hidden_word(predicate: str) -> None:
    """A predicate whose clock the solver does not see must be given back as unsolved."""
    assert solve(predicate, TABLES["t"], "UTC") is None
