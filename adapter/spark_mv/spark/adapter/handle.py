"""What dbt holds as the handle of a connection by `method: session`: a DB-API look on one Spark session."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionWrapper

from spark_mv.query.syntax.source_text import string_literal
from spark_mv.spark.adapter.statements import is_query, split_statements
from spark_mv.spark.session.held_rows import held

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

logger = AdapterLogger("Spark")

#: the column in which Delta and Spark answer INSERT, UPDATE, DELETE and MERGE
AFFECTED = "num_affected_rows"

Description = Sequence[tuple[str, Any, None, None, None, None, bool]]


class Cancelled(Exception):
    """The statement was stopped, or not begun, because the run was cancelled."""


class SessionHandle(SparkConnectionWrapper):
    """Connection and cursor in one, as dbt-spark's wrappers are. `spark` is the session, for all but dbt's SQL.
    `release` is called when the connection is closed."""

    def __init__(
        self, spark: SparkSession, release: Callable[[], None] | None = None, work: Running | None = None
    ) -> None:
        self.spark = spark
        self._release = release
        self._work = work or Running()
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None
        self._lazy = False  # whether the result is that of a query, which Spark has not begun

    def cursor(self) -> SessionHandle:
        """A cursor with no result of its own yet; results of an earlier cursor stay with that one."""
        return SessionHandle(self.spark, work=self._work)

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Runs the statements one by one; the result is the last one's.

        Commands are carried out here, a query when its rows are fetched.
        """
        if bindings is not None:
            sql = sql % tuple(literal(value) for value in bindings)
        self._rows = None
        self._frame = None
        for statement in split_statements(sql):
            self.finish()
            with self._work:
                self._frame = None if held(self.spark, statement) else self.spark.sql(statement)
                self._lazy = self._frame is not None and is_query(statement)

    def finish(self) -> None:
        """Carries out a query whose rows nobody fetches: `select assert_true(…)` in a hook is a check."""
        if self._lazy and self._frame is not None and self._rows is None:
            with self._work:
                self._frame.write.format("noop").mode("overwrite").save()
        self._lazy = False

    @property
    def description(self) -> Description:
        if self._frame is None:
            return []
        return [
            (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable)
            for field in self._frame.schema.fields
        ]

    def fetchall(self) -> list[Row]:
        """All rows of the result that have not been fetched."""
        if self._frame is None:
            return []
        if self._rows is None:
            self._rows = self._collect(self._frame)
        rows, self._rows = self._rows, []
        return rows

    def _collect(self, frame: DataFrame) -> list[Row]:
        with self._work:
            return list(frame.collect())

    def fetchmany(self, size: int) -> list[Row]:
        """The next rows of the result; a limit reaches Spark only when nothing has been fetched before."""
        if self._frame is None:
            return []
        if self._rows is None:
            self._rows = self._collect(self._frame)
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchone(self) -> Row | None:
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    @property
    def rows_affected(self) -> int | None:
        """How many rows an INSERT, UPDATE, DELETE or MERGE touched; None for every other statement."""
        if self._frame is None or AFFECTED not in self._frame.columns:
            return None
        if self._rows is None:
            self._rows = self._collect(self._frame)
        return int(self._rows[0][AFFECTED]) if self._rows else None

    def cancel(self) -> None:
        """Stops the jobs of this connection and all it would do next; called from the thread that heard Ctrl-C."""
        self._work.cancelled = True
        threading.Thread(target=self._interrupt_until_idle, name="spark-cancel", daemon=True).start()

    def _interrupt_until_idle(self) -> None:
        """Spark interrupts the jobs that run, and a statement that is planned now has jobs only later: so again.

        Some seconds of it in any case: not all work of a connection goes through its handle.
        """
        until = time.monotonic() + 10
        while self._work.busy or time.monotonic() < until:
            try:
                interrupt_all = getattr(self.spark, "interruptAll", None)
                if interrupt_all is not None:
                    interrupt_all()
                else:  # Spark 3.5 outside Connect
                    self.spark.sparkContext.cancelAllJobs()
            except Exception as error:
                logger.debug(f"Error while cancelling: {error}")
                return
            time.sleep(0.3)

    def close(self) -> None:
        self._frame = None
        self._rows = None
        if self._release is not None:
            self._release()

    def rollback(self, *args: Any, **kwargs: Any) -> None:
        logger.debug("NotImplemented: rollback")


class Running:
    """Whether a connection's thread is inside Spark, and whether it may go there again."""

    def __init__(self) -> None:
        self.busy = self.cancelled = False

    def __enter__(self) -> None:
        self.busy = True
        if self.cancelled:
            self.busy = False
            raise Cancelled("not begun: the run was cancelled")

    def __exit__(self, *_: object) -> None:
        self.busy = False


def literal(value: Any) -> str:
    """A Python value as Spark SQL, exactly: no float for an integer or a decimal, every quote and backslash kept.

    >>> literal(9007199254740993), literal("O'Brien\\\\n"), literal(None)
    ('9007199254740993', "'O\\\\'Brien\\\\\\\\n'", 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}BD"
    if isinstance(value, float):
        return f"double('{value!r}')"
    if isinstance(value, dt.datetime):
        return f"timestamp'{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"date'{value.isoformat()}'"
    return string_literal(str(value))
