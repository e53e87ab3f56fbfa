"""What a run has found out of the rows that it is about to write, and what follows for its later steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from spark_mv.maintenance.key_range import KeyRange
from spark_mv.maintenance.steps.rewrite_rows import Rewrite


class When(str, Enum):
    """Conditions of steps: the values are the booleans of Staged of these names."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    INSERTED = "inserts"
    DELETED = "deletes"
    ONLY_NEW = "only_new"
    ONLY_LEAVE = "only_leave"
    COME_AND_LEAVE = "come_and_leave"
    NO_BOUND = "needs_bound"
    UNPROVEN = "unproven"
    FAR = "far"
    REWRITTEN = "rewritten"
    FEW_GONE = "few_gone"
    BY_JOIN = "by_join"
    BY_LIST = "by_list"
    FEW_KEYS = "few_keys"
    MANY_KEYS = "many_keys"
    STATE_CHANGED = "state_changed"
    STATE_NEW = "state_new"
    STATE_UPDATED = "state_updated"
    STATE_UNCHANGED = "state_unchanged"
    STATE_GONE = "state_gone"


@dataclass(frozen=True)
class Staged:
    """Rows `inserted`, `updated` and `deleted` in the table; of the latter, `leaving` ones go without being staged, and the
    clock takes `evicted` ones. `changes`: of the updated rows, those whose values become others. `remaining`: staged rows of
    a whole table. `rows_before`: rows of the table before the run, of which `kept` keep their values (None: not known).

    `checked`, `state_checked`: whether the rows, and those of the state table, have been looked at. `far`: no bound is near
    ahead. `rewrite`: by which statement rows of the table are written anew.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    leaving: int = 0
    evicted: int = 0
    changes: int = 0
    remaining: int | None = None
    rows_before: int | None = None
    kept: int | None = None
    checked: bool = False
    state_rows: int = 0
    state_updates: int = 0
    state_deletes: int = 0
    state_checked: bool = False
    far: bool = False
    keys: KeyRange = field(default_factory=KeyRange)
    rewrite: Rewrite = Rewrite.NOTHING

    def holds(self, when: When | None) -> bool:
        """Whether a step with this condition is due."""
        return when is None or bool(getattr(self, when.value))

    def with_leaving(self, leaving: int) -> Staged:
        """With rows of the table that go without being staged."""
        return replace(self, deleted=self.deleted + leaving, leaving=leaving, evicted=leaving, checked=True)

    @property
    def rows(self) -> int:
        """All rows to write or to remove."""
        return self.inserted + self.updated + self.deleted

    @property
    def target_rows(self) -> int | None:
        """Rows of the table after the run."""
        return None if self.rows_before is None else self.rows_before + self.inserted - self.deleted

    # --- conditions

    @property
    def changed(self) -> bool:
        return self.rows > 0

    @property
    def unchanged(self) -> bool:
        return self.checked and not self.rows

    @property
    def inserts(self) -> bool:
        return self.inserted > 0

    @property
    def deletes(self) -> bool:
        return self.deleted > 0

    @property
    def only_new(self) -> bool:
        return self.rows == self.inserted > 0

    @property
    def only_leave(self) -> bool:
        return self.rows == self.leaving > 0

    @property
    def come_and_leave(self) -> bool:
        return self.rows > self.leaving > 0

    @property
    def needs_bound(self) -> bool:
        """Whether the highest key of the table would prove that the new ones are new."""
        return self.keys.need_bound

    @property
    def unproven(self) -> bool:
        """Whether a new key may be in the table."""
        return self.inserted > 0 and not self.keys.proven_new

    @property
    def rewritten(self) -> bool:
        """Whether rows that were there become others or go."""
        return self.rows > self.inserted

    @property
    def few_gone(self) -> bool:
        return self.rewrite is Rewrite.JOIN_AND_GONE

    @property
    def by_join(self) -> bool:
        return self.rewrite in (Rewrite.JOIN, Rewrite.JOIN_AND_GONE)

    @property
    def by_list(self) -> bool:
        return self.rewrite is Rewrite.LIST

    @property
    def few_keys(self) -> bool:
        return self.rewrite is Rewrite.LISTED

    @property
    def many_keys(self) -> bool:
        return self.rewrite is Rewrite.MERGE

    @property
    def state_changed(self) -> bool:
        return self.state_rows > 0

    @property
    def state_new(self) -> bool:
        """Whether all that is to be written to the state is new there."""
        return self.state_rows > self.state_updates == 0

    @property
    def state_updated(self) -> bool:
        return self.state_updates > 0

    @property
    def state_unchanged(self) -> bool:
        return self.state_checked and not self.state_rows

    @property
    def state_gone(self) -> bool:
        return self.state_deletes > 0

    # --- for people

    @property
    def counts(self) -> Mapping[str, int]:
        """What the run reports."""
        numbers: dict[str, Any] = {
            "inserted": self.inserted,
            "updated": self.updated,
            "deleted": self.deleted,
            "evicted": self.evicted,
            "changed": self.rows,
            "kept": self.kept,
            "target_rows": self.target_rows,
        }
        return {name: number for name, number in numbers.items() if number is not None}
