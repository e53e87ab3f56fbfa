"""The bookkeeping that a run leaves in its own commit: what the table now is a function of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Protocol, TypeVar

from spark_mv.maintenance.format_version import FORMAT, of_this_format

_KEY = "spark_mv"
_EARLIER = ("forgotten",)
"""Fields that earlier releases wrote."""


@dataclass(frozen=True)
class SourceVersion:
    """A version of a source: Delta's version number and that commit's time (a recreated table starts a new history,
    so the pair also tells one table from another of the same name)."""

    version: int
    timestamp: str


@dataclass(frozen=True)
class KeptRecord:
    """What a commit says of the columns that a table then had, all in lower case: `columns` the fingerprints of their own
    expressions, `kept` those of the kept ones among them, `keys` the unique key (empty: not known)."""

    kept: Mapping[str, str]
    columns: Mapping[str, str]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """After the commit that carries it: table = Q(S, T, V).

    `query` is the fingerprint of the SELECT, `config` that of the settings which change rows, `columns` the fingerprint
    of each column's own expression, `kept` the same of the kept ones, `keys` the unique key, `filter_print` that of
    the conditions which a random filter consists of, `state` the id of the state table that belongs to it and
    `state_version` the number of that table's version then (StateVersion), `state_gone` how many of its draws the run was still to drop, `pins` the literals that stood for the clock, the user and the
    session, `functions` hashes of the project's own functions, `settings` the session's settings that decide what an expression gives, `source_columns` the sources' columns
    and types.
    `next_change_at` is the first instant after `as_of` at which a row enters or leaves by its window alone (None: never);
    it means nothing when `clock_solved` is false. `base_version` is the target's version that the run started from.
    Requests to forget that were made up to version `honoured` (None: `base_version`) are done.
    `ai_pending` answers are still to come; the first of them is asked for at `ai_retry_at` (None: by the next run).
    `ask_again` names the newest request for new AI answers that the run has seen. `source_rows` and `target_rows` are
    what later runs estimate costs from, `clock_rows` how many rows the last run changed for which the clock had moved; the table's count is exact while nobody else writes to it. No key of the table
    is above `key_bound` or below `key_floor` (text of a whole number, decimal, date or string; None: not known).
    `turn` is the number of the run's turn, `run_id` is this run's alone, and `model` names the model whose run it was (dbt's
    unique id; empty in records of older versions, as the other two). `unaudited` counts the commits since the last audit,
    this one included, `read_twice` says of each strategy whether its first result for this query was right
    (second_reading.py). `started_at` (UTC), `cost` (estimated rows), `units` (of fixed cost) and `pace` (what these take in seconds, see pace.py) let later runs learn from this one.
    `result` are names and types of the query's columns, as long as what decides them has the hash `result_print` (empty: not known).
    `ai_before`: by the lineage of an AI call, the identities whose answers the table has shown, newest first (query.ai_calls.keys).
    `retained`: sources whose versions the run holds for the next one, and their formats.
    """

    query: str
    config: str
    as_of: str
    time_zone: str
    sources: Mapping[str, SourceVersion]
    kept: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    filter_print: str = ""
    state: str = ""
    state_version: int | None = None
    state_gone: int = 0
    pins: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    source_columns: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    next_change_at: str | None = None
    clock_solved: bool = True
    base_version: int | None = None
    honoured: int | None = None
    invocation_id: str = ""
    ai_pending: int = 0
    ai_retry_at: str | None = None
    partial: bool = False
    ask_again: str = ""
    strategy: str = "COMPLETE_RECOMPUTE"
    source_rows: Mapping[str, int] = field(default_factory=dict)
    target_rows: int | None = None
    clock_rows: int | None = None
    key_bound: str | None = None
    key_floor: str | None = None
    started_at: str = ""
    cost: float | None = None
    units: float | None = None
    pace: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    run_id: str = ""
    turn: int = 0
    unaudited: int = 0
    read_twice: Mapping[str, bool] = field(default_factory=dict)
    result_print: str = ""
    result: tuple[tuple[str, str], ...] = ()
    retained: Mapping[str, str] = field(default_factory=dict)
    ai_before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of_columns(self, query: str, prints: Mapping[str, str]) -> KeptRecord:
        """What it says of the columns. A record of an earlier version names kept columns only: of the others it is known
        what they were if the query is still the same (`query` its fingerprint now, `prints` those of its columns)."""
        same = prints if self.query == query and not self.columns else {}
        return KeptRecord(self.kept, {**same, **self.columns, **self.kept}, self.keys)

    def with_rows(self, written: str | None) -> RunRecord:
        """With the rows that the commit itself counts, which made the table, where the run did not know them before."""
        return self if written is None or self.target_rows is not None else replace(self, target_rows=int(written))

    def to_json(self) -> str:
        """One line of JSON, for a commit's metadata."""
        written = {_KEY: FORMAT, **asdict(self)}
        if not self.ai_before:  # models without AI calls write what they always did
            del written["ai_before"]
        return json.dumps(written, sort_keys=True, separators=(",", ":"))


def known_fields() -> list[str]:
    """The fields that a record may have, in order; one with others is of a later release."""
    return sorted({_KEY, *_EARLIER, *(field.name for field in fields(RunRecord))})


def differing(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The names, in order, that one of the two lacks or says otherwise.

    >>> differing({"a": 1, "b": 2}, {"b": 3, "c": 4})
    ['a', 'b', 'c']
    """
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def read_record(text: str | None) -> RunRecord | None:
    """The record in a commit's metadata, or None where there is none of ours that can be read. Raises RefusedError for that of a
    later release."""
    if not text or _KEY not in text:
        return None
    try:
        written = json.loads(text)
    except ValueError:
        return None
    data = of_this_format(written, _KEY, "the record in a commit of the model's table", RunRecord, _EARLIER)
    if data is None:
        return None
    try:
        sources = {name: SourceVersion(**version) for name, version in data.pop("sources").items()}
        data.pop("forgotten", None)
        result = tuple((str(name), str(kind)) for name, kind in data.pop("result", ()))
        return RunRecord(sources=sources, keys=tuple(data.pop("keys", ())), result=result, **data)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


class _OfOneCommit(Protocol):
    @property
    def run_id(self) -> str: ...


_Record = TypeVar("_Record", bound=_OfOneCommit)


def unless_copied(record: _Record, older: Iterable[str | None]) -> _Record | None:
    """The record, None where an older commit carries it as well: RESTORE, CLONE and cherry-picks copy what a commit says. `older`: the metadata of
    those before it."""
    return None if record.run_id and any(record.run_id in (text or "") for text in older) else record
