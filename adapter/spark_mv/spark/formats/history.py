"""What Delta's history tells: versions, the bookkeeping of our commits, and who else wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from spark_mv.maintenance.forget import ForgetRequest, waiting
from spark_mv.maintenance.record import RunRecord, SourceVersion, read_record, unless_copied
from spark_mv.spark.formats.commits import Query, Rows, commit_time, commits

CHANGED_COLUMNS = frozenset({"CHANGE COLUMN", "CHANGE COLUMNS"})
"""They give a column another type, which the columns themselves tell, or another description, as `persist_docs` does at each run of an
incremental model."""

KEEPS_ROWS = CHANGED_COLUMNS | frozenset(
    {
        "OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT", "COMPUTE STATS", "ANALYZE TABLE", "CLUSTER BY",
        "UPGRADE PROTOCOL", "REORG", "REORG TABLE UPGRADE UNIFORM", "SET TABLE COMMENT", "DOMAIN METADATA CLEANUP",
        "ROW TRACKING BACKFILL",
    }
)  # fmt: skip
"""Operations of Delta's history that leave the rows of a table as they are."""

FEW = (3, 20)
"""Commits to look at first, and next if there is no record among them."""


MAKES_ALL_ROWS = frozenset(
    {
        "CREATE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
        "REPLACE TABLE AS SELECT",
    }
)
"""Operations after which no row is left of what others wrote before."""
OURS = MAKES_ALL_ROWS | {"MERGE", "WRITE", "DELETE", "SET TBLPROPERTIES"}
"""Operations with which runs publish. What carries a record but is none of them (RESTORE, CLONE, …) is not ours."""


@dataclass(frozen=True)
class History:
    """The target's history as far as it matters: its newest version, the newest bookkeeping and its version, and the first
    operation since (or during) that run which changed rows and was not its own. `clean`: versions that hold our rows as our
    runs left them, best first; a row that the first has not is to be found in the next."""

    version: int
    record: RunRecord | None
    foreign_operation: str | None
    record_at: str = ""  # UTC
    record_version: int | None = None
    clean: tuple[int, ...] = ()
    forget: tuple[ForgetRequest, ...] = ()  # made since the version that the last run started from

    @property
    def intact(self) -> bool:
        return self.record is not None and self.foreign_operation is None


def latest_version(query: Query, table: str) -> SourceVersion | None:
    """The newest version of a Delta table, or None when its history is empty."""
    rows = commits(query, table, 1)
    return SourceVersion(int(rows[0]["version"]), commit_time(rows[0])) if rows else None


def last_change(query: Query, table: str) -> datetime | None:
    """When rows of a Delta table last changed, by the newest commit that can have changed any (UTC); None where no commit that is left
    has. Raises what Spark raises for a table that is none of Delta's."""
    for rows, _ in _looks(query, table):
        for row in rows:
            if row["operation"] not in KEEPS_ROWS:
                return datetime.fromisoformat(commit_time(row)).replace(tzinfo=timezone.utc)
    return None


def _looks(query: Query, table: str) -> Iterator[tuple[Rows, bool]]:
    """Ever more of the newest commits of a table, and whether they are all."""
    for few in FEW:
        rows = commits(query, table, few)
        yield rows, len(rows) < few
        if len(rows) < few:
            return
    yield query(f"describe history {table}"), True


def read_history(query: Query, table: str, model: str = "") -> History | None:
    """The target's history. Looks at the newest commits first and at all of them only if none carries a record of `model`
    (dbt's unique id; empty: of any)."""
    for rows, whole in _looks(query, table):
        if not rows:
            return None
        history = _history(rows, model)
        base = _honoured(history.record) if history.record else None
        reached = base is None or int(rows[-1]["version"]) <= base + 1
        if whole or (history.record is not None and reached):
            return history
    return None


def _honoured(record: RunRecord) -> int | None:
    return record.base_version if record.honoured is None else record.honoured


def _history(rows: Rows, model: str) -> History:
    foreign: str | None = None
    newest = int(rows[0]["version"])
    for position, row in enumerate(rows):
        older = rows[position + 1 :]
        record = _record(row, older, model)
        if record is not None:
            version = int(row["version"])
            if row["operation"] in MAKES_ALL_ROWS:
                metrics = entries(row.get("operationMetrics"))
                record = record.with_rows(metrics.get("numOutputRows"))
            base = record.base_version if record.base_version is not None else version - 1
            during = [str(r["operation"]) for r in older if int(r["version"]) > base]
            if row["operation"] in MAKES_ALL_ROWS:
                during = []
            others = [operation for operation in during if operation not in KEEPS_ROWS]
            clean = (base, version) if others else (version,)
            foreign = others[-1] if others else foreign
            done = record.honoured if record.honoured is not None else base
            since = [r["userMetadata"] for r in reversed(rows) if int(r["version"]) > done]
            return History(newest, record, foreign, commit_time(row), version, clean, waiting(since))
        if row["operation"] not in KEEPS_ROWS:
            foreign = str(row["operation"])
    return History(newest, None, foreign, forget=waiting(r["userMetadata"] for r in reversed(rows)))


def _record(row: Mapping[str, Any], older: Rows, model: str) -> RunRecord | None:
    """The record in a commit of ours: of this very model, and not the copy of another commit's."""
    record = read_record(row["userMetadata"])
    if record is None or row["operation"] not in OURS:
        return None
    if record.base_version is None and row["operation"] not in MAKES_ALL_ROWS:
        return None  # the copy of a first run's
    if model and record.model not in ("", model):
        return None
    return unless_copied(record, (r["userMetadata"] for r in older))


def entries(value: Any) -> Mapping[str, str]:
    """A map of the history (operationMetrics, operationParameters). Over Thrift it comes as text, with values that are not
    escaped: of a key that the text seems to hold more than once nothing is known, and it is left out.
    """
    if not isinstance(value, str):
        return value or {}
    found = re.findall(r'[{,]"(\w+)":"(.*?)"(?=,"\w+":"|\}$)', value)
    names = re.findall(r'"(\w+)":"', value)
    return {name: text for name, text in found if names.count(name) == 1}
