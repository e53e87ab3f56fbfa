"""Between which keys those of the table lie, and those that a run stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.maintenance.key_bound import bound_text, higher, is_above, lower, share
from spark_mv.maintenance.record import RunRecord
from spark_mv.query.syntax.literals import between

SPREAD = 0.5
"""Share of the table's keys from which on a range of them spares too little to be worth a condition."""
NARROW = 0.05
"""The same for a list of keys: a row that is read by a list takes four times as long as in a join, and a few keys far from
all others make the range of the others look small."""


@dataclass(frozen=True)
class KeyRange:
    """No key of the table was above `bound` or below `floor` before this run (None: not known). `highest`, `lowest` and
    `lowest_new` are of the staged rows, None where there is none or keys have no bound."""

    bound: str | None = None
    floor: str | None = None
    highest: Any = None
    lowest: Any = None
    lowest_new: Any = None

    @classmethod
    def of(cls, record: RunRecord | None) -> KeyRange:
        """As the record has it."""
        return cls(record.key_bound, record.key_floor) if record else cls()

    def staged(self, row: Mapping[str, Any]) -> KeyRange:
        """With what the check of the staged rows says."""
        lowest_new = row.get("lowest_new_key")
        return replace(self, highest=row.get("highest_key"), lowest=row.get("lowest_key"), lowest_new=lowest_new)

    def range(self, key: str) -> str:
        """The staged keys lie in it; '' where there are no literals for it."""
        return between(key, self.lowest, self.highest, "t.") or ""

    @property
    def need_bound(self) -> bool:
        return self.lowest_new is not None and self.bound is None

    @property
    def proven_new(self) -> bool:
        """Whether all new keys are above those of the table."""
        return self.lowest_new is not None and self.bound is not None and is_above(self.lowest_new, self.bound)

    @property
    def spread(self) -> bool:
        """Whether the staged keys lie so far apart that a join finds them sooner than a list of them."""
        return self.far(self.lowest, self.highest, NARROW)

    def far(self, low: Any, high: Any, limit: float = SPREAD) -> bool:
        """Whether more than this share of the table's keys lies between two keys, so that their range spares too little."""
        part = share(low, high, self.floor, self.bound)
        return part is not None and part > limit

    def after(self, replaced: bool) -> tuple[str | None, str | None]:
        """Bound and floor after this run, which may have `replaced` the table by the staged rows."""
        if replaced:
            return bound_text(self.highest), bound_text(self.lowest)
        return None if self.bound is None else higher(self.highest, self.bound), lower(self.lowest, self.floor)
