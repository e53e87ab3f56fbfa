"""The as-of instant: one timestamp for a whole dbt invocation, shared by all its models."""

from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def as_of_instant(given: object, started_at: datetime, time_zone: str) -> datetime:
    """The instant as an aware datetime in the session's time zone.

    `given` is the value of `--vars '{as_of: …}'` or None; without a zone of its own it is read in the session's.
    Raises ValueError with the cure when it is no timestamp.
    """
    zone = _zone(time_zone)
    if given in (None, ""):
        start = started_at if started_at.tzinfo else started_at.replace(tzinfo=timezone.utc)
        return start.astimezone(zone)
    text = str(given).strip().replace("Z", "+00:00")
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"as_of: {given!r} is not a timestamp; write it as --vars '{{as_of: \"2026-01-31 06:00:00\"}}' "
            "(in the session's time zone, or with an offset such as +01:00)"
        ) from None
    return instant.replace(tzinfo=zone) if instant.tzinfo is None else instant.astimezone(zone)


def utc_text(instant: datetime) -> str:
    """The instant in UTC as fixed-width text, so that texts compare as the instants do."""
    return instant.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def timestamp_literal(instant: datetime) -> str:
    """A Spark TIMESTAMP literal of exactly this instant, whatever the session's time zone."""
    return f"TIMESTAMP'{utc_text(instant)} UTC'"


def _zone(name: str) -> ZoneInfo | timezone:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        # Spark also takes offsets such as +01:00 or GMT+1
        text = name.upper().removeprefix("GMT").removeprefix("UTC") or "+00:00"
        text = text if ":" in text else f"{text}:00"
        sign, rest = text[0], text[1:].zfill(5)
        return datetime.fromisoformat(f"2000-01-01T00:00:00{sign}{rest}").tzinfo or timezone.utc  # type: ignore[return-value]
