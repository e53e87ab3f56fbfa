"""How a process of dbt comes to the server of its warehouse: waits while it starts, compares settings, and keeps it from going idle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_mv.spark.serve.state import (
    ENDS_IT,
    Lock,
    Server,
    is_held,
    read,
    running,
    this_machine,
    this_python,
    users_lock,
)
from spark_mv.spark.session.ended import ENDED
from spark_mv.spark.session.session import SessionError, has_own_spark, is_remote

WAIT_SECONDS = 90.0
"""How long a server may take to start or to end before that is a failure."""

_lock = threading.Lock()
_used: dict[Path, tuple[Server, Lock]] = {}


def server_to_use(user: Mapping[str, str], warehouse: Path, seconds: float = WAIT_SECONDS) -> Server | None:
    """The server that this process uses from now on, until `let_go`. None where the warehouse has none, the settings name another, or this process
    has a Spark of its own already. Raises SessionError for a server that is not fit for this process, or has ended since."""
    if is_remote(user) and not _is_named(user, warehouse):
        return None
    with _lock:
        if warehouse in _used:
            server, _ = _used[warehouse]
            if running(warehouse) != server:
                raise SessionError(f"The server of `spark-mv serve` (process {server.process}) ended during this run.")
            return server
        if not is_held(warehouse) or has_own_spark():
            return None
        found = _found(warehouse, seconds)
        if found is not None:
            _used[warehouse] = found
            _refuse_a_stranger(found[0])
    return found[0] if found else None


def _is_named(user: Mapping[str, str], warehouse: Path) -> bool:
    """Whether the environment names the warehouse's own server, as `spark-mv serve --url` has it."""
    server = running(warehouse) if "spark.remote" not in user else None
    return server is not None and os.environ.get("SPARK_REMOTE") == server.url


def _found(warehouse: Path, seconds: float) -> tuple[Server, Lock] | None:
    """With the lock that keeps it from ending; None where it ended meanwhile."""
    deadline = time.monotonic() + seconds
    while is_held(warehouse):
        hold = users_lock(warehouse)
        if hold.take(alone=False) and (server := read(warehouse)) is not None:
            return server, hold
        hold.free()
        if time.monotonic() > deadline:
            raise SessionError(
                f"The server of `spark-mv serve` for {warehouse} neither answers nor ends. {ENDS_IT} ends it; its log is {warehouse / 'serve'}."
            )
        time.sleep(0.1)
    return None


def _refuse_a_stranger(server: Server) -> None:
    import pyspark

    here = (pyspark.__version__, this_python(), this_machine())
    there = (server.spark, server.python, server.machine)
    if here != there:
        names = ("PySpark", "Python", "machine")
        others = [f"{n} {t} there, {h} here" for n, h, t in zip(names, here, there, strict=True) if h != t]
        raise SessionError(
            f"The warehouse is served by `spark-mv serve` (process {server.process}) of something else: {'; '.join(others)}. "
            f"{ENDS_IT} there ends it."
        )


def refuse_other_settings(session: Any, server: Server, user: Mapping[str, str]) -> None:
    """Raises SessionError when settings of this process cannot hold in its session on the server. Those that belong to a
    session are set in it; all others are the server's."""
    others = [name for name in server.other_settings(user) if name not in user or not _of_a_session(session, name)]
    if others:
        raise SessionError(
            f"`spark-mv serve` (process {server.process}) was started with other settings than this profile has: {', '.join(others)}. "
            f"Start it again with these: {ENDS_IT}, then `spark-mv serve` (both with the same --target as this run)."
        )


def end_with(session: Any, server: Server, warehouse: Path) -> None:
    """Lets statements of a session fail as soon as its server is gone: Spark's client would ask again for ten minutes, each of them."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class WhileItRuns(DefaultPolicy):
        def can_retry(self, e: BaseException) -> bool:
            asks_again = super().can_retry(e)
            if asks_again and running(warehouse) != server:
                raise SessionError(f"The server of `spark-mv serve` (process {server.process}) is gone. {ENDED}") from e
            return asks_again

    session.client.set_retry_policies([WhileItRuns()])


def _of_a_session(session: Any, name: str) -> bool:
    return name.startswith(("spark.sql.", "spark.databricks.")) and bool(session.conf.isModifiable(name))


def let_go() -> None:
    """This process uses no server any more."""
    with _lock:
        for _, hold in _used.values():
            hold.free()
        _used.clear()


def holds_the_catalogue(warehouse: Path) -> str | None:
    """A sentence and its cure for who finds the catalogue in use, where it is a server that has it."""
    server = running(warehouse)
    if server is None:
        return None
    return f"`spark-mv serve` (process {server.process}) has it: leave `serve: auto` in the profile, so that dbt uses the server, or end it by {ENDS_IT}."
