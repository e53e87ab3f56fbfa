"""What Delta's history tells of a model's state table, and a copy that it tells the same of."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.record import unless_copied
from spark_mv.maintenance.state import PUBLISHED, StateFacts, StateRecord, earlier, read_state_record
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.spark.formats.commits import Query, Rows, commits
from spark_mv.spark.formats.history import KEEPS_ROWS
from spark_mv.spark.formats.state_rows import readable
from spark_mv.spark.formats.turn import USER_METADATA, TurnSession, tagged

CLONED_FROM = "spark_mv.cloned_from"

FEW = (3, 20)
"""Commits to look at first, as for the model's own table."""


def read_state(query: Query, table: str, columns: tuple[Column, ...]) -> StateFacts:
    """Facts about a state table that exists. A look at its log; one more statement where somebody else wrote to it."""
    for few in FEW:
        rows = commits(query, table, few)
        facts = _facts(rows, columns)
        if facts.complete or len(rows) < few:
            break
    else:
        facts = _facts(query(f"describe history {table}"), columns)
    if facts.record is None or facts.foreign is None:
        return facts
    return replace(facts, readable=facts.readable and readable(query, table, facts.record_version, columns))


def clone_state(session: TurnSession, source: str, copy: str) -> None:
    """Clones a model's state table beside a clone of the model's table, which names no state. The commit that Delta makes of a clone is nobody's;
    one behind it says whose draws they are."""
    session.query(f"create table {copy} shallow clone {source}")
    record = read_state(session.query, source, ()).record
    if record is not None:
        record = replace(record, made_for=PUBLISHED, base_version=None, run_id=uuid4().hex)
        with tagged(session, {USER_METADATA: record.to_json()}):
            session.query(f"alter table {copy} set tblproperties ({quote(CLONED_FROM)} = {quote(source)})")


def _record(rows: Rows, position: int) -> StateRecord | None:
    """That of a commit of ours; RESTORE and CLONE copy one."""
    record = read_state_record(rows[position]["userMetadata"])
    if record is None or rows[position]["operation"] in ("RESTORE", "CLONE"):
        return None
    return unless_copied(record, (r["userMetadata"] for r in rows[position + 1 :]))


def _facts(rows: Rows, columns: tuple[Column, ...]) -> StateFacts:
    newest = int(rows[0]["version"]) if rows else None
    foreign: str | None = None
    for position, row in enumerate(rows):
        record = _record(rows, position)
        if record is not None:
            older = ((int(rows[k]["version"]), _record(rows, k)) for k in range(position + 1, len(rows)))
            base = int(row["version"]) - 1 if record.base_version is None else record.base_version
            during = [str(r["operation"]) for r in rows[position + 1 :] if int(r["version"]) > base]
            others = [operation for operation in during if operation not in KEEPS_ROWS]
            made = "TABLE AS SELECT" in row["operation"]
            return StateFacts(
                True,
                columns,
                newest,
                record_version=int(row["version"]),
                record=record,
                foreign=foreign or (others[0] if others and not made else None),
                readable=made or not others,
                earlier=earlier(record, older),
            )
        if row["operation"] not in KEEPS_ROWS:
            foreign = str(row["operation"])
    return StateFacts(True, columns, newest, foreign=foreign)
