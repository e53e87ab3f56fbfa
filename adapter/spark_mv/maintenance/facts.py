"""What a run found out before it decides: frozen facts about the session, the sources and the target."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_mv.maintenance.forget import ForgetRequest
from spark_mv.maintenance.record import RunRecord, SourceVersion


@dataclass(frozen=True)
class Column:
    """A column of a table or of a query result: name and Spark type as DESCRIBE prints them."""

    name: str
    type: str


@dataclass(frozen=True)
class SourceFacts:
    """One table that the query reads. `version` is None where the format keeps no versions (files, table functions, views of
    other systems): such a source may have changed at any time. `retention`: seconds for which Delta reads older versions
    than the newest one. `pinnable`: whether the version can be read for as long as a run takes, whatever is written. `obstacle`:
    why a query cannot name the version at all (empty: it can). `sealed`: why a view is read as it is, its
    text (`sealed_text`) not saying in this session what Spark reads through it; empty: it is seen through (`view_text`), or is none."""

    name: str
    columns: tuple[Column, ...]
    provider: str
    version: SourceVersion | None = None
    view_text: str | None = None
    change_feed: bool = False
    retention: float = 7 * 86400.0
    pinnable: bool = True
    obstacle: str = ""
    sealed: str = ""
    sealed_text: str = ""

    @property
    def without_version(self) -> str:
        """The source as a subject, and why nobody knows whether it changed."""
        if self.sealed:
            return f"view {self.name} is read as a whole, because its text would say something else: {self.sealed}"
        return f"{self.name} ({self.provider or 'unknown format'}) keeps no versions"

    @property
    def columns_print(self) -> str:
        """One short hash for each column's name and type, in their order."""
        texts = (f"{c.name.lower()} {c.type.lower()}" for c in self.columns)
        return " ".join(hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts)


def without_versions(name: str) -> SourceFacts | None:
    """Facts about what a query reads that is no table to look at (`verdict.SourceTable.name`): a table function (`f()`), a branch or tag
    that it names (`t@b()`). None for a table."""
    if not name.endswith("()"):
        return None
    return SourceFacts(name, (), "branch or tag" if "@" in name else "table function")


@dataclass(frozen=True)
class TableFacts:
    """What is known of a table that runs write to. `record_version`: the version of its newest commit of ours."""

    exists: bool = False
    columns: tuple[Column, ...] = ()
    version: int | None = None
    record_version: int | None = None

    @property
    def turn(self) -> int:
        """The number of the next turn: all who start from the same commit of ours have the same."""
        last = self.version if self.record_version is None else self.record_version
        return 0 if last is None else last + 1

    def has(self, column: str) -> bool:
        return any(c.name.lower() == column.lower() for c in self.columns)


@dataclass(frozen=True)
class TargetFacts(TableFacts):
    """The model's table as it is now.

    `ours` says whether this materialization made it. `record` is the newest bookkeeping, `intact` whether no other
    writer has changed rows since. `clean`: versions that hold our rows as our runs left them, best first; `columns_then`: the columns of each, where
    somebody else has written since. A `version` of
    what does not exist is that of a Delta table that is not ours and may be replaced. `uncastable`: types of its columns,
    and types that the query gives them now, between which Spark knows no cast.
    """

    is_table: bool = True
    provider: str = ""
    ours: bool = False
    owner: str = ""  # dbt's unique id of the model that made it
    record: RunRecord | None = None
    record_at: str = ""  # when its commit was made (UTC)
    clean: tuple[int, ...] = ()
    columns_then: Mapping[int, tuple[Column, ...]] = field(default_factory=dict)
    written: str = ""  # table properties as DESCRIBE prints them
    our_checks: str = ""
    comments: Mapping[str, str] = field(default_factory=dict)  # of columns, by names in lower case
    comment: str = ""
    intact: bool = False
    foreign_operation: str | None = None
    partition_by: tuple[str, ...] = ()  # as SQL names them, or Iceberg's transforms
    cluster_by: tuple[str, ...] = ()
    forget: tuple[ForgetRequest, ...] = ()  # requests that no run has honoured yet
    ask_again: str = ""  # the newest request for new AI answers, see record.RunRecord.ask_again
    uncastable: frozenset[tuple[str, str]] = frozenset()
    name_is_taken: bool = False  # by what is not ours, and goes


@dataclass(frozen=True)
class RunFacts:
    """All a run knows when it decides. `as_of` is a UTC instant in ISO format, comparable as text."""

    model: str
    as_of: str
    time_zone: str
    invocation_id: str
    sources: tuple[SourceFacts, ...]
    target: TargetFacts
    pins: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)  # of the session, that decide what an expression gives
    full_refresh: bool = False
    started_at: str = ""  # by the clock of this machine (UTC)
    functions: Mapping[str, str] = field(default_factory=dict)  # the project's own that are called: hash of each
    partial: bool = False  # --empty or --sample: the sources are handed over incomplete
    fixed_seconds: float | None = None  # a unit of fixed cost in this session, learned from its runs
    held: bool = False  # staged rows stay in memory
    whole: bool = False  # the table is small and nobody follows its changes: all its rows are quicker written than some of them replaced
    result_print: str = ""  # of what decides the names and types of the result's columns, see result_columns.py

    @property
    def source_versions(self) -> dict[str, SourceVersion]:
        """The versions of the sources that have one, by name."""
        return {s.name: s.version for s in self.sources if s.version is not None}

    @property
    def source_columns(self) -> dict[str, str]:
        """The columns of these, see SourceFacts.columns_print."""
        return {s.name: s.columns_print for s in self.sources if s.version is not None}
