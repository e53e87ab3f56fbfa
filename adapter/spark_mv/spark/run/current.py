"""One run of one model while it is under way: what it was given, and what it has found out and done so far.

The kinds of step that do more than send their statement (checks.py, answers.py, publish.py, …) work on it; what comes
after what is execute.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Protocol

from spark_mv.ai.outcome import AiOutcome
from spark_mv.maintenance.errors import first_line
from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.staged import Staged
from spark_mv.maintenance.state import StateVersion
from spark_mv.maintenance.steps.kinds import KINDS, StepKind
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.delta import Delta
from spark_mv.spark.formats.replace_using import Gone
from spark_mv.spark.formats.table_format import TableFormat
from spark_mv.spark.run.amendments import Amendments
from spark_mv.spark.run.holding import FEED, HeldFeed

Send = Callable[[str], list[dict[str, Any]]]


class Session(Protocol):
    """What a run needs of the adapter."""

    def query(self, sql: str) -> list[dict[str, Any]]: ...
    def warn(self, text: str) -> None: ...
    def mv_spark(self) -> Any: ...


@dataclass(frozen=True)
class StepView:
    """A step as the macros see it: its kind, and its arguments with relation names filled in. `of_model`: it writes to the
    model's own table, `of_state`: to its state table."""

    kind: str
    args: Mapping[str, Any]
    of_model: bool = False
    of_state: bool = False

    @property
    def of(self) -> StepKind:
        return KINDS[self.kind]

    @property
    def macro(self) -> str | None:
        """The macro that renders it, None for a step without a statement."""
        return self.of.macro


@dataclass(frozen=True)
class KeyTexts:
    """Keys as statements have them: the range of the `affected` anchors; the condition that holds for the `listed` keys, the
    staged ones, and for no other; the staged rows that are `gone`."""

    affected: str = ""
    listed: str = ""
    gone: Gone | None = None


@dataclass
class CurrentRun:
    """`query_sql` is the model's SELECT as Spark evaluates it. `relations` gives the rendered name of each symbolic relation:
    target, stage, state, state_stage. `ai_round` executes AI calls of one round and returns their outcome. `format`: that of the
    model's table, `state_format` of its state table, which had the version `state_found` when the run began. `providers`: of each source that keeps versions, what DESCRIBE names as its provider.
    `in_files`: the names in the schema of relations that only the first plan keeps in memory."""

    session: Session
    plan: Plan
    relations: Mapping[str, str]
    query_sql: str
    app_id: str
    as_of: str
    schema: str = ""
    model_id: str = ""
    invocation_id: str = ""
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    format: TableFormat = field(default_factory=Delta)
    state_format: TableFormat = field(default_factory=Delta)
    state_found: StateVersion | None = None
    providers: Mapping[str, str] = field(default_factory=dict)
    retains: bool = False  # versions of its sources, for the next run
    amend: Amendments = field(default_factory=lambda: Amendments(""))
    stamp: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)  # of the session, as long as the run goes on
    held: bool = False  # staged rows stay in memory
    feeds: Mapping[str, HeldFeed] = field(default_factory=dict)  # of changes that stay there in any case
    in_files: Mapping[str, str] = field(default_factory=dict)
    with_files: str = ""  # what DROP TABLE is told besides, of staged rows in the schema
    shows_keys: bool = True  # whether keys may stand in statements, commits and messages
    leftovers: tuple[str, ...] = ()
    follows: RunRecord | None = None  # of the last run that published
    columns_seen: tuple[Column, ...] = ()  # of the model's table, when the run looked
    in_the_way: str | None = None  # `view` or `table`: what the new table takes the place of
    ai_round: Callable[[Sequence[Any]], AiOutcome] | None = None
    on_ai_error: str = "null"
    staged: Staged = field(default_factory=Staged)
    statements: int = 0
    verb: str = "NO_OP"
    next_change_at: str | None = None
    state_version: StateVersion | None = None  # once this run has written to the state table
    ai: AiOutcome = field(default_factory=AiOutcome)
    broken: str = ""
    found: dict[str, Any] = field(default_factory=dict)  # by an audit
    sharing: bool = False  # the statement under way is for what is shared: if it fails, the run reads for itself
    moved: set[str] = field(default_factory=set)  # sources written to while this run read them
    key_texts: KeyTexts = field(default_factory=KeyTexts)
    looking: Future[Any] | None = None  # statements that are sent beside those of the steps
    asked: Future[Any] | None = None
    counting: Future[Any] | None = None  # of the rows that the clock takes

    @property
    def counts(self) -> Mapping[str, int]:
        """Rows by what became of them, as far as it is known."""
        return self.staged.counts

    def in_memory(self, relation: str) -> bool:
        """Whether its rows are, once they are staged."""
        return self.held or relation in self.feeds or relation in self.in_files or relation == FEED

    @property
    def ask(self) -> Ask:
        """For a look at tables beside the steps."""
        return Ask(self.statement, self.session.mv_spark())

    def settle(self) -> None:
        """Wait for the number of rows that the clock takes, if it is being counted. Only reports say it."""
        counting, self.counting = self.counting, None
        if counting is None:
            return
        try:
            self.staged = replace(self.staged, evicted=int(counting.result()[0]["evicted"]))
        except Exception as error:
            said = f"model {self.plan.model}: could not count which of the deleted rows the clock took: {first_line(error)}"
            self.session.warn(said)

    def example(self, key: Any) -> str:
        """A key, for a message."""
        return f"e.g. {key}" if self.shows_keys else "which are not shown (sensitive_key)"

    def statement(self, sql: str, send: Send | None = None) -> list[dict[str, Any]]:
        """Send a statement, and count it. Its rows, by column name."""
        self.statements += 1
        return (send or self.session.query)(sql)
