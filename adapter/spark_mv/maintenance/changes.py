"""What changed in the sources since the last run, and how a statement reads it. Frozen facts and texts, no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.query.incremental_names import Columns
from spark_mv.query.incremental_text import TableRef, with_tables
from spark_mv.query.incremental_tree import Leaf, NotIncremental, quoted

COUNT = "__mv_count"
"""Column of a staged change: how many copies of the row came (positive) or went (negative)."""

_ATOMIC = re.compile(
    r"(tinyint|smallint|int|bigint|boolean|binary|date|timestamp|timestamp_ntz|string|decimal\(\d+,\s*\d+\)|"
    r"(var)?char\(\d+\))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SourceChange:
    """One source that moved from version `low` to `high`.

    `how`: "feed" reads Delta's change data feed, "snapshots" compares the two versions. `append_only`: its history shows
    inserts only. `rows`: estimated rows that came or went (None: unknown), `table_rows`: rows it has now.
    """

    name: str
    low: int
    high: int
    how: str = "feed"
    append_only: bool = False
    rows: int | None = None
    table_rows: int = 0


@dataclass(frozen=True)
class Changes:
    """All sources that moved; `problems` say why what changed cannot be known. `table_rows`: rows of all sources,
    `target_rows`: rows of the table."""

    sources: tuple[SourceChange, ...] = ()
    problems: tuple[Reason, ...] = ()
    table_rows: int = 0
    target_rows: int = 0

    @property
    def rows(self) -> int:
        """Estimated changed rows; a source about which nothing is known counts with all its rows, twice."""
        return sum(2 * s.table_rows if s.rows is None else s.rows for s in self.sources)


def relation(name: str) -> str:
    """The text that stands for a relation of the run until its name is known, see MvRun."""
    return f"`__mv_rel_{name}`"


def filled(text: str, relations: Mapping[str, str]) -> str:
    """The text with the names of the run's relations in their places."""
    return re.sub(r"`__mv_rel_(\w+)`", lambda m: relations[m[1]], text)


def staged_name(number: int) -> str:
    return f"changes_{number}"


@dataclass(frozen=True)
class SourceTexts:
    """The texts that stand for each source: at the version that this run reads, and its staged changes."""

    facts: Mapping[str, SourceFacts]  # by name in lower case
    changes: tuple[SourceChange, ...]

    @property
    def columns(self) -> Columns:
        return {name: tuple(c.name for c in source.columns) for name, source in self.facts.items()}

    def changed(self, leaf: Leaf) -> bool:
        return any(c.name.lower() == leaf.name.lower() for c in self.changes)

    def now(self, leaf: Leaf) -> str:
        return self._now(leaf.name, leaf.text)

    def _now(self, name: str, text: str) -> str:
        source = self.facts.get(name.lower())
        if source is None:
            raise NotIncremental("UNKNOWN_TABLE", f"{name} is not a source that was looked at")
        if source.view_text is not None:
            raise NotIncremental(
                "SOURCE_IS_VIEW", f"{name} is a view: what changed below it is read by the whole query"
            )
        if source.version is None:
            raise NotIncremental("SOURCE_UNVERSIONED", f"{name} keeps no versions")
        return f"{text} VERSION AS OF {source.version.version}"

    def changes_of(self, name: str) -> str:
        number = next(k for k, c in enumerate(self.changes) if c.name.lower() == name.lower())
        return relation(staged_name(number))

    def _listed(self, name: str) -> str:
        return ", ".join(quoted(c.name) for c in self.facts[name.lower()].columns)

    def changes_text(self, leaf: Leaf) -> str:
        return f"(SELECT {self._listed(leaf.name)} FROM {self.changes_of(leaf.name)})"

    def now_and_before(self, leaf: Leaf) -> str:
        listed = self._listed(leaf.name)
        change = next(c for c in self.changes if c.name.lower() == leaf.name.lower())
        if change.append_only:
            return f"(SELECT {listed} FROM {self.now(leaf)})"
        lost = f"SELECT {listed} FROM {self.changes_of(leaf.name)} WHERE {COUNT} < 0"
        return f"(SELECT {listed} FROM {self.now(leaf)} UNION ALL {lost})"

    def pinned(self, sql: str) -> str:
        """The text with every source read at its version."""
        return with_tables(sql, lambda ref: self._pinned_ref(ref))

    def _pinned_ref(self, ref: TableRef) -> str:
        return ref.text if ref.name.startswith("__mv_rel_") else self._now(ref.name, ref.text)

    def on_changes(self, sql: str, came: bool) -> str:
        """The text reading, instead of the one changed source, only its rows that came or went, as often as they did."""
        (change,) = self.changes
        test, times = (f"{COUNT} > 0", COUNT) if came else (f"{COUNT} < 0", f"-{COUNT}")
        rows = (
            f"(SELECT {self._listed(change.name)} FROM {self.changes_of(change.name)} "
            f"LATERAL VIEW explode(array_repeat(0, CAST({times} AS INT))) AS `__mv_copy` WHERE {test})"
        )
        return with_tables(sql, lambda ref: rows if ref.name.lower() == change.name.lower() else self._pinned_ref(ref))


def stage_args(number: int, change: SourceChange, source: SourceFacts) -> dict[str, object]:
    """The arguments of the step that stages what changed in one source."""
    return {
        "into": staged_name(number),
        "source": ".".join(quoted(part) for part in source.name.split(".")),
        "low": change.low,
        "high": change.high,
        "how": change.how,
        "append_only": change.append_only,
        "columns": [{"name": c.name, "atomic": is_atomic(c)} for c in source.columns],
    }


def is_atomic(column: Column) -> bool:
    """Whether equality of the type tells equal rows: not floats (0.0 = -0.0), collations, maps, variants or nested
    types with such parts, which are netted by their JSON."""
    return _ATOMIC.fullmatch(column.type.strip()) is not None


def is_comparable(column: Column) -> bool:
    """Whether Spark can join on the type."""
    return not re.search(r"\b(map<|variant\b|void\b)", column.type, re.IGNORECASE)
