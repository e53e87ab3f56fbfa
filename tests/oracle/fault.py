"""A fault put into one of the engine's own rules, and what of it has to be noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Shows(Enum):
    """What a fault leads to."""

    TABLES = "a run leaves another table than the query gives"
    LOGIC = "a query with other rows has the same fingerprint"
    DRAWS = "draws are kept by a key that does not tell them apart"
    PLACE = "a refusal names a place where there is no draw"


_QUICK = frozenset({"changes are not netted", "the restriction is left out", "a full join as a left join"})


@dataclass(frozen=True)
class Fault:
    """`make` gets what stands at `owner.name` and gives what stands there instead. `query`, with its unique_key, is one by
    which the fault shows; `other` is one with the same fingerprint then."""

    what: str
    owner: Any
    name: str
    make: Callable[[Any], Any]
    query: str
    key: str = "id"
    shows: Shows = Shows.TABLES
    other: str = ""

    @property
    def quick(self) -> bool:
        """Whether it shows within a moment."""
        return self.shows is not Shows.TABLES or self.what in _QUICK

    @contextmanager
    def planted(self) -> Iterator[None]:
        before = self.owner.__dict__[self.name]
        setattr(self.owner, self.name, self.make(before))
        try:
            yield
        finally:
            setattr(self.owner, self.name, before)
