"""No key of the table is above this one: what proves that rows with higher keys are new, without looking at the table."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

_TYPES = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,\s*\d+\)|date|string", re.IGNORECASE)


def has_bound(type_: str) -> bool:
    """Whether keys of this Spark type are compared here exactly as Spark does: no floats, times or collated strings."""
    return _TYPES.fullmatch(type_.strip()) is not None


def bound_text(key: Any) -> str | None:
    """The key as the bookkeeping holds it, None for none."""
    return None if key is None else str(key)


def is_above(key: Any, bound: str) -> bool:
    """Whether the key is above the bound. False where the two cannot be compared: the type of the key changed."""
    try:
        if isinstance(key, str):
            # Spark compares the bytes of UTF-8, which come in the order of the code points
            return key > bound
        if isinstance(key, date) and not isinstance(key, datetime):
            return key > date.fromisoformat(bound)
        return isinstance(key, int | Decimal) and Decimal(key) > Decimal(bound)
    except (ValueError, InvalidOperation):
        return False


def higher(key: Any, bound: str | None) -> str | None:
    """The higher of the two as text; the key may be None."""
    if key is None:
        return bound
    return bound_text(key) if bound is None or is_above(key, bound) else bound
