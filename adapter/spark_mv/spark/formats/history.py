"""What Delta's history tells: versions, the bookkeeping of our commits, and who else wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_mv.maintenance.record import RunRecord, SourceVersion, read_record
from spark_mv.spark.formats.commits import Query, Rows, commit_time, commits

KEEPS_ROWS = frozenset(
    {
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "COMPUTE STATS",
        "ANALYZE TABLE",
        "CLUSTER BY",
        "UPGRADE PROTOCOL",
        "REORG",
        "REORG TABLE UPGRADE UNIFORM",
        "SET TABLE COMMENT",
        "DOMAIN METADATA CLEANUP",
        "ROW TRACKING BACKFILL",
    }
)
"""Operations of Delta's history that leave the rows of a table as they are."""

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
FEW = (3, 20)
"""Commits to look at first, and next if there is no record among them."""


@dataclass(frozen=True)
class History:
    """The target's history as far as it matters: its newest version, the newest bookkeeping, and the first operation
    since (or during) that run which changed rows and was not ours."""

    version: int
    record: RunRecord | None
    foreign_operation: str | None
    record_at: str = ""  # UTC

    @property
    def intact(self) -> bool:
        return self.record is not None and self.foreign_operation is None


def latest_version(query: Query, table: str) -> SourceVersion | None:
    """The newest version of a Delta table, or None when its history is empty."""
    rows = commits(query, table, 1)
    return SourceVersion(int(rows[0]["version"]), commit_time(rows[0])) if rows else None


def read_history(query: Query, table: str) -> History | None:
    """The target's history. Looks at the newest commits first and at all of them only if none carries a record."""
    for few in FEW:
        rows = commits(query, table, few)
        if not rows:
            return None
        history = _history(rows)
        base = history.record.base_version if history.record else None
        reached = base is None or int(rows[-1]["version"]) <= base + 1
        if (history.record is not None and reached) or len(rows) < few:
            return history
    return history if history.record is not None and reached else _history(query(f"describe history {table}"))


def _history(rows: Rows) -> History:
    foreign: str | None = None
    for position, row in enumerate(rows):
        record = read_record(row["userMetadata"])
        if record is not None:
            base = record.base_version if record.base_version is not None else int(row["version"]) - 1
            during = [r for r in rows[position + 1 :] if int(r["version"]) > base]
            for other in during:
                if other["operation"] not in KEEPS_ROWS and not other["userMetadata"]:
                    foreign = str(other["operation"])
            return History(int(rows[0]["version"]), record, foreign, commit_time(row))
        if row["operation"] not in KEEPS_ROWS:
            foreign = str(row["operation"])
    return History(int(rows[0]["version"]), None, foreign)


def entries(value: Any) -> Mapping[str, str]:
    """A map of the history (operationMetrics, operationParameters). Over Thrift it comes as text, with values that are not
    escaped: of a key that the text seems to hold more than once nothing is known, and it is left out.
    """
    if not isinstance(value, str):
        return value or {}
    found = re.findall(r'[{,]"(\w+)":"(.*?)"(?=,"\w+":"|\}$)', value)
    names = re.findall(r'"(\w+)":"', value)
    return {name: text for name, text in found if names.count(name) == 1}


def quoted(table: str) -> str:
    """The name of a table (parts joined by dots) for a statement."""
    return ".".join(f"`{part}`" for part in table.split("."))
