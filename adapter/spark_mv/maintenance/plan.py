"""The plan of one run: a frozen, serialisable list of steps. `explain_mv` prints it, the materialization executes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_mv.maintenance.columns import StagedColumn
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.state import StateRecord

STRATEGIES = ("NO_OP", "APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION", "COMPLETE_RECOMPUTE")


@dataclass(frozen=True)
class Reason:
    """Why a strategy does or does not apply: a stable code and a sentence."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Candidate:
    """One strategy that was looked at. `cost` is an estimate in rows read and written, comparable within one run; `units` its
    fixed cost, see steps/fixed_cost.py; `seconds` what both are expected to take."""

    strategy: str
    applies: bool
    reasons: tuple[Reason, ...] = ()
    cost: float | None = None
    units: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Step:
    """One statement, or one piece of work outside SQL. `kind` is one of steps.kinds. `when`: what has to be true of the staged
    rows for the step to be executed (None: always)."""

    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)
    when: When | None = None


@dataclass(frozen=True)
class Plan:
    """`record` is what the publishing commit will say, completed with what the steps find out. `few`: all that the steps
    read beside the table is a few changed rows."""

    model: str
    strategy: str
    candidates: tuple[Candidate, ...]
    steps: tuple[Step, ...] = ()
    columns: tuple[StagedColumn, ...] = ()
    record: RunRecord | None = None
    notes: tuple[str, ...] = ()
    few: bool = False
    audit: bool = False  # compares what another run has left
    second_reading: bool = False  # an audit is to follow, see second_reading.py
    state: StateRecord | None = None  # what the commits to the state table say
    state_turn: int = 0
    remark: str = ""  # for the line of the run: why it is slower than the last one
    fallback: Plan | None = None  # taken when a step fails, or does not follow the data, before anything is published

    @property
    def chosen(self) -> Candidate | None:
        """The candidate of the chosen strategy."""
        return next((c for c in self.candidates if c.strategy == self.strategy), None)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of the chosen strategy."""
        return self.chosen.reasons if self.chosen is not None else ()
