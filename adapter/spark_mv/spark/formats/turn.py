"""Turns: of two writers that start from one state of a table, one publishes, and each of them knows whether it was it.

Delta skips, without a word, a write whose number is not above the last one of the same application, and refuses one of two
that are made at the same moment. So that no skipped write is taken for a published one, each commit carries the id of its
own run, and a run looks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from spark_mv.maintenance.errors import TurnTaken, first_line
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Query, commits
from spark_mv.spark.formats.session_settings import session_setting

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_USERS = (USER_METADATA, "spark.sql.optimizer.", "spark.sql.constraintPropagation.", "spark.sql.sources.")
"""Beginnings of settings that users make, too."""
LOOK_BACK = (1, 10, 100)
"""Commits among which a run looks for its own: others may have come after it."""
_LOST = re.compile(
    r"DELTA_CONCURRENT_|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|DELTA_MAX_COMMIT_RETRIES|"
    r"(Concurrent\w+|MetadataChanged|ProtocolChanged)Exception|(TABLE_OR_VIEW|DELTA_TABLE)_ALREADY_EXISTS"
)
"""What Delta and Spark say to the second of two writers."""


class TurnSession(Protocol):
    """What a turn needs of the adapter."""

    def query(self, sql: str) -> list[dict[str, Any]]: ...
    def warn(self, text: str) -> None: ...
    def mv_spark(self) -> Any: ...


@dataclass(frozen=True)
class Turn:
    """The right to make the commit that follows one state of `table`. `number` is the version of the last commit of this
    `application` plus 1, or where none is known that of the table's newest commit plus 1: who starts from the same commit
    of ours has the same number, whatever others wrote since. `metadata` is what the commit is to carry; `run_id` is part of
    it and of no other commit's."""

    table: str
    application: str
    number: int
    metadata: str
    run_id: str

    @property
    def settings(self) -> dict[str, str]:
        return {USER_METADATA: self.metadata, TXN_APP: self.application, TXN_VERSION: str(self.number)}


def take(
    turn: Turn,
    session: TurnSession,
    query: Query,
    write: Callable[[], object],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Make the turn's commit with the one statement that `write` sends, and prove that it was made. Raises TurnTaken where
    another writer came first; then nothing was written."""
    assert turn.run_id and turn.run_id in turn.metadata, turn
    try:
        with tagged(session, {**turn.settings, **(settings or {})}):
            write()
    except Exception as error:
        if _made_after_all(turn, query):
            session.warn(f"{turn.table}: published, though Spark reported: {first_line(error)}")
            return
        if _LOST.search(str(error)):
            raise TurnTaken(turn.table) from error
        raise
    if not made(turn, query):
        raise TurnTaken(turn.table)


def made(turn: Turn, query: Query) -> bool:
    """Whether the turn's commit is in the table's history."""
    for few in LOOK_BACK:
        rows = commits(query, turn.table, few)
        if any(turn.run_id in (row["userMetadata"] or "") for row in rows):
            return True
        if len(rows) < few or int(rows[-1]["version"]) <= turn.number:
            return False
    return False


def _made_after_all(turn: Turn, query: Query) -> bool:
    """An error may be that of work behind the commit, or of a connection that broke."""
    try:
        return made(turn, query)
    except Exception:  # the first error says more
        return False


@contextmanager
def tagged(session: TurnSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings for what is sent meanwhile, and afterwards what the user had set: they would hold for every later statement of the session."""
    conf = getattr(session.mv_spark(), "conf", None)
    before: dict[str, str | None] = {}
    try:
        for key, value in settings.items():
            before[key] = conf.get(key, None) if conf is not None else _set_by_user(session, key)
            if conf is not None:
                conf.set(key, value)
            else:
                _set(session, key, value)
        yield
    finally:
        for key, theirs in before.items():
            if conf is not None:
                conf.unset(key) if theirs is None else conf.set(key, theirs)
            elif theirs is None:
                session.query(f"reset {quoted(key)}")
            else:
                _set(session, key, theirs)


def _set(session: TurnSession, key: str, value: str) -> None:
    session.query(f"set {quoted(key)} = {quoted(value)}")


def _set_by_user(session: TurnSession, key: str) -> str | None:
    """The user's own value, where statements are all there is: others of these keys are the run's alone, and SET would tell their default."""
    return session_setting(session.query, key) or None if key.startswith(_USERS) else None
