"""Runs on an Iceberg table: what its snapshots tell of earlier runs, and how one publishes.

A run writes to a branch made at the snapshot that it started from; the branch's last snapshot carries the record, and main is moved
forward to it in one step that Iceberg refuses once main has moved. So of two runs that start from one state one publishes,
several statements show at once, and a run that was killed leaves a branch that nobody reads.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any

from spark_mv.maintenance.errors import TurnTaken, first_line
from spark_mv.maintenance.forget import waiting
from spark_mv.maintenance.record import RunRecord, read_record
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.history import History
from spark_mv.spark.formats.iceberg_aside import refuse_aside, refuse_made_aside
from spark_mv.spark.formats.iceberg_log import Log, Snapshot, loaded_table, read_log
from spark_mv.spark.formats.iceberg_states import CLAIM, RECORD, judged, states_since
from spark_mv.spark.formats.table_format import Publishing
from spark_mv.spark.formats.turn import TurnSession, tagged

SETTING = f"spark.sql.iceberg.snapshot-property.{RECORD}"
"""Setting with which Iceberg gives the snapshots of a statement that property. A DELETE that only drops files takes no notice."""
CLAIMED = f"spark.sql.iceberg.snapshot-property.{CLAIM}"
BRANCH = "mv_"
UNDO = 10
"""How often a table that somebody else commits to is put back before that is given up."""
_LOST = re.compile(
    r"CommitFailedException|Cannot commit|not an ancestor|stale|ValidationException|ALREADY_EXISTS|AlreadyExists|already exists|"
    r"branch \(does not exist\)",
    re.IGNORECASE,
)
"""What Iceberg says to the second of two writers."""
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before a change of branches is tried again."""
_WRITTEN = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
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
            return History(
                log.newest.id, record, foreign, snapshot.at, snapshot.id, (snapshot.id,), _requests(log, done)
            )
        if not keeps_rows(snapshot):
            foreign = snapshot.operation.upper()
    return History(log.newest.id, None, foreign, forget=_requests(log, None))


def _requests(log: Log, done: int | None) -> Any:
    texts = []
    for snapshot in log.snapshots:
        if snapshot.id == done:
            break
        texts.append(snapshot.summary.get(RECORD))
    return waiting(reversed(texts))


def keeps_rows(snapshot: Snapshot) -> bool:
    """Whether a snapshot leaves the rows as they are: compaction, or a commit that wrote nothing."""
    return snapshot.operation == "replace" or not any(int(snapshot.summary.get(key, "0")) for key in _WRITTEN)


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
    copied = any(record.run_id in s.summary.get(RECORD, "") for s in older)
    return None if copied else record


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
        _drop_branches(asked.turn.table, session, [BRANCH + asked.branch])
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
    loaded = loaded_table(session.mv_spark(), table)
    if loaded.snapshot(name) is None:
        _make_branch(loaded, name, asked, session)
    with tagged(session, settings):
        write()
    if asked.part:
        return
    end = _end_of_branch(loaded_table(session.mv_spark(), table), name, asked)
    if asked.turn.run_id not in str(end.summary().get(RECORD) or ""):
        with tagged(session, settings):
            query(f"insert into {to} select * from {to} where false")
    loaded = loaded_table(session.mv_spark(), table)
    _move_main(loaded, name, asked)


def _make_branch(loaded: Any, name: str, asked: Publishing, session: TurnSession) -> None:
    if dead := _dead(loaded, asked):
        _drop_branches(asked.turn.table, session, dead)

    def make() -> None:
        _check_base(loaded, asked)
        manage = loaded.manageSnapshots()
        (manage.createBranch(name) if asked.base is None else manage.createBranch(name, asked.base)).commit()

    _again(make)


def _check_base(loaded: Any, asked: Publishing) -> None:
    """Raises TurnTaken where main is not what the run started from any more."""
    loaded.refresh()
    current = loaded.currentSnapshot()
    if (None if current is None else int(current.snapshotId())) != asked.base:
        raise TurnTaken(asked.turn.table)


def _again(change: Callable[[], None]) -> None:
    """A change of branches that Iceberg has refused for the sake of another commit of metadata, if only of a branch, is made again: its own
    second try of such a change always fails ("Table metadata refresh is required"). The change looks itself whether it may still be made."""
    for pause in _PAUSES:
        try:
            return change()
        except Exception as error:
            if "CommitFailedException" not in str(error) or "CommitStateUnknown" in str(error):
                raise
            time.sleep(pause * random.uniform(0.5, 1.0))
    change()


def _end_of_branch(loaded: Any, name: str, asked: Publishing) -> Any:
    """The branch's last snapshot. Who makes the table anew meanwhile takes the branch away."""
    found = loaded.snapshot(name)
    if found is None:
        raise TurnTaken(asked.turn.table)
    return found


def _move_main(loaded: Any, name: str, asked: Publishing) -> None:
    """One commit of metadata, which Iceberg makes only where main is still what it was: the base is behind the branch."""

    def move() -> None:
        _check_base(loaded, asked)
        loaded.manageSnapshots().fastForwardBranch("main", name).removeBranch(name).commit()

    _again(move)


def _make(
    asked: Publishing, session: TurnSession, query: Query, write: Callable[[], object], settings: dict[str, str]
) -> None:
    """CREATE TABLE fails where there is a table. CREATE OR REPLACE does not look at what it replaces: an empty commit claims the
    table first, so that whoever else started from the same state is too late."""
    if asked.base is None:
        with tagged(session, settings):
            write()
        return
    table, name, claim = asked.turn.table, BRANCH + asked.branch, {CLAIMED: asked.turn.run_id}
    loaded = loaded_table(session.mv_spark(), table)
    _make_branch(loaded, name, asked, session)
    to = branch_of(table, asked.branch)
    with tagged(session, claim):
        query(f"insert into {to} select * from {to} where false")
    loaded = loaded_table(session.mv_spark(), table)
    claimed = int(_end_of_branch(loaded, name, asked).snapshotId())
    since = loaded.operations().current()
    _move_main(loaded, name, asked)
    with tagged(session, {**settings, **claim}):
        write()
    for _ in range(UNDO):
        try:
            return _undo_unless_next(asked, session, claimed, since)
        except Exception as error:  # somebody has made a commit meanwhile, if only of a branch
            if isinstance(error, TurnTaken) or not _LOST.search(str(error)):
                raise
    raise TurnTaken(table)


def _undo_unless_next(asked: Publishing, session: TurnSession, claimed: int, since: Any) -> None:
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
        _drop_branches(table, session, _revived(ours, before))
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


def _drop_branches(table: str, session: TurnSession, names: Iterable[str]) -> None:
    """What is left of runs that have not published. A branch that stays is no harm: nobody reads it."""
    for name in names:
        try:
            _again(lambda: loaded_table(session.mv_spark(), table).manageSnapshots().removeBranch(name).commit())  # noqa: B023
        except Exception as error:
            if name not in _refs(session, table):
                continue  # another run has dropped it
            session.warn(f"{table}: the branch {name} could not be dropped: {first_line(error)}")


def _refs(session: TurnSession, table: str) -> list[str]:
    """The names of the table's branches and tags; none where there is no such table any more."""
    try:
        return [str(name) for name in loaded_table(session.mv_spark(), table).refs().keySet()]
    except Exception:
        return []


def _dead(loaded: Any, asked: Publishing) -> list[str]:
    """The branches that dead runs have left: they keep snapshots from expiring."""
    names = sorted(str(name) for name in loaded.refs().keySet())
    return [name for name in names if name.startswith(BRANCH) and asked.dead(name.removeprefix(BRANCH))]


def say_with_a_commit(session: TurnSession, query: Query, table: str, text: str) -> None:
    """A commit that writes nothing and carries `text`."""
    refuse_aside(query, table)
    with tagged(session, {SETTING: text}):
        query(f"insert into {table} select * from {table} where false")
