"""What an endpoint says of its own limits: the x-ratelimit-* headers of a reply, as a pause before the next request."""

from __future__ import annotations

import re
from collections.abc import Mapping

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class Paced:
    """A provider that hears from its endpoint how long to wait. A class to derive from, because a user's own provider may have methods of whatever
    name."""

    def pause_by_reply(self, under_way: int) -> float:
        """Seconds to wait before the next request, by what this thread's last reply says of the endpoint's room: `under_way` others have been sent."""
        raise NotImplementedError


def seconds_of(text: str | None) -> float | None:
    """A duration as such headers write it, None where it is none.

    >>> seconds_of("6m0s"), seconds_of("1.5s"), seconds_of("120ms"), seconds_of("1h2m"), seconds_of("7")
    (360.0, 1.5, 0.12, 3720.0, 7.0)
    >>> seconds_of("soon"), seconds_of(None), seconds_of("")
    (None, None, None)
    """
    text = (text or "").strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    if not text or _PART.sub("", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def pause(headers: Mapping[str, str], tokens: int, under_way: int = 0) -> float:
    """Seconds before the next request of about so many tokens: 0 while the endpoint has room for it, else until it says that its
    requests, or tokens, are there again. Its headers may not count `under_way` others that were sent before it came.
    Headers that are missing or unreadable say nothing.

    >>> pause({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "20s"}, 10)
    0.0
    >>> pause({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m0.5s"}, 10)
    60.5
    >>> pause({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "250ms"}, 10)
    0.25
    >>> pause({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "20s"}, 10, under_way=3)
    20.0
    """
    found = 0.0
    for what, needed in (("requests", 1 + under_way), ("tokens", tokens * (1 + under_way))):
        remaining = headers.get(f"x-ratelimit-remaining-{what}")
        reset = seconds_of(headers.get(f"x-ratelimit-reset-{what}"))
        if reset is not None and remaining is not None and remaining.strip().isdigit() and int(remaining) < needed:
            found = max(found, reset)
    return found
