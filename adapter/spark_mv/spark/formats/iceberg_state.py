"""What an Iceberg table's snapshots tell of a model's state table."""

from __future__ import annotations

from dataclasses import replace

from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.record import unless_copied
from spark_mv.maintenance.state import StateFacts, StateRecord, StateVersion, earlier, read_state_record
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.iceberg_log import Log, keeps_rows, read_log
from spark_mv.spark.formats.iceberg_states import RECORD
from spark_mv.spark.formats.iceberg_target import LOOK
from spark_mv.spark.formats.state_rows import readable


def read_state(query: Query, table: str, columns: tuple[Column, ...]) -> StateFacts:
    """Facts about a state table that exists. One statement more where somebody else wrote to it. Its commits are compare-and-swap, so
    that no other writer can have come between a commit of ours and the version that it started from."""
    facts = StateFacts(True, columns)
    for few in LOOK:
        log = read_log(query, table, few)
        facts = _facts(log, columns)
        if facts.complete or len(log.snapshots) < few:
            break
    if facts.record is None or facts.foreign is None:
        return facts
    return replace(facts, readable=readable(query, table, facts.record_version, columns))


def newest_version(query: Query, table: str) -> StateVersion | None:
    """The state's newest version; its sequence number grows with each commit, also after a rollback."""
    return _facts(read_log(query, table, 1), ()).newest


def _record(log: Log, position: int) -> StateRecord | None:
    """That of a commit of ours, which a cherry-pick copies."""
    summary = log.snapshots[position].summary
    record = read_state_record(summary.get(RECORD))
    if record is None or "source-snapshot-id" in summary:
        return None
    return unless_copied(record, (s.summary.get(RECORD) for s in log.snapshots[position + 1 :]))


def _facts(log: Log, columns: tuple[Column, ...]) -> StateFacts:
    if log.newest is None:
        return StateFacts(True, columns)
    facts = StateFacts(True, columns, log.newest.id, number=log.newest.sequence)
    for position, snapshot in enumerate(log.snapshots):
        record = _record(log, position)
        if record is not None:
            foreign = facts.foreign or ("ALTER TABLE" if log.reshaped(snapshot) else None)
            older = ((log.snapshots[k].id, _record(log, k)) for k in range(position + 1, len(log.snapshots)))
            before = earlier(record, older)
            return replace(facts, record=record, record_version=snapshot.id, foreign=foreign, earlier=before)
        if not keeps_rows(snapshot):
            facts = replace(facts, foreign=snapshot.operation.upper())
    return facts
