"""Runs on an Iceberg table: what its snapshots tell of earlier runs, and how one publishes.

A run writes to a branch made at the snapshot that it started from; the branch's last snapshot carries the record, and main is moved
forward to it in one step that Iceberg refuses once main has moved. So of two runs that start from one state one publishes,
several statements show at once, and a run that was killed leaves a branch that nobody reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from spark_mv.maintenance.errors import TurnTaken, first_line
from spark_mv.maintenance.forget import waiting
from spark_mv.maintenance.record import RunRecord, read_record, unless_copied
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.history import History
from spark_mv.spark.formats.iceberg_aside import refuse_aside, refuse_made_aside
from spark_mv.spark.formats.iceberg_branches import (
    HELD,
    MAIN,
    RELEASED,
    Branches,
    Tip,
    again,
    branches_of,
    check_base,
    refuse_held,
)
from spark_mv.spark.formats.iceberg_log import BRANCHED, Log, Snapshot, keeps_rows, loaded_table, read_log
from spark_mv.spark.formats.iceberg_states import CLAIM, RECORD, judged, states_since
from spark_mv.spark.formats.table_format import Publishing
from spark_mv.spark.formats.turn import TurnSession, tagged
from spark_mv.spark.session.ended import connection_is_lost

SETTING = f"spark.sql.iceberg.snapshot-property.{RECORD}"
"""Setting with which Iceberg gives the snapshots of a statement that property. A DELETE that only drops files takes no notice."""
CLAIMED = f"spark.sql.iceberg.snapshot-property.{CLAIM}"
BY_STATEMENT = f"spark.sql.iceberg.snapshot-property.{BRANCHED}"
BRANCH = "mv_"
UNDO = 10
"""How often a table that somebody else commits to is put back before that is given up."""
_LOST = re.compile(
    r"CommitFailedException|Cannot commit|not an ancestor|stale|ValidationException|ALREADY_EXISTS|AlreadyExists|already exists|"
    r"branch \(does not exist\)",
    re.IGNORECASE,
)
"""What Iceberg says to the second of two writers."""
LOOK = (5, 100, 100_000)
"""Snapshots to look at first, and next if there is no record among them."""


def branch_of(table: str, stamp: str) -> str:
    """The branch of a run, as statements write to it."""
    return f"{table}.branch_{BRANCH}{stamp}"


def read_history(query: Query, table: str, model: str) -> History | None:
    """See TableFormat.history."""
    refuse_aside(query, table)
    for few in LOOK:
        log = read_log(query, table, few)
        history = _history(log, model)
        if history is None or history.record is not None or len(log.snapshots) < few:
            return history
    return history


def _history(log: Log, model: str) -> History | None:
    """A snapshot after ours that wrote rows is somebody else's; so are columns that are others now, of which Iceberg makes no snapshot.
    None without a snapshot."""
    if log.newest is None:
        return None
    foreign: str | None = None
    for position, snapshot in enumerate(log.snapshots):
        record = _record(snapshot, log.snapshots[position + 1 :], model)
        if record is not None:
            if record.base_version is None:
                record = record.with_rows(snapshot.summary.get("total-records"))
            done = record.base_version if record.honoured is None else record.honoured
            if foreign is None and log.reshaped(snapshot):
                foreign = "ALTER TABLE"
            if (left := _left_behind(log, snapshot, model)) is not None:
                of_it, last = left
                return History(log.newest.id, last, "ROLLBACK", of_it.at, of_it.id, (of_it.id,), _requests(log, done))
            return History(
                log.newest.id, record, foreign, snapshot.at, snapshot.id, (snapshot.id,), _requests(log, done)
            )
        if not keeps_rows(snapshot):
            foreign = snapshot.operation.upper()
    return History(log.newest.id, None, foreign, forget=_requests(log, None))


def _left_behind(log: Log, snapshot: Snapshot, model: str) -> tuple[Snapshot, RunRecord] | None:
    """The last snapshot that a run of ours made main, and its record, where main was put back behind it since, to `snapshot` or one that
    follows it: the values that this run kept are those to keep. Where the table was made anew, it may have been put back by a run itself."""
    for later in log.left:
        if later.at > snapshot.at and CLAIM not in later.summary and (record := _record(later, (), model)) is not None:
            rows = later.summary.get("total-records")
            return later, record.with_rows(rows) if record.base_version is None else record
    return None


def _requests(log: Log, done: int | None) -> Any:
    texts = []
    for snapshot in log.snapshots:
        if snapshot.id == done:
            break
        texts.append(snapshot.summary.get(RECORD))
    return waiting(reversed(texts))


def last_change(query: Query, table: str) -> datetime | None:
    """See TableFormat.last_change."""
    for few in LOOK:
        log = read_log(query, table, few)
        written = next((snapshot for snapshot in log.snapshots if not keeps_rows(snapshot)), None)
        if written is not None or len(log.snapshots) < few:
            return datetime.fromisoformat(written.at).replace(tzinfo=timezone.utc) if written is not None else None
    return None


def _record(snapshot: Snapshot, older: tuple[Snapshot, ...], model: str) -> RunRecord | None:
    """The record of a snapshot of ours: of this very model, and not the copy of another snapshot's."""
    record = read_record(snapshot.summary.get(RECORD))
    if record is None or (model and record.model not in ("", model)) or "source-snapshot-id" in snapshot.summary:
        return None
    return unless_copied(record, (s.summary.get(RECORD) for s in older))


def publish(asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object]) -> None:
    """Make the commit. Raises TurnTaken where another writer came first."""
    settings = {SETTING: asked.turn.metadata}
    refuse_aside(query, asked.turn.table, asked.base is not None or not asked.anew, asked.properties)
    try:
        if asked.anew:
            _make(asked, session, query, write, settings)
        else:
            _through_branch(asked, session, query, write, settings)
    except Exception as error:
        if not isinstance(error, TurnTaken) and not asked.part and _is_published(asked, query):
            session.warn(f"{asked.turn.table}: published, though Spark reported: {first_line(error)}")
            return
        _drop_own(asked, session, query)
        if _LOST.search(str(error)) and not isinstance(error, TurnTaken):
            raise TurnTaken(asked.turn.table) from error
        raise
    # from a base, Iceberg itself has compared; and who comes right after this run may have taken its snapshot out of the history
    if asked.base is None and not asked.part and not _is_published(asked, query):
        refuse_made_aside(query, asked.turn.table)
        raise TurnTaken(asked.turn.table)


def _through_branch(
    asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object], settings: dict[str, str]
) -> None:
    table, name = asked.turn.table, BRANCH + asked.branch
    to = branch_of(table, asked.branch)
    branches = branches_of(session, query, table)
    if branches.tip(name) is None:
        _make_branch(branches, name, asked, session)
    if not branches.undoes:
        settings = {**settings, BY_STATEMENT: asked.turn.run_id}
    with tagged(session, settings):
        write()
    if asked.part:
        return
    if asked.turn.run_id not in _end_of_branch(branches, name, asked).record:
        with tagged(session, settings):
            query(f"insert into {to} select * from {to} where false")
    _move_main(branches, name, asked)


def _make_branch(branches: Branches, name: str, asked: Publishing, session: TurnSession) -> None:
    for left in sorted(branches.names()):
        if left.startswith(BRANCH) and asked.dead(left.removeprefix(BRANCH)):  # it keeps snapshots from expiring
            _drop_branch(branches, left, asked.turn.table, session)

    def make() -> None:
        check_base(branches, asked.turn.table, asked.base)
        refuse_held(branches, asked.turn.table, asked.base, asked.dead)
        branches.make(name, asked.base)

    again(make)


def _end_of_branch(branches: Branches, name: str, asked: Publishing) -> Tip:
    """The branch's last snapshot. Who makes the table anew meanwhile takes the branch away."""
    branches.look()
    found = branches.tip(name)
    if found is None:
        raise TurnTaken(asked.turn.table)
    return found


def _move_main(branches: Branches, name: str, asked: Publishing) -> None:
    """One commit of metadata, which Iceberg makes only where main is still what it was: the base is behind the branch."""

    def move() -> None:
        check_base(branches, asked.turn.table, asked.base)
        branches.move_main(name)

    again(move)


def _make(
    asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object], settings: dict[str, str]
) -> None:
    """CREATE TABLE fails where there is a table. CREATE OR REPLACE does not look at what it replaces: an empty commit claims the
    table first, so that whoever else started from the same state is too late. Who starts from the claim is found out afterwards, or
    where that cannot be done, may not publish."""
    if asked.base is None:
        with tagged(session, settings):
            write()
        return
    table, name, claim = asked.turn.table, BRANCH + asked.branch, {CLAIMED: asked.turn.run_id}
    branches = branches_of(session, query, table)
    _make_branch(branches, name, asked, session)
    to, held = branch_of(table, asked.branch), {} if branches.undoes else {HELD: asked.branch}
    with tagged(session, {**claim, **held}):
        query(f"insert into {to} select * from {to} where false")
    claimed = _end_of_branch(branches, name, asked).id
    since = _metadata(session, table) if branches.undoes else None
    _move_main(branches, name, asked)
    if not branches.undoes:
        return _replace_held(asked, session, query, write, {**settings, **claim})
    with tagged(session, {**settings, **claim}):
        write()
    for _ in range(UNDO):
        try:
            return _undo_unless_next(asked, session, query, claimed, since)
        except Exception as error:  # somebody has made a commit meanwhile, if only of a branch
            if isinstance(error, TurnTaken) or not _LOST.search(str(error)):
                raise
    raise TurnTaken(table)


def _replace_held(
    asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object], settings: dict[str, str]
) -> None:
    """Make the table anew, and let go of it where that fails. Not where it is not known what became of the statement, which may still be
    at work: then the table stays held until the run counts as dead."""
    try:
        with tagged(session, settings):
            write()
    except Exception as error:
        if not connection_is_lost(error) and not _is_published(asked, query):
            table = asked.turn.table
            with tagged(session, {HELD: RELEASED}):
                query(f"insert into {table} select * from {table} where false")
        raise


def _metadata(session: TurnSession, table: str) -> Any:
    return loaded_table(session.mv_spark(), table).operations().current()


def _undo_unless_next(asked: Publishing, session: TurnSession, query: Query, claimed: int, since: Any) -> None:
    """Raises TurnTaken where a run that started from the claim published before the table was replaced; the table is put back, its
    columns and layout included. What others do once it is replaced takes nothing from this run, and is not undone."""
    table, spark = asked.turn.table, session.mv_spark()
    loaded = loaded_table(spark, table)
    operations = loaded.operations()
    now = operations.current()
    ours, before = judged(states_since(since, now, operations.io(), session), asked.turn.run_id)
    if ours is None:
        raise TurnTaken(table)
    newest = before.currentSnapshot()
    if newest is not None and int(newest.snapshotId()) == claimed:
        branches = branches_of(session, query, table)
        for name in _revived(ours, before):
            _drop_branch(branches, name, table, session)
        return
    if now.currentSnapshot() is None or now.currentSnapshot().snapshotId() != ours.currentSnapshot().snapshotId():
        raise TurnTaken(table)
    operations.commit(now, before)
    loaded.refresh()
    if newest is not None and loaded.currentSnapshot().snapshotId() != newest.snapshotId():
        # a REST catalogue is sent changes, of which metadata that was read has none
        loaded.manageSnapshots().setCurrentSnapshot(newest.snapshotId()).commit()
    raise TurnTaken(table)


def _revived(then: Any, before: Any) -> list[str]:
    """CREATE OR REPLACE writes the branches that there were when it began: also those that other runs have dropped since."""
    names = {str(name) for name in then.refs().keySet()} - {str(name) for name in before.refs().keySet()}
    return sorted(name for name in names if name.startswith(BRANCH))


def _is_published(asked: Publishing, query: Query) -> bool:
    try:
        log = read_log(query, asked.turn.table, LOOK[1])
    except Exception:  # no such table; the first error says more
        return False
    return any(asked.turn.run_id in snapshot.summary.get(RECORD, "") for snapshot in log.snapshots)


def _drop_own(asked: Publishing, session: TurnSession, query: Query) -> None:
    """What is left of a run that has not published."""
    table, name = asked.turn.table, BRANCH + asked.branch
    try:
        branches = branches_of(session, query, table)
    except Exception:  # no such table any more
        return
    if name in branches.names():
        _drop_branch(branches, name, table, session)


def _drop_branch(branches: Branches, name: str, table: str, session: TurnSession) -> None:
    """A branch that stays is no harm: nobody reads it."""

    def drop() -> None:
        branches.look()
        if name in branches.names():
            branches.drop(name)

    try:
        again(drop)
    except Exception as error:
        with suppress(Exception):  # no such table any more
            branches.look()
            if name not in branches.names():
                return  # another run has dropped it
        session.warn(f"{table}: the branch {name} could not be dropped: {first_line(error)}")


def say_with_a_commit(session: TurnSession, query: Query, table: str, text: str) -> None:
    """A commit that writes nothing and carries `text`. Raises RunFailed where a run that makes the table anew may overwrite it."""
    refuse_aside(query, table)
    _refuse_held(session, query, table)
    with tagged(session, {SETTING: text}):
        query(f"insert into {table} select * from {table} where false")
    _refuse_held(session, query, table)  # it may have come between


def _refuse_held(session: TurnSession, query: Query, table: str) -> None:
    branches = branches_of(session, query, table)
    main = branches.tip(MAIN)
    refuse_held(branches, table, None if main is None else main.id)
