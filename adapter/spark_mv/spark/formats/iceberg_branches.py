"""The branches of an Iceberg table: by Iceberg's own classes where the session's JVM is in reach, by its SQL over Spark Connect and Thrift.

Who makes a table anew over Connect or Thrift cannot find out afterwards what its CREATE OR REPLACE has overwritten. So the commit with which
it claims the table first *holds* it: whoever starts from that commit, or from one behind it, may not publish until the table is made anew
or the commit of that run's end says that it is not held any more.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import joined, parts_of, quoted
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.iceberg_log import loaded_table
from spark_mv.spark.formats.iceberg_states import HOLD, RECORD
from spark_mv.spark.formats.turn import TurnSession

MAIN = "main"
RELEASED = "-"
"""What stands in the place of a stamp when the table is not held any more."""
HELD = f"spark.sql.iceberg.snapshot-property.{HOLD}"
"""Setting with which Iceberg gives the snapshots of a statement that property."""
_RUN = '"run_id":'
"""What the record of a run has, and no request to forget."""
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before a change of branches is tried again."""


@dataclass(frozen=True)
class Tip:
    """The last snapshot of a branch: its id, and the record in it (empty: none)."""

    id: int
    record: str


class Branches(Protocol):
    """The branches of one table, as they were when it was last looked at."""

    undoes: bool
    """Whether a run can find out what its CREATE OR REPLACE has overwritten, and put it back."""

    def look(self) -> None:
        """See the table as it is now."""

    def names(self) -> list[str]:
        """Of all branches and tags."""

    def tip(self, name: str) -> Tip | None:
        """The end of a branch; None where there is no such branch."""

    def held_by(self, base: int | None) -> str:
        """The stamp of the run that holds the table, looking from a snapshot back to the newest record; empty where none does."""

    def make(self, name: str, base: int | None) -> None:
        """Make a branch at a snapshot, or without one."""

    def move_main(self, name: str) -> None:
        """Move main to the end of the branch, if it is behind it, and drop the branch."""

    def drop(self, name: str) -> None:
        """Drop a branch."""


def branches_of(session: TurnSession, query: Query, table: str) -> Branches:
    """The table's branches as they are now."""
    spark = session.mv_spark()
    if spark is not None and getattr(spark, "_jvm", None) is not None:
        return _ByClasses(loaded_table(spark, table))
    found = _BySql(query, table)
    found.look()
    return found


def again(change: Callable[[], None]) -> None:
    """A change of branches that Iceberg has refused for the sake of another commit of metadata, if only of a branch, is made again: its own
    second try of such a change always fails ("Table metadata refresh is required"). The change looks itself whether it may still be made."""
    for pause in _PAUSES:
        try:
            return change()
        except Exception as error:
            if "CommitFailedException" not in str(error) or "CommitStateUnknown" in str(error):
                raise
            time.sleep(pause * random.uniform(0.5, 1.0))
    change()


def check_base(branches: Branches, table: str, base: int | None) -> None:
    """Raises TurnTaken where main is not what the run started from any more."""
    branches.look()
    main = branches.tip(MAIN)
    if (None if main is None else main.id) != base:
        raise TurnTaken(table)


def refuse_held(
    branches: Branches, table: str, base: int | None, dead: Callable[[str], bool] = lambda stamp: False
) -> None:
    """Raises RunFailed where a run that may be alive holds the table, looking back from `base`."""
    if not (holder := branches.held_by(base)) or dead(holder):
        return
    raise RunFailed(
        "TABLE_HELD",
        f"{table}: another run is making it anew over Spark Connect or Thrift, and would overwrite what came meanwhile; so this changed nothing. "
        f"Run it again when that run is done. If it died instead, this lets go of the table: set `{HELD}` = `{RELEASED}`; insert into {table} "
        f"select * from {table} where false; reset `{HELD}`. A day after it began it counts as dead",
    )


def _holder(chain: Iterator[tuple[str | None, bool]]) -> str:
    """Of snapshots, newest first: who holds the table, and whether a run published with it."""
    for held, published in chain:
        if held is not None:
            return "" if held == RELEASED else held
        if published:
            return ""
    return ""


@dataclass
class _ByClasses:
    loaded: Any
    undoes = True

    def look(self) -> None:
        self.loaded.refresh()

    def names(self) -> list[str]:
        return [str(name) for name in self.loaded.refs().keySet()]

    def tip(self, name: str) -> Tip | None:
        found = self.loaded.snapshot(name)
        return None if found is None else Tip(int(found.snapshotId()), str(found.summary().get(RECORD) or ""))

    def held_by(self, base: int | None) -> str:
        return _holder(self._back_from(base))

    def _back_from(self, id: int | None) -> Iterator[tuple[str | None, bool]]:
        while id is not None and (snapshot := self.loaded.snapshot(id)) is not None:
            summary = snapshot.summary()
            yield summary.get(HOLD), _RUN in str(summary.get(RECORD))
            id = snapshot.parentId()

    def make(self, name: str, base: int | None) -> None:
        manage = self.loaded.manageSnapshots()
        (manage.createBranch(name) if base is None else manage.createBranch(name, base)).commit()

    def move_main(self, name: str) -> None:
        # one commit of metadata, which Iceberg makes only where main is still what it was when the table was looked at
        self.loaded.manageSnapshots().fastForwardBranch(MAIN, name).removeBranch(name).commit()

    def drop(self, name: str) -> None:
        self.loaded.manageSnapshots().removeBranch(name).commit()


class _BySql:
    """Two commits where the classes make one: main is moved, then the branch goes. A branch that stays is no harm."""

    undoes = False

    def __init__(self, query: Query, table: str) -> None:
        self.query, self.table = query, table
        self.rows: Sequence[Mapping[str, Any]] = ()

    def look(self) -> None:
        self.query(f"refresh table {self.table}")
        self.rows = self.query(
            f"select s.snapshot_id, s.parent_id, r.name, s.summary['{HOLD}'] as held, instr(s.summary['{RECORD}'], '{_RUN}') > 0 as published, "
            f"case when r.name is not null then s.summary['{RECORD}'] end as record "
            f"from {self.table}.snapshots s left join {self.table}.refs r on s.snapshot_id = r.snapshot_id"
        )

    def names(self) -> list[str]:
        return [str(row["name"]) for row in self.rows if row["name"] is not None]

    def tip(self, name: str) -> Tip | None:
        found = next((row for row in self.rows if row["name"] == name), None)
        return None if found is None else Tip(int(found["snapshot_id"]), str(found["record"] or ""))

    def held_by(self, base: int | None) -> str:
        return _holder(self._back_from(base))

    def _back_from(self, id: int | None) -> Iterator[tuple[str | None, bool]]:
        by_id = {int(row["snapshot_id"]): row for row in self.rows}
        while id is not None and (row := by_id.get(id)) is not None:
            yield row["held"], bool(row["published"])
            id = None if row["parent_id"] is None else int(row["parent_id"])

    def make(self, name: str, base: int | None) -> None:
        at = "" if base is None else f" as of version {base}"
        self.query(f"alter table {self.table} create branch {quoted(name)}{at}")

    def move_main(self, name: str) -> None:
        catalogue, table = self._in_catalogue()
        self.query(
            f"call {quoted(catalogue)}.system.fast_forward(table => {string_literal(table)}, branch => '{MAIN}', to => {string_literal(name)})"
        )
        with suppress(Exception):  # main has been moved: the branch may as well stay
            self.drop(name)

    def _in_catalogue(self) -> tuple[str, str]:
        """The catalogue that has the procedures for the table, and the table's name in it."""
        parts = parts_of(self.table)
        if len(parts) > 2:
            return parts[0], joined(parts[1:])
        return str(self.query("select current_catalog() as name")[0]["name"]), self.table

    def drop(self, name: str) -> None:
        self.query(f"alter table {self.table} drop branch if exists {quoted(name)}")
