"""The process of the server: starts the embedded Spark with the project's settings, opens Spark Connect in it, and ends it when it is asked to,
when nobody has used it for long enough, or when its JVM has gone. The JVM ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from spark_mv.spark.serve.state import (
    LOCK,
    SPARK_LOG,
    STATE,
    STOP,
    Lock,
    Server,
    digests,
    folder_of,
    this_machine,
    this_python,
    users_lock,
    write,
)
from spark_mv.spark.session.jars import JarsError
from spark_mv.spark.session.java import JavaError
from spark_mv.spark.session.session import SessionError, open_session

RUNS_ALREADY, FAILED = 3, 4
"""Exit codes."""
_LOOK_SECONDS, _ASK_EVERY = 0.5, 10
"""How often it is looked whether to stop, and every how many times the JVM is asked what it does."""


@dataclass(frozen=True)
class Asked:
    """What the server is started with; it comes through standard input, since settings may hold secrets. `port` 0: any."""

    user: dict[str, str]
    warehouse: str
    idle_seconds: float
    port: int


def serve(asked: Asked, stop: Event) -> int:
    """Serves until it is to end; returns the exit code. Raises what a start raises."""
    warehouse = Path(asked.warehouse)
    folder = folder_of(warehouse)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = Lock(folder / LOCK, make=True)
    if not _take(lock):
        return RUNS_ALREADY
    for left in (STATE, STOP, SPARK_LOG):
        (folder / left).unlink(missing_ok=True)
    token = secrets.token_urlsafe(32)
    spark, service, port = start_connect(asked, token, folder / SPARK_LOG)
    server = Server(
        os.getpid(), this_machine(), port, token, time.time(), asked.idle_seconds, str(spark.version), this_python(),
        digests(token, asked.user),
    )  # fmt: skip
    try:
        write(warehouse, server)
        _watch(service, warehouse, server, stop)
    finally:
        (folder / STATE).unlink(missing_ok=True)
        (folder / STOP).unlink(missing_ok=True)
        _end(spark, service)
    return 0


def _take(lock: Lock) -> bool:
    """Tries for some seconds: who only looks whether a server runs takes the lock for a moment."""
    deadline = time.monotonic() + 2
    while not lock.take(alone=True):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def start_connect(asked: Asked, token: str, log: Path) -> tuple[Any, Any, int]:
    """A Spark that answers on loopback to those who have the token: its session, its Connect service, the port."""
    own = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(asked.port),
        "spark.connect.grpc.port.maxRetries": "0",
        "spark.connect.authenticate.token": token,
    }
    spark: Any = open_session({**asked.user, **own}, Path(asked.warehouse), log)
    package = spark._jvm.org.apache.spark.sql.connect.service
    package.SparkConnectService.start(spark.sparkContext._jsc.sc())
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    return spark, service, int(service.localPort())


def _watch(service: Any, warehouse: Path, server: Server, stop: Event) -> None:
    """Until somebody asks for the end, nobody has used it for long enough, or the JVM does not answer (which is raised)."""
    look, users, before, used_at = 0, users_lock(warehouse), "", time.monotonic()
    while not stop.wait(_LOOK_SECONDS) and not (folder_of(warehouse) / STOP).exists():
        look += 1
        if look % _ASK_EVERY:
            continue
        now = activity(service)
        if now is None or now != before:
            before, used_at = now or "", time.monotonic()
        if time.monotonic() - used_at < server.idle_seconds:
            continue
        # held to the end: who would use the server from now on waits for its end
        if users.take(alone=True):
            print(f"idle for {server.idle_seconds:g} seconds", flush=True)
            return


def activity(service: Any) -> str | None:
    """What changes with everything that a client asks; None while a statement runs. Instants in it are compared, not read: some are of the
    clock, some of a counter of nanoseconds, as the release has it."""
    executions = service.listActiveExecutions()
    if executions.isRight():
        return None
    found = [str(executions.left().toOption().get())]
    sessions = service.sessionManager().listActiveSessions().iterator()
    while sessions.hasNext():
        session = sessions.next()
        found.append(f"{session.sessionId()} {session.lastAccessTimeMs()}")
    return "\n".join(sorted(found))


def _end(spark: Any, service: Any) -> None:
    from spark_mv.spark.session.launch import stop_java

    with contextlib.suppress(Exception):  # a JVM that has gone needs no end
        spark.sparkContext.stop()
    with contextlib.suppress(Exception):
        stop_java(30)


def main() -> None:
    """Reads what is asked from standard input; what goes wrong is the last that it prints."""
    asked = Asked(**json.load(sys.stdin))
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        code = serve(asked, stop)
    except (SessionError, JavaError, JarsError) as error:
        print(error, flush=True)
        code = FAILED
    except Exception as error:  # py4j's classes, when the JVM has gone or refuses the port
        print(f"{type(error).__name__}: {str(error).strip() or 'Java has gone'}", flush=True)
        code = FAILED
    sys.stdout.flush()
    os._exit(code)  # py4j's threads may wait for a JVM that has gone


if __name__ == "__main__":
    main()
