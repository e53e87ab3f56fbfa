"""`spark-mv serve`, seen from the console: whether this project can be served, its server's start in the background, its end, its state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_mv.spark.adapter.open_project import open_project
from spark_mv.spark.serve.state import ENDS_IT, LOG, STOP, Server, folder_of, in_use, is_held, running, this_machine
from spark_mv.spark.session.iceberg import asked_for
from spark_mv.spark.session.log_causes import causes
from spark_mv.spark.session.session import SessionError, need_connect_client

if TYPE_CHECKING:
    from spark_mv.spark.serve.process import Asked

START_SECONDS, STOP_SECONDS = 180.0, 60.0
OLDEST_SPARK = (4, 0)
"""The first whose PySpark brings Connect's server, and whose server asks for a token."""
_PACKAGES = "pip install 'dbt-spark-mv[embedded,connect]'"


class NotServed(Exception):
    """The project's profile is not one that can be served, or cannot be read."""


class ServeError(Exception):
    """The server did not start or end."""


@dataclass(frozen=True)
class Project:
    """Its folder, its embedded session's warehouse, and the Spark settings of its profile."""

    root: Path
    warehouse: Path
    user: Mapping[str, str]
    serve: str


def project_to_serve(arguments: Sequence[str]) -> Project:
    """The project that dbt would take with these arguments. Raises NotServed."""
    project = open_project(arguments)
    if project.config is None:
        raise NotServed(project.problem)
    credentials: Any = project.config.credentials
    if not project.ours or credentials.method != "session" or "spark.remote" in credentials.server_side_parameters:
        raise NotServed(
            "What is served is the embedded Spark, of `type: spark_mv`, `method: session` without a `host`."
        )
    user = dict(credentials.server_side_parameters)
    return Project(project.root, credentials.warehouse_path(project.root), user, credentials.serve)


def start(project: Project, idle_seconds: float, port: int) -> Server:
    """Starts the server and waits until it answers. Raises NotServed for what cannot be served here, ServeError."""
    from spark_mv.spark.serve.process import Asked

    _refuse(project)
    if is_held(project.warehouse):
        raise ServeError(said_of(project.warehouse) + f"\n{ENDS_IT} ends it.")
    folder = folder_of(project.warehouse)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    asked = Asked(dict(project.user), str(project.warehouse), idle_seconds, port)
    process = _in_the_background(asked, project.root, folder / LOG)
    deadline = time.monotonic() + START_SECONDS
    while (server := running(project.warehouse)) is None or server.process != process.pid:
        if process.poll() is not None:
            raise ServeError(f"The server ended at its start: {_said(folder / LOG)}")
        if time.monotonic() > deadline:
            process.terminate()
            raise ServeError(f"The server did not answer within {START_SECONDS:g} seconds; its log is in {folder}.")
        time.sleep(0.1)
    return server


def _refuse(project: Project) -> None:
    if sys.platform == "win32":
        raise NotServed("`spark-mv serve` needs the file locks of Linux or macOS; on Windows, run it in WSL.")
    if project.serve == "off":
        raise NotServed("The profile says `serve: off`: dbt would not use the server, and find the catalogue in use.")
    try:
        import pyspark
    except ImportError as error:
        raise NotServed(f"The server is PySpark's: {_PACKAGES}") from error
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < OLDEST_SPARK:
        raise NotServed(
            f"PySpark {pyspark.__version__} has no server that asks for a token; from 4.0 on it has: {_PACKAGES}"
        )
    try:
        need_connect_client()
    except SessionError as error:
        raise NotServed(str(error)) from error
    if asked_for(project.user):
        raise NotServed(
            "Iceberg's tables stand beside Delta's in dbt's own process only: a profile with `formats: [delta, iceberg]` is not served."
        )


def _in_the_background(asked: Asked, root: Path, log: Path) -> subprocess.Popen[bytes]:
    """What is asked goes through standard input: a command line is seen by every user of the machine."""
    elsewhere = (
        "SPARK_REMOTE",
        "SPARK_CONNECT_MODE_ENABLED",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN",
        "PYSPARK_GATEWAY_PORT",
    )
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark_mv.spark.serve.process"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=root,
            env=environment,
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(asdict(asked)).encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended, and its log says why
    return process


def _said(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    if any(mark in text for mark in ("BindException", "Address already in use", "Failed to bind")):
        return "its port is taken by another program. Name another one (`--port`), or leave the word out for any that is free"
    return causes(text) or f"nothing in {log}"


def stop(warehouse: Path, *, force: bool = False) -> str:
    """Has the server end by itself, in good order; the sentence says what was done. No process is killed by its number, which could be
    another's. Raises ServeError when dbt is using it (not with `force`), or it does not end."""
    if not is_held(warehouse):
        return f"no server runs for {warehouse}"
    if in_use(warehouse) and not force:
        raise ServeError(
            "A process of dbt is using the server. Wait for it, or end both by `spark-mv serve --stop --force`."
        )
    server = running(warehouse)
    folder = folder_of(warehouse)
    (folder / STOP).touch()
    deadline = time.monotonic() + STOP_SECONDS
    while is_held(warehouse):
        if time.monotonic() > deadline:
            who = f"process {server.process} on {server.machine}" if server else "its process"
            raise ServeError(
                f"The server did not end within {STOP_SECONDS:g} seconds; end {who} by hand. Its log is in {folder}."
            )
        time.sleep(0.1)
    (folder / STOP).unlink(missing_ok=True)
    return f"ended{f' (process {server.process})' if server else ''}"


def said_of(warehouse: Path) -> str:
    """One line on the server of a warehouse."""
    server = running(warehouse)
    if server is None:
        return "a server starts or ends just now" if is_held(warehouse) else f"no server runs for {warehouse}"
    where = "" if server.machine == this_machine() else f" on {server.machine}"
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(server.since))
    used = "in use by dbt" if in_use(warehouse) else "not in use by dbt"
    return (
        f"process {server.process}{where} serves {warehouse} at {server.address} since {started}; {used}; "
        f"ends after {server.idle_seconds / 60:g} minutes without work"
    )
