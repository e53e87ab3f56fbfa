"""What a run asks of a table format. The formats themselves are delta.py and its like, found in registry.py by the provider that
DESCRIBE names; nothing above this room asks which format a table has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.state import StateFacts, StateVersion
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description
from spark_mv.spark.formats.history import History
from spark_mv.spark.formats.turn import Turn, TurnSession


@dataclass(frozen=True)
class Versioned:
    """A source as its format knows it. `version` None: it keeps none. `pinnable`: whether the version can be read for as long as
    a run takes, whatever is written. `retention`: seconds for which older versions can be read. `change_feed`: whether the
    table keeps a feed of its changes. `obstacle`: why a query cannot name the version, so that what changed since cannot be asked."""

    version: SourceVersion | None = None
    pinnable: bool = True
    change_feed: bool = False
    retention: float = 7 * 86400.0
    obstacle: str = ""


@dataclass(frozen=True)
class Commit:
    """One commit that wrote rows. `appends`: it only brought rows. `net`: by how many rows it made the table longer, `rows`: how
    many came or went (None: its figures do not say). `anew`: all rows of the table went besides. `marked`: in how many files it marked rows
    as deleted, which stay in them."""

    appends: bool = False
    net: int | None = None
    rows: int | None = None
    anew: bool = False
    marked: int = 0


@dataclass(frozen=True)
class Since:
    """What a table's history tells of the commits between two versions. `how`: the way to read the changes, see SourceChange.
    `sequence`: the number of the older version that "lineage" compares with."""

    how: str
    commits: tuple[Commit, ...]
    sequence: int | None = None


@dataclass(frozen=True)
class Publishing:
    """The commit that a run is about to make. `base`: the version that it started from (None: no table of ours was there), `branch`
    a name that no other run has, `anew`: the statement makes the table, `part`: more statements of the same commit follow.
    `settings` are the session's for the statement, `properties` those of a table that it makes. `dead`: whether the run of such a name has surely ended."""

    turn: Turn
    base: int | None
    branch: str
    anew: bool = False
    part: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    dead: Callable[[str], bool] = lambda name: False


class TableFormat(Protocol):
    """One table format. Tables are quoted names."""

    name: str
    stays: str
    """Why no table of another format can take the place of one of this (empty: one can)."""
    retains: bool
    """Whether single versions of a source can be kept from being cleaned up."""
    replaces_by_key: bool
    """Whether rows can be replaced by their keys in one statement (REPLACE WHERE, REPLACE USING); else they are merged."""

    def newest(self, query: Query, table: str) -> SourceVersion | None:
        """The newest version, and when it was made; None where there is none."""

    def source(self, query: Query, table: str, description: Description) -> Versioned:
        """What is known of a source before its changes are looked at."""

    def since(self, query: Query, source: SourceFacts, before: SourceVersion, columns: str) -> Since | Reason:
        """The commits between the version that the last run read and the source's own, or why these do not tell what changed.
        `columns`: those that the last run read (SourceFacts.columns_print)."""

    def described(self, query: Query, table: str, description: Description) -> Description:
        """The description with the table's properties as they are, where DESCRIBE EXTENDED leaves doubts."""

    def history(self, query: Query, table: str, model: str = "") -> History | None:
        """The table's history as far as it matters to the runs of `model` (dbt's unique id; empty: of any)."""

    def last_change(self, query: Query, table: str) -> datetime | None:
        """When rows last changed (UTC), by the newest commit that can have changed any; None where no commit that is left has."""

    def size(self, query: Query, table: str) -> int | None:
        """Bytes of the newest version's files; None where they are not known without reading the table."""

    def state(self, query: Query, table: str, columns: tuple[Column, ...]) -> StateFacts:
        """Facts about a model's state table that exists and has these columns."""

    def state_version(self, query: Query, table: str) -> StateVersion | None:
        """The newest version of a state table; None where it has none."""

    def retain(self, query: Query, table: str, version: int, holder: str) -> None:
        """Keep a version of a source from being cleaned up, in the name of `holder`, instead of the one that it held before."""

    def release(self, query: Query, table: str, holder: str) -> None:
        """Let what `holder` held be cleaned up."""

    # --- tables that runs write

    def unusable(self, query: Query) -> str:
        """Why runs cannot write tables of this format in this session; empty where they can."""

    def refused(self, columns: Mapping[str, Any]) -> list[str]:
        """What a model's settings ask for that tables of this format do not have, each with the cure."""

    def not_stored(self, columns: Sequence[Column], properties: Mapping[str, Any], spark: Any = None) -> list[str]:
        """Of which columns no table of this format with these properties can hold the type in this session (None: one out of reach), each
        with the cure."""

    def stored(self, column: Column) -> Column:
        """The column as a table of this format has it."""

    def properties(self) -> Mapping[str, str] | None:
        """Properties of a table that is made; None where they follow from its columns and its contract (amendments.py)."""

    def growing(self) -> Mapping[str, str]:
        """Properties of a table to which each invocation appends a few rows."""

    def made_as(self, spark: Any, table: str) -> str:
        """The name by which a statement makes the table."""

    def written_as(self, table: str, branch: str) -> str:
        """The name by which the statements of a run write to the table."""

    def publish(self, asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
        """Make the commit with the one statement that `write` sends, and prove that it was made. Raises TurnTaken where another
        writer came first; then nothing was written."""

    def tidy(self, asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
        """A commit that takes away rows which nobody reads any more, with the bookkeeping. Where another writer came first nothing is
        lost: it is left out."""

    def say(self, session: TurnSession, query: Query, table: str, id: str, text: str) -> None:
        """A commit that changes no row and carries `text`, whose id is `id`."""
