"""`audit`: how often the table is compared with a complete recompute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ALLOWED = "true (every run), false, or {every: 20} (every 20th run; a whole number from 1 on)"


def audit_every(value: Any) -> int | None:
    """Every how many runs there is an audit; None: never. Raises ValueError, whose text says what is allowed.

    >>> audit_every({"every": 20}), audit_every(True), audit_every(False)
    (20, 1, None)
    """
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, Mapping) and set(value) == {"every"}:
        every = value["every"]
        if isinstance(every, str) and every.strip().isdecimal():
            every = int(every)
        if isinstance(every, int) and not isinstance(every, bool) and every >= 1:
            return every
    raise ValueError(f"{value!r} is not {ALLOWED}")
