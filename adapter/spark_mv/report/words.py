"""Instants, spans, counts and texts as people read them."""

from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from spark_mv.explain.plain_text import plain as plain
from spark_mv.maintenance.errors import telling_line

NOTHING = "–"
_STEPS = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (120, 60, "min"), (0, 1, "s"))


def count(number: int | float | None) -> str:
    """
    >>> count(4210), count(None)
    ('4,210', '–')
    """
    return NOTHING if number is None else f"{number:,.0f}"


def span(seconds: float | None) -> str:
    """
    >>> span(0.42), span(75), span(3600 * 5), span(None)
    ('0.4 s', '75 s', '5 h', '–')
    """
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{seconds:.1f} s"
    _, unit, name = next(step for step in _STEPS if seconds >= step[0])
    return f"{seconds // unit:,.0f} {name}"


def ago(at: float | None, now: float) -> str:
    """
    >>> ago(100, 400), ago(400, 100), ago(None, 0), ago(5, 5)
    ('5 min ago', 'in 5 min', '–', 'now')
    """
    if at is None:
        return NOTHING
    away = abs(now - at)
    if away < 1:
        return "now"
    text = span(max(away, 10)) if away >= 10 else f"{away:.0f} s"
    return f"{text} ago" if at < now else f"in {text}"


def moment(at: float | None, zone: str = "UTC") -> str:
    """The instant in that time zone, to the second.

    >>> moment(0), moment(None)
    ('1970-01-01 00:00:00', '–')
    """
    if at is None:
        return NOTHING
    return datetime.fromtimestamp(at, _zone(zone)).strftime("%Y-%m-%d %H:%M:%S")


def _zone(name: str) -> ZoneInfo | timezone:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return timezone.utc


def money(cost: float | None) -> str:
    """A cost in the unit of the profile's prices.

    >>> money(0.01234), money(12.5), money(0.0)
    ('0.0123', '12.50', '0')
    """
    if cost is None:
        return NOTHING
    return "0" if not cost else f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"


def first_line(text: str, limit: int = 300) -> str:
    """The line that says what is wrong, see telling_line, cut at `limit` characters."""
    line = telling_line(plain(text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def cut(text: str, limit: int = 4000) -> str:
    """The text, or its start and how much is missing."""
    clean = plain(text)
    return clean if len(clean) <= limit else f"{clean[:limit]}\n… {len(clean) - limit:,} more characters"
