"""The as-of instant: one timestamp for a whole dbt invocation, shared by all its models."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.size import short
from spark_mv.query.solver.zone import zone_of

FURTHEST_AHEAD = timedelta(days=1)
"""How far ahead of the clock an instant may lie unasked: what leaves its window by mistake takes its draws along."""


def as_of_instant(given: object, started_at: datetime, time_zone: str, allow_future: bool = False) -> datetime:
    """The instant as an aware datetime in the session's time zone.

    `given` is the value of `--vars '{as_of: …}'` or None; without a zone of its own it is read in the session's.
    Raises RefusedError with the cure when it is no timestamp, or lies ahead of the clock and `allow_future` is not said.
    """
    zone = zone_of(time_zone)
    start = started_at if started_at.tzinfo else started_at.replace(tzinfo=timezone.utc)
    if given is None:
        return start.astimezone(zone)
    text = str(given).strip().replace("Z", "+00:00") if isinstance(given, str | date) else ""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise RefusedError(
            "AS_OF",
            f"as_of: {short(given)} is not a timestamp; write it like \"2026-01-31 06:00:00\", under --vars '{{as_of: …}}' or in the model's config "
            "(in the session's time zone, or with an offset such as +01:00), or leave it out to go by the clock",
        ) from None
    if not 1000 <= instant.year < 9999:
        raise RefusedError(
            "AS_OF", f"as_of: {given} is no instant at which a table can be: write one between the years 1000 and 9998"
        )
    instant = instant.replace(tzinfo=zone) if instant.tzinfo is None else instant.astimezone(zone)
    if instant - start > FURTHEST_AHEAD and not allow_future:
        raise RefusedError(
            "AS_OF_AHEAD",
            f"as_of: {given} is more than a day ahead of the clock ({utc_text(start)[:19]} UTC). Rows whose windows end "
            "before it would leave, and their kept values with them. The table was not touched. If it is meant, say "
            "allow_future_as_of: true under --vars, too",
        )
    return instant


def ahead_of_clock(given: object, instant: datetime, started_at: datetime) -> str:
    """What to say of an instant that was `given` and lies ahead of the clock; "" for any other."""
    start = started_at if started_at.tzinfo else started_at.replace(tzinfo=timezone.utc)
    if given is None or instant <= start:
        return ""
    return (
        f"as_of: {given} is ahead of the clock ({utc_text(start)[:19]} UTC). Rows whose windows end before it leave now, and their "
        "kept values with them; until then, runs without as_of go back in time and recompute"
    )


def utc_text(instant: datetime) -> str:
    """The instant in UTC as fixed-width text, so that texts compare as the instants do."""
    return instant.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def instant_text(micros: int) -> str | None:
    """Microseconds since 1970 as `utc_text` has them. None beyond the year 9999: what lasts until `9999-12-31`, as open-ended
    rows often say, never ends."""
    try:
        return utc_text(datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=micros))
    except OverflowError:
        return None
