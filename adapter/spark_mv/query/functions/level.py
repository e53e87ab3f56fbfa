"""Levels of determinism: Teiid's, plus one for AI functions; `ORDER_DEPENDENT` is for results that depend on the order
in which Spark happens to see rows."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering


@total_ordering
class Level(str, Enum):
    """Level of determinism of a function or an expression. Ordered from best to worst.

    An expression has the level of its worst part.
    """

    DETERMINISTIC = "deterministic"
    SESSION = "session"
    USER = "user"
    COMMAND = "command"
    AI = "ai"
    ORDER_DEPENDENT = "order-dependent"
    NONDETERMINISTIC = "nondeterministic"

    def __str__(self) -> str:
        return str(self.value)

    @property
    def rank(self) -> int:
        return list(Level).index(self)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Level):
            return NotImplemented
        return self.rank < other.rank

    # str brings its own comparisons, which total_ordering would leave in place
    def __le__(self, other: object) -> bool:
        return self == other or self < other

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    __hash__ = str.__hash__
