"""How Spark plans what a run sends. On small changes, planning takes longer than reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from spark_mv.query.incremental_tree import quoted

ADAPTIVE = "spark.sql.adaptive.enabled"
FEW_PARTITIONS = 32
"""Partitions of a shuffle up to which small data is not worth coalescing."""

logger = AdapterLogger("Spark")


@contextmanager
def planned_once(spark: Any) -> Iterator[None]:
    """A statement over few rows and one large table, planned before it runs and not again after each of its stages:
    Delta lists the files of a table that has deletion vectors twice each time (two cores, ten million rows: 1.3 instead
    of 1.8 seconds). Not on a cluster, whose shuffles need adaptive execution to be small."""
    conf = spark.conf if in_reach(spark) and spark.sparkContext.master.startswith("local") else None
    before = conf.get(ADAPTIVE) if conf is not None else "false"
    if conf is None or before != "true" or int(conf.get("spark.sql.shuffle.partitions")) > FEW_PARTITIONS:
        yield
        return
    conf.set(ADAPTIVE, "false")
    try:
        yield
    finally:
        conf.set(ADAPTIVE, before)


def look_ahead(spark: Any, table: str, column: str) -> Thread | None:
    """Let Delta list the table's files while other statements run: after a commit it builds the list anew for the first
    statement that needs it (0.2 to 0.5 seconds). Spark keeps the list; a failure is for that statement to report."""
    if not in_reach(spark):
        return None
    from pyspark.util import InheritableThread

    def look() -> None:
        try:
            spark.sql(f"explain select 1 from {table} where {quoted(column)} is not null")
        except Exception as error:
            logger.debug(f"could not list the files of {table} ahead: {error}")

    thread: Thread = InheritableThread(target=look, name="spark-mv-look-ahead", session=spark)
    thread.daemon = True
    thread.start()
    return thread


def in_reach(spark: Any) -> bool:
    """Whether the session's JVM belongs to this process: not behind Spark Connect, nor Thrift (None)."""
    return spark is not None and hasattr(spark, "sparkContext") and getattr(spark, "_jvm", None) is not None
