"""A value that a predicate compares the clock with, on its way to becoming a bound, with a pending whole-step offset.

Domains are discrete: microseconds for timestamps, days for dates, ones for integers. "greater than v" is "at least the
next value", so every comparison becomes one of two forms with an exact bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

SECOND = 1_000_000
DAY = 86_400 * SECOND
_UNITS = (("HOUR", 3600 * SECOND), ("MINUTE", 60 * SECOND), ("SECOND", SECOND), ("MICROSECOND", 1))
_ATOM = re.compile(r"(?:[\w.]+|`[^`]+`|[A-Za-z_]+'[^']*')")


@dataclass(frozen=True)
class Value:
    """SQL of one kind (`timestamp`, `timestamp_ntz`, `date`, `int`) plus `plus` steps of that kind."""

    sql: str
    kind: str
    plus: int = 0
    midnight: bool = False  # of a timestamp without offset: always a local midnight

    def next(self) -> Value:
        """The next greater value."""
        return replace(self, plus=self.plus + 1)

    def shifted(self, steps: int) -> Value:
        return replace(self, plus=self.plus + steps)

    def render(self) -> str:
        """The SQL of the value with its offset. NULL exactly when a part of it is NULL."""
        if self.plus == 0:
            return self.sql
        if self.kind == "date":
            return f"date_add({self.sql}, {self.plus})"
        if self.kind == "int":
            return f"{operand(self.sql)} {'+' if self.plus > 0 else '-'} {abs(self.plus)}"
        if abs(self.plus) < SECOND and self.plus:
            sign = "+" if self.plus > 0 else "-"
            return f"{operand(self.sql)} {sign} INTERVAL '0.{abs(self.plus):06d}' SECOND"
        unit, size = next((u, s) for u, s in _UNITS if self.plus % s == 0)
        # timestampadd counts elapsed time up to hours; + INTERVAL '24' HOUR would add a calendar day
        return f"timestampadd({unit}, {self.plus // size}, {self.sql})"


def wide(number: str) -> str:
    """A whole number in a type in which the sum of two BIGINTs has room: the greatest one often says that there is no end."""
    return f"CAST({number} AS DECIMAL(20, 0))"


def operand(sql: str) -> str:
    """The SQL with parentheses unless it is a name, a literal or one call."""
    return sql if _ATOM.fullmatch(sql) or _is_call(sql) else f"({sql})"


def _is_call(sql: str) -> bool:
    match = re.match(r"[A-Za-z_]\w*\(", sql)
    if not match or not sql.endswith(")") or any(quote in sql for quote in "'\"`"):
        return False
    depth = 0
    for position, char in enumerate(sql):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and position >= match.end() - 1:
            return position == len(sql) - 1
    return False
