"""What providers give, as plain values that every table can hold: one odd answer must not cost those beside it."""

from __future__ import annotations

import math
import re
from typing import Any

_LONE = re.compile(r"[\ud800-\udfff]")
MOST_TOKENS = 10**12
"""Of one request: far more than any takes, and so few that a table's sum of them has room in 64 bits."""


def plain_text(value: Any) -> str:
    r"""The text, with U+FFFD for each lone surrogate, which UTF-8 cannot write.

    >>> plain_text("a\ud800b"), plain_text(KeyError("k"))
    ('a\ufffdb', "'k'")
    """
    found = str.__str__(value) if isinstance(value, str) else str(value)  # a subclass may say another text of itself
    return _LONE.sub("\ufffd", found)


def plain_count(value: Any) -> int:
    """A number of tokens; 0, which is unknown, for what is none.

    >>> [plain_count(one) for one in (7, 7.0, -7, 7.5, 10**30, True, "many", None, float("nan"), float("inf"))]
    [7, 7, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    if isinstance(value, (bool, str, bytes)):
        return 0
    try:
        found = int(value)  # of numpy, a Decimal
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if found == value and 0 <= found <= MOST_TOKENS else 0


def plain_number(value: Any) -> float | None:
    """A finite number, None for what is none.

    >>> [plain_number(one) for one in (1, 0.5, True, "much", None, float("nan"), 10**400)]
    [1.0, 0.5, None, None, None, None, None]
    """
    if isinstance(value, (bool, str, bytes)):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
