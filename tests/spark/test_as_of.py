"""The instant of a run: read in the session's zone, and not far ahead of the clock by mistake."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from spark_mv.query.solver.zone import zone_of
from spark_mv.spark.run.as_of import as_of_instant, instant_text, utc_text

pytestmark = pytest.mark.unit

CLOCK = datetime(2026, 2, 1, 12, tzinfo=timezone.utc)

# offset in seconds of 2025-07-13 09:46:40 UTC, as Spark 4.1 answers
ZONES = {
    "Z": 0, "UT": 0, "GMT0": 0, "Zulu": 0, "UCT": 0, "PST": -25200, "EST": -18000, "MST": -25200, "HST": -36000,
    "ACT": 34200, "CTT": 28800, "IST": 19800, "PRC": 28800, "EST5EDT": -14400, "Etc/GMT+5": -18000, "UTC+3": 10800,
    "UT+3": 10800, "GMT-08:00": -28800, "GMT+0530": 19800, "UTC+03": 10800, "UTC+1:2": 3720, "+5": 18000, "-9": -32400,
    "+0530": 19800, "+5:30": 19800, "+9:30": 34200, "+07:3": 25380, "+1:02": 3720, "+01:02:03": 3723, "+010203": 3723,
    "UTC-09:30:15": -34215, "+18:00": 64800, "Europe/Berlin": 7200,
}  # fmt: skip


@pytest.mark.parametrize(("name", "offset"), ZONES.items())
def test_every_zone_that_spark_accepts(name: str, offset: int) -> None:
    seen = datetime(2025, 7, 13, 9, 46, 40, tzinfo=timezone.utc).astimezone(zone_of(name))
    assert seen.utcoffset() == timedelta(seconds=offset)
    local = as_of_instant("2025-07-13 09:46:40", CLOCK, name)
    assert utc_text(local) == utc_text(
        datetime(2025, 7, 13, 9, 46, 40, tzinfo=timezone.utc) - timedelta(seconds=offset)
    )


@pytest.mark.parametrize("name", ["SystemV/PST8PDT", "+19:00", "", "Nowhere/Land"])
def test_another_zone_is_refused_with_the_cure(name: str) -> None:
    with pytest.raises(ValueError, match=r"spark\.sql\.session\.timeZone"):
        as_of_instant(None, CLOCK, name)


def test_an_instant_far_ahead_has_to_be_allowed() -> None:
    with pytest.raises(ValueError, match="allow_future_as_of: true"):
        as_of_instant("2027-02-01 06:00:00", CLOCK, "UTC")
    assert as_of_instant("2027-02-01 06:00:00", CLOCK, "UTC", allow_future=True).year == 2027
    # zones, and clocks that differ a little, are no mistake
    assert as_of_instant("2026-02-02 12:00:00", CLOCK, "UTC").day == 2
    with pytest.raises(ValueError, match="ahead of the clock"):
        as_of_instant("2026-02-02 12:00:01", CLOCK, "UTC")


def test_instants_beyond_all_years_are_none() -> None:
    assert instant_text(0) == "1970-01-01 00:00:00.000000"
    assert instant_text(253402300799999999) == "9999-12-31 23:59:59.999999"
    assert instant_text(253402300800000000) is None  # the day after 9999-12-31
    assert instant_text(2**63 - 1) is None
    for far in ("9999-12-31 06:00:00", "0001-01-01"):
        with pytest.raises(ValueError, match="between the years"):
            as_of_instant(far, CLOCK, "UTC", allow_future=True)
