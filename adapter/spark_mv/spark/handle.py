"""What dbt holds as the handle of a connection by `method: session`: a DB-API look on one Spark session."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionWrapper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

logger = AdapterLogger("Spark")

#: the column in which Delta and Spark answer INSERT, UPDATE, DELETE and MERGE
AFFECTED = "num_affected_rows"

Description = Sequence[tuple[str, Any, None, None, None, None, bool]]


class SessionHandle(SparkConnectionWrapper):
    """Connection and cursor in one, as dbt-spark's wrappers are. `spark` is the session, for all but dbt's SQL.
    `release` is called when the connection is closed."""

    def __init__(self, spark: SparkSession, release: Callable[[], None] | None = None) -> None:
        self.spark = spark
        self._release = release
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None

    def cursor(self) -> SessionHandle:
        """A cursor with no result of its own yet; results of an earlier cursor stay with that one."""
        return SessionHandle(self.spark)

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Runs one statement. Commands are carried out here, a query when its rows are fetched."""
        sql = sql.strip()
        if sql.endswith(";"):
            sql = sql[:-1]
        if bindings is not None:
            sql = sql % tuple(literal(value) for value in bindings)
        self._rows = None
        self._frame = None
        self._frame = self.spark.sql(sql)

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
            self._rows = list(self._frame.collect())
        rows, self._rows = self._rows, []
        return rows

    def fetchmany(self, size: int) -> list[Row]:
        """The next rows of the result; a limit reaches Spark only when nothing has been fetched before."""
        if self._frame is None:
            return []
        if self._rows is None:
            self._rows = list(self._frame.collect())
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
            self._rows = list(self._frame.collect())
        return int(self._rows[0][AFFECTED]) if self._rows else None

    def cancel(self) -> None:
        """Stops the jobs of this connection, called from the thread that heard Ctrl-C."""
        interrupt = getattr(self.spark, "interruptAll", None)
        try:
            if interrupt is not None:
                interrupt()
            else:  # Spark 3.5 outside Connect
                self.spark.sparkContext.cancelAllJobs()
        except Exception as error:
            logger.debug(f"Error while cancelling: {error}")

    def close(self) -> None:
        self._frame = None
        self._rows = None
        if self._release is not None:
            self._release()

    def rollback(self, *args: Any, **kwargs: Any) -> None:
        logger.debug("NotImplemented: rollback")


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
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r") + "'"
