"""What changed in the sources since the last run, and how a statement reads it. Frozen facts and texts, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.query.delta.names import Columns
from spark_mv.query.delta.texts import TableRef, with_tables
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.solver.types import equal_is_same
from spark_mv.query.syntax.literals import json_text
from spark_mv.query.syntax.reserved import is_reserved, relation
from spark_mv.query.syntax.select_tree import Leaf, NotIncremental
from spark_mv.query.syntax.table_name import quoted, quoted_name

COUNT = "__mv_count"
"""Column of a staged change: how many copies of the row came (positive) or went (negative)."""


@dataclass(frozen=True)
class SourceChange:
    """One source that moved from version `low` to `high`.

    `how`: "feed" reads Delta's change data feed, "appended" the files that Iceberg's appends added, "changelog" also those that
    other commits added and removed, "lineage" the rows whose ids tell that they were written after the commit `sequence`, and those
    of the older version whose ids are gone or written since, "snapshots" compares the two versions. `append_only`: its history shows
    inserts only. `rows`: estimated rows that came or went (None: unknown), `table_rows`: rows it has now, `searched`: rows among which
    those that were deleted are looked for.
    """

    name: str
    low: int
    high: int
    how: str = "feed"
    append_only: bool = False
    rows: int | None = None
    table_rows: int = 0
    sequence: int | None = None
    searched: int = 0


@dataclass(frozen=True)
class Changes:
    """All sources that moved; `problems` say why what changed cannot be known. `source_rows`: rows of each source,
    `target_rows`: rows of the table."""

    sources: tuple[SourceChange, ...] = ()
    problems: tuple[Reason, ...] = ()
    source_rows: Mapping[str, int] = field(default_factory=dict)
    target_rows: int = 0

    @property
    def table_rows(self) -> int:
        """Rows of all sources."""
        return sum(self.source_rows.values())

    @property
    def rows(self) -> int:
        """Estimated changed rows; a source about which nothing is known counts with all its rows, twice."""
        return sum(2 * s.table_rows if s.rows is None else s.rows for s in self.sources)


OUTWEIGHS = 10
"""Rows of a table for each changed row from which on a join that only takes changed rows away costs more to read than it spares."""


@dataclass(frozen=True)
class MovedWindows:
    """The clock moved, and all that it decides is said of rows of the source `name` (called `alias` in it): they pass
    `before` the move under the one condition and `now` under the other. `differ`, where these two do not tell in which
    direction a row goes: the row passes at one instant only, or gives another value. None of them has a clock function."""

    name: str
    alias: str
    before: str
    now: str
    differ: str = ""

    def moved(self, came: bool) -> str:
        """The rows that the clock brought, or took."""
        there, gone = (self.now, self.before) if came else (self.before, self.now)
        return self.differ or f"({there}) AND NOT ({gone})"

    @property
    def stayed(self) -> str:
        """The rows that came and are not among those that the clock brought."""
        return f"NOT {self.differ}" if self.differ else self.before


def staged_name(number: int) -> str:
    """The name of the relation that holds the changes of the source that is `number` among them."""
    return f"changes_{number}"


@dataclass(frozen=True)
class SourceTexts:
    """The texts that stand for each source: at the version that this run reads, and its staged changes; with `unstaged`
    the feed itself, which needs no netting where rows were only inserted."""

    facts: Mapping[str, SourceFacts]  # by name in lower case
    changes: tuple[SourceChange, ...]
    unstaged: bool = False
    rows: Mapping[str, int] = field(default_factory=dict)  # of each source, as far as they are known

    def outweighs(self, name: str) -> bool:
        rows = {source.lower(): count for source, count in self.rows.items()}
        return rows.get(name, 0) > OUTWEIGHS * Changes(self.changes).rows

    @cached_property
    def columns(self) -> Columns:
        """By name in lower case. One dict: what was worked out for it is known by it."""
        return {name: tuple(c.name for c in source.columns) for name, source in self.facts.items()}

    def types(self, name: str) -> Mapping[str, str]:
        return {c.name.lower(): c.type.lower() for c in self.facts[name].columns} if name in self.facts else {}

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
            raise NotIncremental("SOURCE_UNVERSIONED", source.without_version)
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

    def pinned_before(self, sql: str) -> str:
        """The text with every source read as the last run read it."""
        return with_tables(sql, self._before({c.name.lower(): c.low for c in self.changes}))

    def _before(self, lows: Mapping[str, int]) -> Callable[[TableRef], str]:
        """Sources at the older versions `lows` (by name in lower case), others as they are now."""

        def text(ref: TableRef) -> str:
            low = lows.get(ref.name.lower())
            return self._pinned_ref(ref) if low is None else f"{ref.text} VERSION AS OF {low}"

        return text

    def _pinned_ref(self, ref: TableRef) -> str:
        return ref.text if is_reserved(ref.name) else self._now(ref.name, ref.text)

    def on_changes(self, sql: str, came: bool, moved: MovedWindows | None = None, pins: Pins | None = None) -> str:
        """The text at the instant `pins`, reading, instead of the sources that changed, only their rows that came or went,
        as often as they did; with `moved`, of the one source that its windows stand on, also those that the clock let in or out.

        The two steps are (S₀, T₀) → (S₁, T₀) → (S₁, T₁), so that no row is counted in both: of the source's changes, the
        rows valid at T₀; of the source as it is now, the rows valid at one of the two instants only.
        """
        if moved is None:
            rows = {c.name: [self._changed_rows(c, came, "", "")] for c in self.changes}
            return self._on(sql, rows, pins)
        condition = moved.stayed if came or not moved.differ else ""
        changed = [self._changed_rows(c, came, moved.alias, condition) for c in self.changes]
        return self._on(sql, {moved.name: [self._moved_rows(moved, came), *changed]}, pins)

    def on_passing(self, sql: str, moved: MovedWindows, pins: Pins) -> str:
        """The text reading only rows that came and that the clock let out at once: `on_changes` tells of them twice."""
        rows = [self._changed_rows(c, True, moved.alias, moved.moved(came=False)) for c in self.changes]
        return self._on(sql, {moved.name: rows}, pins)

    def on_step(self, sql: str, number: int, came: bool) -> str:
        """The text reading, of the source that is `number` among the changes, only the rows that came or went. Sources
        before it are read as they are now, those after it as they were: the changes applied one source after the other."""
        change = self.changes[number]
        other = self._before({c.name.lower(): c.low for c in self.changes[number + 1 :]})
        rows = self._changed_rows(change, came, "", "")
        return with_tables(sql, lambda ref: f"({rows})" if ref.name.lower() == change.name.lower() else other(ref))

    def on_move(self, sql: str, moved: MovedWindows, came: bool) -> str:
        """The text reading, of the source that the windows stand on, only the rows that the clock let in or out."""
        return self._on(sql, {moved.name: [self._moved_rows(moved, came)]})

    def on_candidates(self, sql: str, moved: MovedWindows | None) -> str:
        """The text, in which AI answers are joined in already, reading only rows that the clock can have taken: those that
        left, and those that came too late."""
        rows = [self._moved_rows(moved, False)] if moved else []
        rows += [self._changed_rows(c, True, "", "") for c in self.changes]
        return self._on(sql, {moved.name if moved else self.changes[0].name: rows}, answers=True)

    def _changed_rows(self, change: SourceChange, came: bool, alias: str, condition: str) -> str:
        listed = self._listed(change.name)
        if self.unstaged:
            rows = f"SELECT {listed} FROM {feed(change)}"
        else:
            test, times = (f"{COUNT} > 0", COUNT) if came else (f"{COUNT} < 0", f"-{COUNT}")
            rows = (
                f"SELECT {listed} FROM {self.changes_of(change.name)} "
                f"LATERAL VIEW explode(array_repeat(0, CAST({times} AS INT))) `__mv_copy` AS `__mv_copy` WHERE {test}"
            )
        # the condition is the user's: it sees the columns of the source and no others
        return f"SELECT {listed} FROM ({rows}) AS {quoted(alias)} WHERE ({condition})" if condition else rows

    def _moved_rows(self, moved: MovedWindows, came: bool) -> str:
        return (
            f"SELECT {self._listed(moved.name)} FROM {self._now(moved.name, quoted_name(moved.name))} AS {quoted(moved.alias)} "
            f"WHERE {moved.moved(came)}"
        )

    def _on(self, sql: str, rows: Mapping[str, Sequence[str]], pins: Pins | None = None, answers: bool = False) -> str:
        """`rows`: what is read instead of a source, by its name. `answers`: what is no source is the table of AI answers."""
        texts = {name.lower(): f"({' UNION ALL '.join(each)})" for name, each in rows.items()}

        def read(ref: TableRef) -> str:
            if ref.name.lower() in texts:
                return texts[ref.name.lower()]
            return ref.text if answers and ref.name.lower() not in self.facts else self._pinned_ref(ref)

        return with_tables(sql, read, pins)


def feed(change: SourceChange) -> str:
    """The rows that came since the last run, of the change data feed of a history that shows inserts only."""
    return f"table_changes('{quoted_name(change.name)}', {change.low + 1}, {change.high})"


def between(change: SourceChange) -> str:
    """The clause with which Iceberg reads what happened between two snapshots: of a table what appends added, of its table
    `changes` all rows that came and went."""
    return f"WITH ('start-snapshot-id' = '{change.low}', 'end-snapshot-id' = '{change.high}')"


def stage_args(number: int, change: SourceChange, source: SourceFacts) -> dict[str, object]:
    """The arguments of the step that stages what changed in one source."""
    return {
        "into": staged_name(number),
        "source": quoted_name(source.name),
        "low": change.low,
        "high": change.high,
        "how": change.how,
        "append_only": change.append_only,
        **({"between": between(change)} if change.how in ("appended", "changelog") else {}),
        **({"sequence": change.sequence} if change.how == "lineage" else {}),
        "columns": [
            {
                "name": c.name,
                "atomic": atomic,
                "compared": quoted(c.name) if atomic else json_text(quoted(c.name), c.type),
            }
            for c in source.columns
            for atomic in (is_atomic(c),)
        ],
    }


def is_atomic(column: Column) -> bool:
    """Whether equality of the type tells equal rows; others are netted by their JSON."""
    return equal_is_same(column.type)


def is_comparable(column: Column) -> bool:
    """Whether Spark can join on the type."""
    return not re.search(r"\b(map<|variant\b|void\b)", column.type, re.IGNORECASE)
