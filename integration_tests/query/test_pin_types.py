"""Pinned literals on Spark: same types, same names, same instant, same values as the functions they stand for."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from spark_mv.query.rewrite.pin import Pins, pin

pytestmark = pytest.mark.spark

CALLS = (
    "current_date",
    "current_date()",
    "CURDATE()",
    "current_timestamp",
    "current_timestamp()",
    "now()",
    "localtimestamp()",
    "unix_timestamp()",
    "current_timezone()",
    "current_user",
    "current_user()",
    "user()",
    "session_user()",
    "session_user",
    "current_catalog()",
    "current_database()",
    "current_schema()",
    "version()",
)
TIMES = ("current_time", "current_time()", "current_time(3)", "current_time(0)")
SPECIAL = ("date'today'", "timestamp'now'", "cast('tomorrow' as date)", "to_timestamp('today')", "timestamp_ntz'now'")
ZONES = ("UTC", "America/New_York", "+05:30", "Asia/Kathmandu")


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = spark.newSession()
    own.conf.set("spark.sql.timeType.enabled", "true")
    return own


def pins_of(session: Any, zone: str) -> Pins:
    session.conf.set("spark.sql.session.timeZone", zone)
    values = session.sql(
        "SELECT unix_micros(now()), user(), session_user(), current_catalog(), current_schema(), version()"
    ).first()
    instant = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=values[0])
    return Pins(instant, zone, *values[1:], columns=frozenset())


@pytest.mark.parametrize("zone", ZONES)
def test_types_and_names_stay(session: Any, zone: str) -> None:
    pins = pins_of(session, zone)
    sql = f"SELECT {', '.join(CALLS + TIMES[1:2])}"
    pinned = pin(sql, pins)
    assert not pinned.unnamed and not pinned.ambiguous
    before, after = session.sql(sql).schema, session.sql(pinned.sql).schema
    assert [(f.name, f.dataType) for f in before] == [(f.name, f.dataType) for f in after]
    more = "SELECT " + ", ".join(f"typeof({c}) AS c{i}" for i, c in enumerate(CALLS + TIMES + SPECIAL))
    assert session.sql(more).first() == session.sql(pin(more, pins).sql).first()


@pytest.mark.parametrize("zone", ZONES)
def test_values_are_those_of_the_instant(session: Any, zone: str) -> None:
    """Spark evaluates the functions a little later: dates and users agree, times by less than a minute."""
    pins = pins_of(session, zone)
    same = ["current_timezone()", "current_user()", "user()", "session_user()", "current_catalog()", "version()"]
    sql = "SELECT " + ", ".join(f"{c} AS c{i}" for i, c in enumerate(same))
    assert session.sql(sql).first() == session.sql(pin(sql, pins).sql).first()
    exact = pin(
        "SELECT unix_micros(now()) AS a, unix_timestamp() * 1000000L AS b, current_date() AS c, date'today' AS d", pins
    )
    row = session.sql(exact.sql).first()
    micros = (pins.as_of - datetime.fromtimestamp(0, timezone.utc)) // timedelta(microseconds=1)
    assert (row.a, row.b) == (micros, micros // 1_000_000 * 1_000_000)
    derived = session.sql(
        pin(
            "SELECT to_date(now()) = current_date() AND CAST(now() AS TIMESTAMP_NTZ) = localtimestamp() "
            "AND hour(current_time()) = hour(now()) AND current_date() = date'today' AS ok",
            pins,
        ).sql
    ).first()
    assert derived.ok


def test_columns_win_over_bare_functions(session: Any) -> None:
    pins = pins_of(session, "UTC")
    for sql in ("SELECT user FROM (SELECT 1 AS user)", "SELECT t.user, `user` FROM (SELECT 1 AS user) t"):
        assert session.sql(pin(sql, pins).sql).first() == session.sql(sql).first()
