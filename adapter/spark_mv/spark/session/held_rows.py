"""Rows that are held in memory for the length of a run, where otherwise they would be written to a staging table.

`CREATE TABLE name USING memory AS query` is no statement of Spark's. Here it evaluates the query once, as writing its rows to a table
does, and no later statement evaluates any of it again: a local checkpoint cuts off how the rows came to be, so that rows that are
lost are an error and never drawn a second time. What memory has no room for goes to disk. Only in a Spark whose tasks run in the
driver's own process: elsewhere the rows would be lost with an executor. DROP TABLE lets go of them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from spark_mv.spark.session.jvm import jvm_class, static

_HOLD = re.compile(r"\s*create table (`(?:[^`]|``)+`) using memory as\s", re.IGNORECASE)
_DROP = re.compile(r"\s*drop table if exists (`(?:[^`]|``)+`)\s*$", re.IGNORECASE)
LEAST = 128
"""The least size in bytes that is told to Spark."""
_rows: dict[str, Any] = {}
"""The plans of what is held, by name. Names carry the stamp of their run."""


def can_hold(spark: Any) -> bool:
    """Whether rows can be held: a session whose JVM belongs to this process and runs its own tasks."""
    inside = spark is not None and hasattr(spark, "sparkContext") and getattr(spark, "_jvm", None) is not None
    return inside and re.match(r"local($|\[)", spark.sparkContext.master) is not None


def held(spark: Any, sql: str) -> bool:
    """Whether the statement is one of the two for held rows; then it has been executed."""
    made = _HOLD.match(sql)
    if made:
        _hold(spark, made[1], sql[made.end() :])
        return True
    dropped = _DROP.match(sql)
    rows = _rows.pop(_name(dropped[1]), None) if dropped else None
    if dropped is None or rows is None:
        return False
    spark.catalog.dropTempView(_name(dropped[1]))
    rows.rdd().unpersist(False)
    return True


def can_show(spark: Any) -> bool:
    """Whether rows that one session holds can be made known to others: by classes of Spark 4."""
    return int(str(spark.version).split(".", 1)[0]) >= 4


def show(spark: Any, quoted: str) -> bool:
    """Make held rows known to another session of their Spark by the same name. Whether that could be done."""
    rows = _rows.get(_name(quoted))
    frame = _sized(spark, rows) if rows is not None else None
    if frame is None:
        return False
    try:
        frame.createOrReplaceTempView(quoted)
    except Exception:
        return False
    return True


def hide(spark: Any, quoted: str) -> None:
    """The session forgets the name, if it is still there; the rows stay."""
    with suppress(Exception):
        spark.catalog.dropTempView(_name(quoted))


def let_go(quoted: str) -> None:
    """Let go of rows that no session has a name for, if there are any. Their Spark may have ended."""
    rows = _rows.pop(_name(quoted), None)
    if rows is not None:
        with suppress(Exception):
            rows.rdd().unpersist(False)


def _hold(spark: Any, quoted: str, query: str) -> None:
    frame = spark.sql(query).localCheckpoint(eager=True)._jdf
    rows = frame.queryExecution().analyzed()
    (_sized(spark, rows) or frame).createTempView(quoted)
    _rows[_name(quoted)] = rows


def _sized(spark: Any, rows: Any) -> Any:
    """The held rows with their true size: Spark would keep the estimate for the query that they came from, and not broadcast a
    handful of rows. None where another Spark has other classes; then the estimate stays."""
    try:
        session = spark._jsparkSession
        # py4j turns Scala's numbers into Python's: statistics of as many bytes are those of a range of longs
        alike = spark.range(_bytes(spark, rows.rdd().id()) // 8).selectExpr("id + 1 as held")
        size = alike._jdf.queryExecution().analyzed().stats()
        option = static(spark, "scala.Option", "apply")
        known, none = option(size), option(None)
        plan = jvm_class(spark, "org.apache.spark.sql.execution.LogicalRDD")(
            *(rows.output(), rows.rdd(), rows.outputPartitioning(), rows.outputOrdering()),
            *(False, none, session, known, none),
        )
        return static(spark, "org.apache.spark.sql.classic.Dataset", "ofRows")(session, plan)
    except Exception:
        return None


def _bytes(spark: Any, number: int) -> int:
    for info in spark.sparkContext._jsc.sc().getRDDStorageInfo():
        if info.id() == number:
            return max(int(info.memSize()) + int(info.diskSize()), LEAST)
    raise LookupError(number)


def _name(quoted: str) -> str:
    return quoted[1:-1].replace("``", "`")
