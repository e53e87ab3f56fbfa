"""The Spark of this process: one JVM, one catalogue; and for every dbt connection a session of its own.

A setting made in one dbt thread (`SET`, a tag for the next commit, the pinned clock) therefore never shows up in
another. Temporary views are per connection as well; tables, the cache and the JVM are shared.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_mv.spark.session.derby_lock import ONE_AT_A_TIME, held_for
from spark_mv.spark.session.iceberg import FORMATS, asked_for, make_lock_tables, stand_behind_delta
from spark_mv.spark.session.jars import delta_coordinates, iceberg_coordinates, local_jars
from spark_mv.spark.session.java import JavaError, find_java
from spark_mv.spark.session.launch import java_command, start_gateway
from spark_mv.spark.session.log_causes import causes
from spark_mv.spark.session.own_catalogue import database
from spark_mv.spark.session.secret_settings import without_secrets
from spark_mv.spark.session.spark_settings import brings_delta, brings_iceberg, embedded_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()
_early: list[Exception] = []
"""Why the start in the background failed, for the first connection that wants the Spark."""
_started: dict[str, str] = {}
"""The catalogue of the Spark that was started here, by its application."""
_schemas: dict[tuple[str, str], str] = {}
"""The catalogue that a profile asked for when it first used a schema, by application and schema."""
_HELD_SECONDS = 10
"""How long a start waits for the catalogue of another process: one that ends needs seconds to let go of it."""


class SessionError(Exception):
    """Spark could not be started. The message says why and what to do."""


class CatalogueInUse(SessionError):
    """Another process has the embedded catalogue open."""


def is_remote(user: Mapping[str, str]) -> bool:
    """True when the settings or the environment name a Spark Connect server."""
    return "spark.remote" in user or "SPARK_REMOTE" in os.environ


def open_session(user: Mapping[str, str], warehouse: Path, log_file: Path, remote_seconds: float = 10) -> SparkSession:
    """A fresh Spark session for one connection, with the user's run-time settings applied.

    Starts Spark when this process has none yet; a session that the caller has already made is used as it is (a
    notebook, a program that calls dbt). A Spark Connect server has `remote_seconds` to answer. Raises SessionError,
    JavaError, JarsError.
    """
    if is_remote(user):
        return _remote_session(user, remote_seconds)
    with _lock:
        if _early:
            raise _early.pop()
        root = _running() or _start(user, warehouse, log_file)
    session = root.newSession()
    _apply(session, user)
    if asked_for(user):
        if not asked_for({FORMATS: root.conf.get(FORMATS, "")}):
            raise SessionError(
                "Spark runs already in this process, and was started without Iceberg (formats in the profile)."
            )
        stand_behind_delta(session)
    return session


def other_catalogue(user: Mapping[str, str], warehouse: Path, schema: str) -> str:
    """What to warn of where the Spark that was started in this process has another catalogue than these settings ask for; '' where it has not.
    Raises SessionError where a connection with a third one, or that one itself, has used a schema of this name: its tables would be taken for
    those of the project, or target, that comes now."""
    root = _running()
    there = _started.get(root.sparkContext.applicationId) if root is not None else None
    if root is None or there is None:
        return ""
    wanted = _catalogue(embedded_settings(user, warehouse, []))
    with _lock:
        before = _schemas.setdefault((root.sparkContext.applicationId, schema.lower()), wanted)
    if before != wanted:
        raise SessionError(
            f"Spark runs already in this process, with the catalogue {there}, and schema {schema} of it belongs to a profile with the catalogue "
            f"{before}. The one of this profile is {wanted}, and a process has one. Run each project, or target, in a process of its own, or name "
            "the same `warehouse` in their profiles"
        )
    if there == wanted:
        return ""
    return f"Spark runs already in this process, with the catalogue {there}: tables are made there, and not in {wanted}, which is this profile's"


def _catalogue(settings: Mapping[str, str]) -> str:
    own = database(settings)
    if own is not None:
        return str(own.resolve())
    servers = settings.get("spark.hadoop.hive.metastore.uris") or settings.get("hive.metastore.uris")
    return servers or settings["spark.sql.catalogImplementation"]


def is_connect(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def has_own_spark() -> bool:
    """Whether a Spark runs in this process."""
    return _running() is not None


def start_early(user: Mapping[str, str], warehouse: Path, log_file: Path) -> None:
    """Starts Spark in the background while dbt still reads the project. What goes wrong is told by `open_session`."""
    if is_remote(user):
        return

    def start() -> None:
        with _lock:
            _early.clear()
            if _running() is None:
                try:
                    _start(user, warehouse, log_file)
                except Exception as error:
                    _early.append(error)

    threading.Thread(target=start, name="spark-start", daemon=True).start()


def _running() -> SparkSession | None:
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    return session if session is not None and session._sc._jsc is not None else None


def _remote_session(user: Mapping[str, str], seconds: float) -> SparkSession:
    from pyspark.sql import SparkSession

    url = user.get("spark.remote") or os.environ["SPARK_REMOTE"]
    need_connect_client()
    _hush()
    builder: Any = SparkSession.builder
    session = builder.remote(url).create()
    if not _answers(session, seconds):
        close_remote(session, 0)
        server = url.split(";")[0]  # what follows may be a token
        raise SessionError(
            f"No Spark Connect server answers at {server} within {seconds:g} seconds (connect_timeout in the profile). "
            "Is it running, and is the port right (Spark's default is 15002)?"
        )
    _apply(session, {key: value for key, value in user.items() if key != "spark.remote"})
    return session


def need_connect_client() -> None:
    """Raises SessionError where packages of a Spark Connect client are missing."""
    try:
        from pyspark.sql.connect.session import SparkSession as _  # noqa: F401
    except ImportError as error:
        raise SessionError(
            f"A Spark Connect client needs more than pyspark: pip install 'dbt-spark-mv[connect]' ({error})"
        ) from error


def _answers(session: Any, seconds: float) -> bool:
    """Whether the server is there; pyspark itself would try for ten minutes."""
    import grpc

    ready = grpc.channel_ready_future(session.client._channel)
    try:
        ready.result(timeout=seconds)
    except grpc.FutureTimeoutError:
        ready.cancel()
        return False
    return True


def close_remote(session: Any, seconds: float = 2) -> None:
    """Ends a Connect session, on the server too if that is there: it keeps the session of a client that just leaves for
    an hour. A client left open keeps Python from ending."""
    if not seconds or not _listens(session, seconds):
        session.release_session_on_close = False
    session.stop()


def _listens(session: Any, seconds: float) -> bool:
    """Whether somebody is at the server's port. Asked without gRPC, whose thread would still look at the channel when that is closed."""
    host, _, port = session.client._builder.endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except OSError:
        return False
    return True


def _apply(session: SparkSession, user: Mapping[str, str]) -> None:
    """Sets what can be set while Spark runs; what belongs to its start was used there, or comes too late."""
    for key, value in user.items():
        if key.startswith("spark.sql.") or key.startswith("spark.databricks."):
            try:
                session.conf.set(key, value)
            except Exception as error:  # pyspark's class for it differs between releases and Connect
                if "CANNOT_MODIFY" not in str(error):
                    raise


def _start(user: Mapping[str, str], warehouse: Path, log_file: Path) -> SparkSession:
    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    java = find_java(pyspark.__version__)
    wanted = [] if brings_delta(user) else [delta_coordinates(pyspark.__version__)]
    if asked_for(user) and not brings_iceberg(user):
        wanted.append(iceberg_coordinates(pyspark.__version__))
    spark_jars = Path(_find_spark_home()) / "jars"
    jars = [jar for c in wanted for jar in local_jars(c, java, spark_jars, user.get("spark.jars.ivySettings"))]
    warehouse.mkdir(parents=True, exist_ok=True)
    settings = embedded_settings(user, warehouse, jars)
    # the workers would otherwise run the first `python3` on the PATH, which has none of dbt's packages
    os.environ.setdefault("PYSPARK_PYTHON", settings["spark.pyspark.python"])
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    earlier = log_file.stat().st_size if log_file.exists() else 0
    start = without_secrets(settings)  # the others are told to the session's builder, below
    conf = SparkConf(loadDefaults=False)
    for key, value in start.shown.items():
        conf.set(key, value)
    _hush()
    try:
        if SparkContext._gateway is None:
            own = database(settings)
            if own is not None and held_for(own, _HELD_SECONDS):
                raise _in_use(warehouse)
            home = Path(_find_spark_home())
            with log_file.open("ab") as log:
                # what Java and Spark print belongs into a file, dbt's own lines onto the terminal
                if sys.platform == "win32" or (home / "conf" / "spark-env.sh").exists():
                    gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})
                else:
                    gateway = start_gateway(java_command(java, home, start.shown), log, conf)
            SparkContext._ensure_initialized(gateway=gateway, conf=conf)
            start.tell(gateway.jvm)
        builder: Any = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        # Hive's metastore is opened by the first statement: a busy or broken one is to be known now
        session.sql("show databases").collect()
        _started[session.sparkContext.applicationId] = _catalogue(settings)
        if asked_for(user):
            make_lock_tables(session)
    except SessionError:
        raise
    except Exception as error:
        if (half := _running()) is not None:  # another connection would take it for a Spark that has started
            half.stop()
        raise why_no_start(error, warehouse, log_file, earlier) from error
    return session


def _hush() -> None:
    """PySpark 4 prints every failed statement as JSON onto stderr, where dbt reports it in words."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before Spark 4
        return
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


def why_no_start(error: Exception, warehouse: Path, log_file: Path, earlier: int) -> SessionError:
    """What to tell of a start that failed. What this start has logged stands behind the first `earlier` bytes: Java's causes of causes can
    fill hundreds of lines, and the one that matters may stand anywhere among them."""
    text, logged = str(error), _logged(log_file, earlier)
    if any(mark in said for mark in ("Another instance of Derby", "XSDB6") for said in (text, logged)):
        return _in_use(warehouse)
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    said = causes(f"{text}\n{logged}").replace("\n", "\n  ")
    return SessionError(f"Spark could not be started: {first}\nIts log, {log_file}, says:\n  {said}")


def _in_use(warehouse: Path) -> CatalogueInUse:
    return CatalogueInUse(
        f"The catalogue in {warehouse} is in use by another process: the embedded session serves one process at a "
        f"time. {ONE_AT_A_TIME}"
    )


def _logged(log_file: Path, earlier: int) -> str:
    try:
        with log_file.open("rb") as log:
            log.seek(earlier)
            return log.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


__all__ = ["CatalogueInUse", "JavaError", "SessionError", "close_remote", "is_remote", "open_session", "start_early"]
