"""The newest commits of a Delta table, newest first, with the columns of DESCRIBE HISTORY that a run looks at.

DESCRIBE HISTORY starts a Spark job to read a few small files (0.2 to 0.5 s). Where the JVM of the session is in reach,
the same files are read through Delta's own classes instead (0.02 s); over Spark Connect or Thrift the statement is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from spark_mv.spark.session.jvm import PART, jvm_class, static, text_in_parts
from spark_mv.spark.session.session_catalogue import table_identifier

Rows = Sequence[Mapping[str, Any]]
Query = Callable[[str], Rows]


@dataclass(frozen=True)
class Ask:
    """Sends statements, and knows the session behind them (None: not in this process)."""

    sql: Query
    spark: Any = None

    def __call__(self, sql: str) -> Rows:
        return self.sql(sql)


def commits(query: Query, table: str, limit: int) -> Rows:
    """Up to `limit` commits: version, timestamp, operation, operationParameters, operationMetrics, userMetadata. `table`
    is quoted. Raises what Spark raises for a table that is none of Delta's."""
    spark = getattr(query, "spark", None)
    rows = from_log(spark, table, limit) if spark is not None else None
    return query(f"describe history {table} limit {limit}") if rows is None else rows


def from_log(spark: Any, table: str, limit: int) -> Rows | None:
    """The commits from the table's log, or None where the log cannot be read this way."""
    try:
        log, snapshot = log_and_snapshot(spark, table)
        newest, path, store = snapshot.version(), log.logPath(), log.store()
        conf = log.newDeltaHadoopConf()
        files = path.getFileSystem(conf)
        commit_info = static(spark, "org.apache.spark.sql.delta.DeltaHistoryManager", "getCommitInfoOpt")
        path_of = jvm_class(spark, "org.apache.hadoop.fs.Path")
        if newest < 0:
            return None
        rows: list[dict[str, Any]] = []
        for version in range(newest, max(newest - limit, -1), -1):
            file = path_of(path, f"{version:020d}.json")
            if rows and not files.exists(file):
                break  # cleaned up: the history ends here
            status = files.getFileStatus(file)
            info = _info(spark, commit_info(store, file, conf).get(), status.getLen())
            millis = info.get("inCommitTimestamp")
            if millis is None:
                millis = snapshot.timestamp() if version == newest else status.getModificationTime()
            rows.append(
                {
                    "version": version,
                    "timestamp": datetime.fromtimestamp(millis / 1000),
                    "operation": info["operation"],
                    "operationParameters": {k: _text(v) for k, v in (info.get("operationParameters") or {}).items()},
                    "operationMetrics": info.get("operationMetrics") or {},
                    "userMetadata": info.get("userMetadata"),
                }
            )
        return rows
    except Exception:  # no JVM here, another Delta, no table of Delta's: the statement says what is the matter
        return None


def _info(spark: Any, commit: Any, length: int) -> Mapping[str, Any]:
    """The commitInfo of a commit whose file has so many bytes. It holds the condition of a REPLACE ON, with all keys that went."""
    if length < PART:
        text = commit.json()
    else:
        mapper = static(spark, "org.apache.spark.sql.delta.util.JsonUtils", "mapper")()
        writer = jvm_class(spark, "java.io.StringWriter")()
        ascii_only = mapper.getFactory().createGenerator(writer).setHighestNonEscapedChar(127)
        mapper.writeValue(ascii_only, commit.wrap())
        text = text_in_parts(writer)
    return json.loads(text)["commitInfo"]


_SEEN: ContextVar[dict[tuple[int, str], tuple[Any, Any]] | None] = ContextVar("_SEEN", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """Meanwhile this thread lists the log of a table once for all questions (16 ms each), and they are answered of one version. For a look in which
    nothing is written."""
    before = _SEEN.set({})
    try:
        yield
    finally:
        _SEEN.reset(before)


def log_and_snapshot(spark: Any, table: str) -> tuple[Any, Any]:
    """Delta's own objects for the log of a table and its newest version. Raises where the JVM or Delta's classes are not in
    reach, or the table is none of Delta's, or of another catalogue."""
    seen = _SEEN.get()
    if seen is None:
        return _log_and_snapshot(spark, table)
    asked = id(spark), table
    if asked not in seen:
        seen[asked] = _log_and_snapshot(spark, table)
    return seen[asked]


def _log_and_snapshot(spark: Any, table: str) -> tuple[Any, Any]:
    name = table_identifier(spark, table)
    found = static(spark, "org.apache.spark.sql.delta.DeltaLog", "forTableWithSnapshot")(spark._jsparkSession, name)
    return found._1(), found._2()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def commit_time(row: Mapping[str, Any]) -> str:
    """The time of a commit as UTC text. Rows carry it in the local time of this process."""
    moment = row["timestamp"]
    if not isinstance(moment, datetime):
        return str(moment)
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
