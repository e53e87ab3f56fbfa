"""dbt's connection manager: dbt-spark's, with our own session method and errors that dbt users can read."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.spark.connections import PyhiveConnectionWrapper, SparkConnectionManager, SparkConnectionMethod
from dbt_common.clients.agate_helper import empty_table
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from spark_mv.spark.adapter.handle import SessionHandle
from spark_mv.spark.adapter.thrift_handle import ThriftHandle
from spark_mv.spark.session.error_texts import readable
from spark_mv.spark.session.job_names import label
from spark_mv.spark.session.progress import Watch

logger = AdapterLogger("Spark")
_shown = threading.Lock()
"""Held by the thread that shows that Spark starts; others wait for the same start."""


@cache
def _warn_once(text: str) -> None:
    logger.warning(text)


@contextmanager
def _start_shown(user: Mapping[str, str]) -> Generator[None, None, None]:
    """Signs of life while this process's Spark starts, which took a minute on a busy machine."""
    from spark_mv.spark.session.session import has_own_spark, is_remote

    if is_remote(user) or has_own_spark() or not _shown.acquire(blocking=False):
        yield
        return
    try:
        with Watch("starting Spark", logger.info, lambda: (0, 0)):
            yield
    finally:
        _shown.release()


class SparkMvConnectionManager(SparkConnectionManager):
    TYPE = "spark_mv"

    #: the project's folder, where the embedded session keeps its warehouse; set by the adapter
    project_root: Path = Path(".")

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Opens the connection; `method: session` is answered here, all others by dbt-spark."""
        creds = connection.credentials
        if creds.method != SparkConnectionMethod.SESSION or connection.state == ConnectionState.OPEN:
            opened = super().open(connection)
            if type(opened.handle) is PyhiveConnectionWrapper:
                opened.handle = ThriftHandle(opened.handle)
            return opened

        from spark_mv.spark.session.jars import JarsError
        from spark_mv.spark.session.session import JavaError, SessionError, close_remote, is_connect

        try:
            spark = cls._session(creds)
        except (JavaError, JarsError, SessionError) as error:
            raise FailedToConnectError(str(error)) from error
        connection.handle = SessionHandle(spark, release=partial(close_remote, spark) if is_connect(spark) else None)
        connection.state = ConnectionState.OPEN
        label(spark, connection.name)
        return connection

    def set_connection_name(self, name: str | None = None) -> Connection:
        """dbt's thread takes its connection for a node: from now on its jobs carry the node's name."""
        connection = super().set_connection_name(name)
        if connection.state == ConnectionState.OPEN and isinstance(connection.handle, SessionHandle):
            label(connection.handle.spark, connection.name)
        return connection

    @classmethod
    def _session(cls, creds: Any) -> Any:
        """A session of the embedded Spark, of a Spark Connect server, or of the one that `spark-mv serve` runs for the warehouse."""
        from spark_mv.spark.serve.use import end_with, holds_the_catalogue, refuse_other_settings, server_to_use
        from spark_mv.spark.session.session import (
            CatalogueInUse,
            SessionError,
            close_remote,
            is_remote,
            open_session,
            other_catalogue,
        )

        user, warehouse = creds.server_side_parameters, creds.warehouse_path(cls.project_root)
        log = cls.project_root / "logs" / "spark.log"
        server = server_to_use(user, warehouse) if creds.serve == "auto" else None
        if server is None:
            try:
                with _start_shown(user):
                    opened = open_session(user, warehouse, log, creds.connect_timeout)
                if not is_remote(user) and (said := other_catalogue(user, warehouse, str(creds.schema))):
                    _warn_once(said)
                return opened
            except CatalogueInUse as error:
                raise SessionError(f"{error} {holds_the_catalogue(warehouse) or ''}".rstrip()) from error
        session = open_session({**user, "spark.remote": server.url}, warehouse, log, creds.connect_timeout)
        try:
            refuse_other_settings(session, server, user)
            end_with(session, server, warehouse)
        except SessionError:
            close_remote(session)
            raise
        return session

    def cleanup_all(self) -> None:
        """Closes all connections; a server of `spark-mv serve` is not used by this process any more."""
        super().cleanup_all()
        from spark_mv.spark.serve.use import let_go

        let_go()

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Turns what Spark raises into DbtDatabaseError with the sentence that matters; the log has the rest."""
        try:
            yield
        except DbtRuntimeError:
            raise
        except Exception as error:
            logger.debug(f"Error while running:\n{sql}\n{error}")
            raise DbtDatabaseError(readable(error)) from error

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, Any]:
        """As dbt's; a query that a hook asks for its own sake is carried out, too."""
        if fetch:
            return super().execute(sql, auto_begin, fetch, limit)
        _, cursor = self.add_query(self._add_query_comment(sql), auto_begin)
        if isinstance(cursor, SessionHandle):
            with self.exception_handler(sql):
                cursor.finish()
        return self.get_response(cursor), empty_table()

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """ "OK", and the number of rows touched where Spark tells it."""
        affected = cursor.rows_affected if isinstance(cursor, SessionHandle) else None
        if affected is None:
            return AdapterResponse(_message="OK")
        return AdapterResponse(_message=f"OK {affected}", rows_affected=affected)
