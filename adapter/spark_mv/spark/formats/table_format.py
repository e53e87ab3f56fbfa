"""What a run asks of a table format. The formats themselves are delta.py and its like, found in registry.py by the provider that
DESCRIBE names; nothing above this room asks which format a table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description
from spark_mv.spark.formats.history import History


@dataclass(frozen=True)
class Versioned:
    """A source as its format knows it. `version` None: it keeps none. `pinnable`: whether the version can be read for as long as
    a run takes, whatever is written. `retention`: seconds for which older versions can be read. `change_feed`: whether the
    table keeps a feed of its changes."""

    version: SourceVersion | None = None
    pinnable: bool = True
    change_feed: bool = False
    retention: float = 7 * 86400.0


@dataclass(frozen=True)
class Commit:
    """One commit that wrote rows. `appends`: it only brought rows. `net`: by how many rows it made the table longer, `rows`: how
    many came or went (None: its figures do not say). `anew`: all rows of the table went besides."""

    appends: bool = False
    net: int | None = None
    rows: int | None = None
    anew: bool = False


@dataclass(frozen=True)
class Since:
    """What a table's history tells of the commits between two versions. `how`: the way to read the changes, see SourceChange."""

    how: str
    commits: tuple[Commit, ...]


class TableFormat(Protocol):
    """One table format. Tables are quoted names."""

    name: str

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
