"""`max_rows_changed`: how many rows of a table one run may change, delete or evict. Rows that only come do not count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import Any

ALLOWED = "a whole number of rows (5000), a share of the rows before the run (0.2 or '20%'), or '100%', which lets every run pass"
_ROWS = re.compile(r"\d+")
_SHARE = re.compile(r"0?\.\d+")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True)
class RowLimit:
    """As `written` by the user: a number of `rows`, or a `share` (0 to 1) of the rows that the table had before the run."""

    written: str
    rows: int | None = None
    share: Decimal | None = None

    @property
    def everything(self) -> bool:
        """Whether every run passes."""
        return self.share == 1

    def most(self, before: int) -> int:
        """The largest number of rows that may change, of a table that has `before` rows."""
        if self.rows is not None or self.share is None:
            return self.rows or 0
        return int((self.share * before).to_integral_value(ROUND_FLOOR))


def row_limit(value: Any) -> RowLimit | None:
    """The limit that `value` says; None for None. Raises ValueError, whose text says what is allowed.

    >>> row_limit("20%").most(9), row_limit(0.29).most(100), row_limit(7).most(100)
    (1, 29, 7)
    """
    if value is None:
        return None
    text = format(Decimal(str(value)), "f") if isinstance(value, float) else str(value).strip()
    if not isinstance(value, bool):
        if _ROWS.fullmatch(text):
            return RowLimit(text, rows=int(text))
        if _SHARE.fullmatch(text):
            return RowLimit(text, share=Decimal(text))
        percent = _PERCENT.fullmatch(text)
        if percent and Decimal(percent[1]) <= 100:
            return RowLimit(text, share=Decimal(percent[1]) / 100)
    # 1.0 could be one row or all of them
    raise ValueError(f"{value!r} is not {ALLOWED}")
