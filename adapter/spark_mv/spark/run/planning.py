"""How Spark plans what a run sends. On small changes, planning takes longer than reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from inspect import signature
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from spark_mv.query.analysis.column_subqueries import subquery_in_columns, subquery_in_union
from spark_mv.spark.formats.commits import Ask, Query, log_and_snapshot
from spark_mv.spark.formats.session_settings import session_setting
from spark_mv.spark.formats.turn import tagged
from spark_mv.spark.session.spark_settings import is_local

ADAPTIVE = "spark.sql.adaptive.enabled"
CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
EXCLUDED = "spark.sql.optimizer.excludedRules"
PUSHED = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.PushProjectionThrough{what}"
    for what in ("Union", "LimitAndOffset", "Limit")  # the last one before Spark 4
)
FEW_PARTITIONS = 32
"""Partitions of a shuffle up to which small data is not worth coalescing."""

logger = AdapterLogger("Spark")


def planned_once(spark: Any) -> dict[str, str]:
    """Settings for a statement over few rows and one large table, planned before it runs and not again after each of its stages:
    Delta lists the files of a table that has deletion vectors twice each time (two cores, ten million rows: 1.3 instead
    of 1.8 seconds). Not on a cluster, whose shuffles need adaptive execution to be small."""
    conf = spark.conf if in_reach(spark) and is_local(spark.sparkContext.master) else None
    if conf is None or conf.get(ADAPTIVE) != "true" or int(conf.get("spark.sql.shuffle.partitions")) > FEW_PARTITIONS:
        return {}
    return {ADAPTIVE: "false"}


def settings_for(query: Query, sql: str) -> dict[str, str]:
    """Settings of the session without which Spark does not plan what is asked of this query (its keys checked, the answers of its AI
    functions looked up), or plans another one, see query.analysis.column_subqueries."""
    if not subquery_in_columns(sql):
        return {}
    theirs = session_setting(query, EXCLUDED)
    settings = {EXCLUDED: f"{theirs},{PUSHED}" if theirs else PUSHED}
    return {CONSTRAINTS: "false", **settings} if subquery_in_union(sql) else settings


def set_for(adapter: Any, sql: str) -> None:
    """Make these settings for the rest of the session, in which others will ask."""
    for setting, value in settings_for(Ask(adapter.query, adapter.mv_spark()), sql).items():
        adapter.query(f"set {setting} = {value}")


@contextmanager
def planned_for(adapter: Any, sql: str) -> Iterator[None]:
    """These settings for what is asked meanwhile."""
    with tagged(adapter, settings_for(Ask(adapter.query, adapter.mv_spark()), sql)):
        yield


def look_ahead(spark: Any, table: str) -> Future[Any] | None:
    """Let Delta sum up the table's newest version while other statements run: every commit and every scan needs it, and the
    first one after a commit builds it anew (0.3 to 0.4 seconds). A failure is for those statements to report. None where the
    session is not in reach of a second thread."""
    return _beside(spark, f"summary of {table}", lambda: log_and_snapshot(spark, table)[1].numOfFiles())


def ask_ahead(spark: Any, sql: str) -> Future[Any] | None:
    """The rows of a statement that is sent while others run; None where the session is not in reach of a second thread."""
    return _beside(spark, sql, lambda: [row.asDict() for row in spark.sql(sql).collect()])


def _beside(spark: Any, what: str, work: Callable[[], Any]) -> Future[Any] | None:
    if not in_reach(spark):
        return None
    from pyspark.util import InheritableThread

    asked: Future[Any] = Future()

    def run() -> None:
        logger.debug(f"meanwhile: {what}")
        try:
            asked.set_result(work())
        except BaseException as error:  # it is raised to whoever wants the result
            logger.debug(f"meanwhile, without an answer: {error}")
            asked.set_exception(error)

    # before Spark 4 it takes no session: there, tags of a session's jobs are nothing that a thread inherits
    session = {"session": spark} if "session" in signature(InheritableThread.__init__).parameters else {}
    InheritableThread(target=run, name="spark-mv-ahead", daemon=True, **session).start()
    return asked


def in_reach(spark: Any) -> bool:
    """Whether the session's JVM belongs to this process: not behind Spark Connect, nor Thrift (None)."""
    return spark is not None and hasattr(spark, "sparkContext") and getattr(spark, "_jvm", None) is not None
