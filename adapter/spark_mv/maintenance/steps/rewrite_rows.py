"""By which statement rows of the table are written anew: a pure function of what was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spark_mv.maintenance.key_range import KeyRange

LARGE = 500_000
"""RowCounts of a table from which on a statement to prune its files is worth its time."""
FEW_KEYS = 20_000
"""Staged keys up to which they are written into the statement (REPLACE WHERE key IN …, or those that are gone)."""


class Rewrite(Enum):
    """A join finds the old rows quickest, and a list of their keys where it spares most of a large table."""

    NOTHING = "no row of the table is written anew"
    JOIN = "REPLACE USING"
    JOIN_AND_GONE = "REPLACE ON, with the keys of the rows that only go"
    LIST = "their keys are to be listed"
    LISTED = "REPLACE WHERE key IN (…)"
    MERGE = "MERGE"


@dataclass(frozen=True)
class RowCounts:
    """How many rows are `inserted`, `updated`, and `gone` (staged, but not written). `after`: rows of the table after the run
    (0: not known)."""

    inserted: int
    updated: int
    gone: int
    after: int = 0


def is_large(rows: int | None) -> bool:
    """Whether that is known of a table with so many rows."""
    return rows is not None and rows >= LARGE


def rewrite_of(rows: RowCounts, keys: KeyRange, names: tuple[str, ...], can_join: bool) -> Rewrite:
    """`names`: the columns of the unique key. `can_join`: the session can replace rows by these keys.

    >>> rewrite_of(RowCounts(1, 0, 0), KeyRange(), ("id",), True).name, rewrite_of(RowCounts(1, 2, 0), KeyRange(), ("id",), True).name
    ('NOTHING', 'JOIN')
    """
    written = rows.inserted + rows.updated
    if written + rows.gone == rows.inserted:
        return Rewrite.NOTHING
    small = rows.after < LARGE or written + rows.gone > FEW_KEYS
    joins = can_join and (small or not keys.range(names[0]) or keys.spread)
    if joins and rows.gone == 0:
        return Rewrite.JOIN
    if joins and rows.gone <= FEW_KEYS and written > 0:
        return Rewrite.JOIN_AND_GONE
    return Rewrite.LIST


def listable(names: tuple[str, ...], changed: int) -> bool:
    """Whether the staged keys are worth asking for, to be listed in the statement."""
    return len(names) == 1 and changed <= FEW_KEYS
