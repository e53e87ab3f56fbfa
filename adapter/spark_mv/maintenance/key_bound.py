"""Between which keys those of the table lie. It proves that rows with higher keys are new, without a look at the table, and
tells how much of the table lies between two keys."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from spark_mv.query.syntax.literals import NOT_UTF8

_TYPES = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,\s*\d+\)|date|string", re.IGNORECASE)


def has_bound(type_: str) -> bool:
    """Whether keys of this Spark type are compared here exactly as Spark does: no floats, times or collated strings."""
    return _TYPES.fullmatch(type_.strip()) is not None


def bound_text(key: Any) -> str | None:
    """The key as the bookkeeping holds it, None for none and for one that no text stands for."""
    return None if key is None or _is_unknown(key) else str(key)


def _is_unknown(key: Any) -> bool:
    return isinstance(key, str) and NOT_UTF8 in key


def is_above(key: Any, bound: str) -> bool:
    """Whether the key is above the bound. False where the two cannot be compared: the type of the key changed."""
    try:
        if isinstance(key, str):
            if _is_unknown(key):
                return False
            # Spark compares the bytes of UTF-8, which come in the order of the code points
            return key > bound
        if isinstance(key, date) and not isinstance(key, datetime):
            return key > date.fromisoformat(bound)
        return isinstance(key, int | Decimal) and Decimal(key) > Decimal(bound)
    except (ValueError, InvalidOperation):
        return False


def higher(key: Any, bound: str | None) -> str | None:
    """The higher of the two as text; the key may be None. None where it is not known."""
    if key is None:
        return bound
    return bound_text(key) if bound is None or _is_unknown(key) or is_above(key, bound) else bound


def lower(key: Any, bound: str | None) -> str | None:
    """The lower of the two as text; the key may be None. None where it is not known."""
    if key is None or bound is None:
        return bound
    return bound if not _is_unknown(key) and is_above(key, bound) else bound_text(key)


def share(low: Any, high: Any, floor: str | None, bound: str | None) -> float | None:
    """How much of the way from `floor` to `bound` lies between two keys, 0 to 1, as if keys were spread evenly; None where
    that cannot be told."""
    if low is None or high is None or floor is None or bound is None:
        return None
    try:
        start, end, first, last = _positions(low, high, floor, bound)
    except (TypeError, ValueError, InvalidOperation):
        return None
    return float((last - first) / (end - start)) if end > start else None


def _positions(low: Any, high: Any, floor: str, bound: str) -> tuple[Decimal, ...]:
    """`floor`, `bound`, `low` and `high` as numbers in the order of the keys."""
    if isinstance(low, str) and isinstance(high, str):
        texts = [text.encode() for text in (floor, bound, low, high)]
        same = next(
            (k for k, bytes_ in enumerate(zip(*texts, strict=False)) if len(set(bytes_)) > 1), min(map(len, texts))
        )
        return tuple(Decimal(int.from_bytes(text[same : same + 8].ljust(8, b"\0"), "big")) for text in texts)
    if isinstance(low, date) and isinstance(high, date):
        return tuple(
            Decimal(day.toordinal()) for day in (date.fromisoformat(floor), date.fromisoformat(bound), low, high)
        )
    return Decimal(floor), Decimal(bound), Decimal(low), Decimal(high)
