"""The bookkeeping that a run leaves in its own commit: what the table now is a function of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

FORMAT = 1


@dataclass(frozen=True)
class SourceVersion:
    """A version of a source: Delta's version number and that commit's time (a recreated table starts a new history,
    so the pair also tells one table from another of the same name)."""

    version: int
    timestamp: str


@dataclass(frozen=True)
class RunRecord:
    """After the commit that carries it: table = Q(S, T, V).

    `query` is the fingerprint of the SELECT, `config` that of the settings which change rows, `kept` the fingerprint
    of each kept column's own expression, `pins` the literals that stood for the clock, the user and the session, `settings`
    the session's settings that decide what an expression gives, `source_columns` the sources' columns and types.
    `next_change_at` is the first instant after `as_of` at which a row enters or leaves by its window alone (None: never);
    it means nothing when `clock_solved` is false. `base_version` is the target's version that the run started from.
    `ai_pending` answers are still to come; the first of them is asked for at `ai_retry_at` (None: by the next run).
    `ask_again` names the newest request for new AI answers that the run has seen. `source_rows` and `target_rows` are
    what later runs estimate costs from; the table's count is exact while nobody else writes to it. No key of the table
    is above `key_bound` or below `key_floor` (text of a whole number, decimal, date or string; None: not known).
    `turn` is the number of the run's turn, `run_id` is this run's alone, and `model` names the model whose run it was (dbt's
    unique id; empty in records of older versions, as the other two). `unaudited` counts the commits since the last audit,
    this one included. `started_at` (UTC), `cost` (estimated rows) and `pace` (seconds per million of them, by strategy) let later runs learn from this one.
    """

    query: str
    config: str
    as_of: str
    time_zone: str
    sources: Mapping[str, SourceVersion]
    kept: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    source_columns: Mapping[str, str] = field(default_factory=dict)
    next_change_at: str | None = None
    clock_solved: bool = True
    base_version: int | None = None
    invocation_id: str = ""
    ai_pending: int = 0
    ai_retry_at: str | None = None
    partial: bool = False
    forgotten: tuple[str, ...] = ()
    ask_again: str = ""
    strategy: str = "COMPLETE_RECOMPUTE"
    source_rows: Mapping[str, int] = field(default_factory=dict)
    target_rows: int | None = None
    key_bound: str | None = None
    key_floor: str | None = None
    started_at: str = ""
    cost: float | None = None
    pace: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    run_id: str = ""
    turn: int = 0
    unaudited: int = 0

    def to_json(self) -> str:
        """One line of JSON, for a commit's metadata."""
        return json.dumps({"spark_mv": FORMAT, **asdict(self)}, sort_keys=True, separators=(",", ":"))


def read_record(text: str | None) -> RunRecord | None:
    """The record in a commit's metadata, or None where there is none of ours that this version can read."""
    if not text:
        return None
    try:
        data = json.loads(text)
    except ValueError:
        return None
    if not isinstance(data, dict) or data.pop("spark_mv", None) != FORMAT:
        return None
    try:
        sources = {name: SourceVersion(**version) for name, version in data.pop("sources").items()}
        return RunRecord(sources=sources, forgotten=tuple(data.pop("forgotten", ())), **data)
    except (TypeError, KeyError, AttributeError):
        return None
