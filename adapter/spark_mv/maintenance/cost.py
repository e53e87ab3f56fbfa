"""Estimated costs of the strategies, in rows read and written: good for comparing them within one run, no more.

A whole recompute reads the sources and joins the table; changed rows are staged, evaluated, staged again and published; finding rows in a big
table costs a fraction of rewriting them. What a row counts for on each of these ways: `ROWS` where rows are compared (`choose_by: rows`), and
`SECONDS` where the estimate is turned into a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_mv.maintenance.changes import Changes


@dataclass(frozen=True)
class Weights:
    """What one row counts for.

    `source`, `target`: a row of a source that a complete recompute reads, and one of the table that it writes. `write`: a changed row, which is
    read and written several times on its way. `look_up`: a row of the table that is looked at to see whether it is affected. `read`: a row of a
    source that is read to find affected anchors, or below a filter by them. `scanned`: one that is read to find what was deleted, or what the clock
    lets in or out. `snapshots`, `lineage`: a row of two versions of a source that are compared, as a whole or by its id.
    """

    source: float = 1.0
    target: float = 1.0
    write: float = 4.0
    look_up: float = 0.3
    read: float = 0.25
    scanned: float = 0.0
    snapshots: float = 2.0
    lineage: float = 0.8


ROWS = Weights()
SECONDS = Weights(source=0.6, write=3.2, look_up=0.5, read=0.4, scanned=0.4, snapshots=1.6, lineage=0.64)
"""In parts of the time that a row takes which a complete recompute writes. Of runs of 15 models (`benchmarks/small.py`), each by an incremental strategy
and completely, over 100,000 and 1,000,000 orders and twice as many lines, fitted to what they took; five of the models over 4,000,000 orders agree.
`scanned` is as `read`: 100 pairs of runs of 28 models over TPC-H agree (docs/benchmarks.md)."""


@dataclass(frozen=True)
class Cost:
    """What each way would take of a run with these changes."""

    changes: Changes
    weights: Weights = ROWS
    moved: str = ""  # the source whose rows the clock lets in or out
    clock_rows: int = 0  # rows of the table to which the clock gives other values

    @property
    def complete(self) -> float:
        """COMPLETE_RECOMPUTE."""
        return self.weights.source * self.changes.table_rows + self.weights.target * self.changes.target_rows

    def append_only(self, enters: bool) -> float:
        """New rows alone, and where the clock lets rows in (`enters`) those of the source."""
        return self._changed + (self._moved if enters else 0.0) + 0.1 * self.changes.target_rows

    @property
    def leaving(self) -> float:
        """Rows of the table that its own columns tell: statistics leave few files to read."""
        return 0.1 * self.changes.target_rows

    @property
    def linear(self) -> float:
        """Changed rows alone; the table is looked up by key."""
        return self._changed + 2 * self._moved + self._looked_up

    def adjusted(self, steps: int) -> float:
        """Changed rows alone, and the table's rows of their groups; where several sources changed, each of the `steps` also
        reads the others."""
        joined = self.weights.read * steps * self.changes.table_rows if len(self.changes.source_rows) > 1 else 0.0
        return self._changed + 2 * self._moved + joined + self._looked_up

    def restricted(self, read: Mapping[str, int]) -> float:
        """Changed rows; `read`: how often each source (lower case) is read to find the anchors that they touch; and all sources once
        more for these anchors. Where many joined tables change at once, a recompute is cheaper."""
        found = sum(rows * read.get(name.lower(), 0) for name, rows in self.changes.source_rows.items())
        return self._changed + self.weights.read * (found + self.changes.table_rows) + self._looked_up

    def below(self, read: Mapping[str, int]) -> float:
        """As `restricted`, and all sources once more as they were."""
        return self.restricted(read) + self.weights.read * self.changes.table_rows

    @property
    def _changed(self) -> float:
        compared = {"snapshots": self.weights.snapshots, "lineage": self.weights.lineage}
        looks = sum(compared.get(change.how, 0.0) * change.table_rows for change in self.changes.sources)
        looks += self.weights.scanned * sum(change.searched for change in self.changes.sources)
        return self.weights.write * (self.changes.rows + self.clock_rows) + looks

    @property
    def _moved(self) -> float:
        """The source is read for the rows that the clock lets in, or for those that it lets out."""
        rows = {name.lower(): count for name, count in self.changes.source_rows.items()}
        return self.weights.scanned * rows.get(self.moved.lower(), 0)

    @property
    def _looked_up(self) -> float:
        return self.weights.look_up * self.changes.target_rows


def cost_of(changes: Changes, choose_by: str, moved: str = "", clock_rows: int = 0) -> Cost:
    """As the setting `choose_by` compares: rows or seconds."""
    return Cost(changes, ROWS if choose_by == "rows" else SECONDS, moved, clock_rows)
