"""The state table of a model, and whether it and the model's table belong together.

Each of its commits says whose it is, in its own metadata: what was drawn with it, and from which record of the model's table
its run started. The record of the model's table names the state that it was made with. So a state that was lost, made by
another generation of the table, or written to by somebody else is noticed by the next run, and so is a run that died between
the two commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from spark_mv.maintenance.facts import TableFacts, TargetFacts
from spark_mv.maintenance.format_version import FORMAT, of_this_format
from spark_mv.maintenance.record import KeptRecord, RunRecord

_KEY = "spark_mv_state"
NO_TABLE = ""
"""What a commit is made for when the model's table does not exist yet."""
PUBLISHED = "-"
"""What a commit is made for that follows the publishing of the model's table."""


@dataclass(frozen=True)
class StateRecord:
    """`id` names the state since it was made. `kept`, `columns` and `keys` as in KeptRecord. `forgotten`: the requests that
    it has honoured and that still wait for the model's table. `made_for`: the record of the model's table that the run
    started from. `base_version`: the state's version then. `run_id` is one commit's alone."""

    id: str
    made_for: str = NO_TABLE
    kept: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    base_version: int | None = None
    run_id: str = ""

    @property
    def of_columns(self) -> KeptRecord:
        return KeptRecord(self.kept, {**self.columns, **self.kept}, self.keys)

    def to_json(self) -> str:
        """One line of JSON, for a commit's metadata."""
        return json.dumps({_KEY: FORMAT, **asdict(self)}, sort_keys=True, separators=(",", ":"))


def read_state_record(text: str | None) -> StateRecord | None:
    """The record in a commit's metadata, or None where there is none that can be read. Raises RefusedError for that of a later release.

    >>> read_state_record(StateRecord("1", keys=("id",)).to_json()) == StateRecord("1", keys=("id",))
    True
    """
    if not text or _KEY not in text:
        return None
    try:
        written = json.loads(text)
    except ValueError:
        return None
    data = of_this_format(written, _KEY, "the record in a commit of the model's state table", StateRecord)
    if data is None:
        return None
    try:
        keys, forgotten = tuple(data.pop("keys", ())), tuple(data.pop("forgotten", ()))
        return StateRecord(keys=keys, forgotten=forgotten, **data)
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class StateVersion:
    """A version of the state: the `id` that names it in VERSION AS OF, and a `number` that each commit raises."""

    id: int
    number: int


@dataclass(frozen=True)
class StateFacts(TableFacts):
    """The state table as it is now. `record` is that of its newest commit of ours, made as version `record_version`;
    `foreign`: what somebody else did to its rows since, and `readable` whether they can be read as they were before.
    `ours`: whether this materialization made the table, as far as its properties tell. `number`: that of the newest version, where
    the version itself tells nothing of an order. `earlier`: version and record of the commit of ours before those of runs that began from the
    same record of the model's table. `read_at`: the version that `record` is of, where it is an earlier one."""

    provider: str = ""
    number: int | None = None
    record: StateRecord | None = None
    foreign: str | None = None
    readable: bool = True
    ours: bool = True
    earlier: tuple[int, StateRecord] | None = None
    read_at: int | None = None

    @property
    def complete(self) -> bool:
        """Whether more of its history would tell nothing that matters."""
        return self.record is not None and (self.earlier is not None or self.record.made_for in (NO_TABLE, PUBLISHED))

    @property
    def newest(self) -> StateVersion | None:
        if self.version is None:
            return None
        return StateVersion(self.version, self.version if self.number is None else self.number)


@dataclass(frozen=True)
class Standing:
    """Whether the state may be read, and since which of its versions (None: as it is). `problem`: what is wrong with it; a
    state that was never there has none."""

    trusted: bool
    at_version: int | None = None
    problem: str = ""


def standing(state: StateFacts, target: TargetFacts) -> Standing:
    """Whether the state belongs to the table, in the state in which both are."""
    record = target.record if target.exists else None
    named = record.state if record else ""
    if not state.exists:  # a table that names no state is a copy, or its bookkeeping is lost
        unknown = target.exists and target.ours and record is None
        return Standing(False, problem="it is gone" if named else "it is not there" if unknown else "")
    if state.record is None:
        # an earlier version wrote no records into it
        earlier = record is not None and not record.columns
        return Standing(earlier, problem="" if earlier or not named else "its history holds no commit of this model's")
    if not _belongs(state.record, target):
        return Standing(False, problem="it belongs to another table" if named else "")
    known = record.state_version if record is not None and state.record.id == named else None
    if known is not None and (state.newest is None or state.newest.number < known):
        return Standing(False, problem="it is an older copy of what it was")
    if state.foreign is None:
        return Standing(True)
    if state.readable:
        at = state.record_version if state.read_at is None else state.read_at
        return Standing(True, at, f"something else wrote to it ({state.foreign})")
    return Standing(False, problem=f"something else wrote to it ({state.foreign})")


def _belongs(state: StateRecord, target: TargetFacts) -> bool:
    if not target.exists:
        return state.made_for == NO_TABLE
    if target.record is None:  # the table's own bookkeeping is lost: it names no state
        return state.made_for != NO_TABLE
    return state.id == target.record.state or state.made_for == stamp(target)


def stamp(target: TargetFacts) -> str:
    """What tells the newest record of the model's table from all others."""
    if not target.exists:
        return NO_TABLE
    return f"{target.record.started_at} {target.record.invocation_id}" if target.record else PUBLISHED


@dataclass(frozen=True)
class Seed:
    """What tells of a lost state, or of one whose last run died. Of the model's table: `trial_sql` and `accepted_sql` draw again for rows that passed a random
    filter (query.rewrite.filter_draws.Members). `bounds`: when a row of the table comes and leaves by the clock, over its own
    columns. `left_sql`: the candidates that the last run left, which died before it dropped the draws of those that were gone. None where that is
    not known."""

    trial_sql: str | None = None
    accepted_sql: str | None = None
    bounds: tuple[str, str] | None = None
    left_sql: str | None = None


def earlier(record: StateRecord, older: Iterable[tuple[int, StateRecord | None]]) -> tuple[int, StateRecord] | None:
    """See StateFacts: of the commits before that of the record, the newest first."""
    return next(((at, found) for at, found in older if found is not None and found.made_for != record.made_for), None)


def as_published(state: StateFacts, target: TargetFacts) -> tuple[int, StateRecord] | None:
    """Version and record of the state that the table stands on, where runs since made another of it and published nothing: with draws or columns that
    another query has, or by another key. None where the newest will do."""
    if state.record is None or state.earlier is None or target.record is None or state.record.made_for != stamp(target):
        return None
    return None if state.earlier[1].of_columns == state.record.of_columns else state.earlier


def draws_to_drop(state: StateFacts, record: RunRecord) -> bool:
    """Whether the run that published the table died before it dropped draws: a commit of the state behind the table's own is the one that dropped
    them, or one of a run that died later."""
    ours, newest = state.record, state.newest
    dropped = (
        ours is not None
        and newest is not None
        and record.state_version is not None
        and newest.number > record.state_version
        and ours.made_for == PUBLISHED
    )
    return bool(record.state_gone) and not dropped
