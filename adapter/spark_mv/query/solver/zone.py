"""What a session time zone does to the clock: fixed offset or not, and whether its local date ever goes back.

The solver may only turn a predicate around where the local clock is monotone. `America/New_York` repeats an hour each
autumn, so "now minus one day" (calendar arithmetic on local time in Spark) is not monotone there; its local *date* is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{1,2})|(\d{2}))?(?::?(\d{2}))?")
_FURTHEST = timedelta(hours=18)
_SHORT_IDS = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's ZoneId.SHORT_IDS, which Spark reads before anything else."""
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=timezone.utc), datetime(2101, 1, 1, tzinfo=timezone.utc)
_HOUR = timedelta(hours=1)


def zone_of(name: str) -> tzinfo:
    """The zone of a `spark.sql.session.timeZone`, as Spark reads it (getZoneId in SparkDateTimeUtils): a region, UTC, Z, one
    of Java's short names (PST), or an offset such as +5, +01:00, GMT-8, UTC+01:02:03.

    Raises ValueError, with the cure, for a name that is not known here.

    >>> zone_of("GMT-08:00")
    datetime.timezone(datetime.timedelta(days=-1, seconds=57600))
    """
    text = _SHORT_IDS.get(name.strip(), name.strip())
    if text in ("Z", "UTC", "GMT", "UT"):
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match:
        sign, hours, minutes, digits, seconds = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or digits or 0), seconds=int(seconds or 0))
        if offset <= _FURTHEST:
            return timezone(offset if sign == "+" else -offset)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"the session time zone {name!r} is not known here. Set spark.sql.session.timeZone to a region such as "
            "Europe/Berlin, to UTC, or to an offset such as +01:00"
        ) from error


@dataclass(frozen=True)
class ZoneFacts:
    """How local time runs, from 1970 to 2100.

    `fixed`: one offset all the time. `monotone_dates`: the local date never goes back. `whole_hours`: every offset is
    a whole number of hours. `clear_midnights`: every local midnight occurs exactly once. `utc`: the
    offset is always zero.
    """

    fixed: bool
    monotone_dates: bool
    whole_hours: bool
    clear_midnights: bool
    utc: bool = False


@lru_cache(maxsize=64)
def zone_facts(name: str) -> ZoneFacts:
    """The facts for a zone. Raises ValueError for an unknown name."""
    zone = zone_of(name)
    offsets = [_offset(zone, _FIRST)]
    monotone = clear = True
    at = _FIRST
    while at < _LAST and not isinstance(zone, timezone):
        following = at + timedelta(days=1)
        before, after = _offset(zone, at), _offset(zone, following)
        if before != after:
            offsets.append(after)
            change = _change(zone, at, following)
            old, new = ((change + offset).replace(tzinfo=None) for offset in (before, after))
            # the last local time of the old offset is a microsecond before `old`
            monotone = monotone and (old - timedelta(microseconds=1)).date() <= new.date()
            low, high = min(old, new), max(old, new)
            midnight = low.replace(hour=0, minute=0, second=0, microsecond=0)
            clear = clear and not any(low <= m < high for m in (midnight, midnight + timedelta(days=1)))
        at = following
    return ZoneFacts(
        fixed=len(offsets) == 1,
        monotone_dates=monotone,
        whole_hours=all(offset % _HOUR == timedelta(0) for offset in offsets),
        clear_midnights=clear,
        utc=set(offsets) == {timedelta(0)},
    )


def _offset(zone: tzinfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


def _change(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """The first instant after `low` with the offset of `high`, to the second."""
    before = _offset(zone, low)
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return high
