"""What a server of `spark-mv serve` leaves in its warehouse, in the folder `serve`: whether it runs, where, and with which settings.

Whether it runs is told by a lock that its process holds (`flock`, which the system takes back however the process ends), never by a
process id, which another program may have got since. A process of dbt that uses the server holds a shared lock on a second file.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

FOLDER, LOCK, STATE, USERS, STOP, LOG, SPARK_LOG = (
    "serve", "lock", "server.json", "users", "stop", "serve.log", "spark.log",
)  # fmt: skip
ENDS_IT = "`spark-mv serve --stop`"


@dataclass(frozen=True)
class Server:
    """A server that answers. `settings`: name → digest of the value that it was started with. `since` in seconds of the epoch."""

    process: int
    machine: str
    port: int
    token: str = field(repr=False)
    since: float
    idle_seconds: float
    spark: str
    python: str
    settings: Mapping[str, str] = field(repr=False)

    @property
    def address(self) -> str:
        """Without the token. PySpark sends a token without TLS to `localhost` only, whatever its address."""
        return f"sc://localhost:{self.port}"

    @property
    def url(self) -> str:
        """With the token: for SPARK_REMOTE and `SparkSession.builder.remote`."""
        return f"{self.address}/;token={self.token}"

    def other_settings(self, user: Mapping[str, str]) -> list[str]:
        """Names of the settings that differ between the server's start and these, in order."""
        now = digests(self.token, user)
        return sorted(name for name in {*now, *self.settings} if now.get(name) != self.settings.get(name))


def digests(token: str, user: Mapping[str, str]) -> dict[str, str]:
    """Settings that can be compared and not read: some hold a secret."""
    return {name: hashlib.sha256(f"{token}\0{name}\0{value}".encode()).hexdigest()[:32] for name, value in user.items()}


def this_machine() -> str:
    """The machine or container: loopback is its own."""
    return socket.gethostname()


def this_python() -> str:
    """Python's minor release: functions in Python travel between processes of the same one only."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def folder_of(warehouse: Path) -> Path:
    """Where the server of a warehouse keeps lock, state and logs."""
    return warehouse / FOLDER


class Lock:
    """A lock on a file, kept until `free` or the process's end. Without the file, or where the system has no such locks, it can be had."""

    def __init__(self, file: Path, *, make: bool = False) -> None:
        self._file: IO[bytes] | None = None
        if sys.platform == "win32":
            return
        if make:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        else:
            with suppress(FileNotFoundError):
                self._file = file.open("rb")

    def take(self, *, alone: bool) -> bool:
        """Whether it could be had at once. May be tried again."""
        if sys.platform == "win32" or self._file is None:
            return True
        import fcntl

        try:
            fcntl.flock(self._file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def free(self) -> None:
        """May be called again."""
        if self._file is not None:
            self._file.close()


@contextmanager
def locked(file: Path, *, alone: bool) -> Iterator[bool]:
    """Whether the lock could be had; if so, it is held within."""
    lock = Lock(file)
    try:
        yield lock.take(alone=alone)
    finally:
        lock.free()


def is_held(warehouse: Path) -> bool:
    """Whether a server runs there, starts or ends. What a killed one has left is removed."""
    folder = folder_of(warehouse)
    with locked(folder / LOCK, alone=False) as free:
        if free:  # no server can start as long as this lock is held, so the file is nobody's
            with suppress(OSError):
                (folder / STATE).unlink(missing_ok=True)
    return not free


def running(warehouse: Path) -> Server | None:
    """The server of the warehouse that answers; None where none runs, or one starts or ends just now."""
    return read(warehouse) if is_held(warehouse) else None


def read(warehouse: Path) -> Server | None:
    """What the state file says; None without a file that can be read."""
    try:
        return Server(**json.loads((folder_of(warehouse) / STATE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def write(warehouse: Path, server: Server) -> None:
    """Makes the server known, at once and to its own user only."""
    folder = folder_of(warehouse)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:  # made with mode 0600
        json.dump(asdict(server), file)
    os.replace(file.name, folder / STATE)


def in_use(warehouse: Path) -> bool:
    """Whether a process of dbt uses the server now."""
    with locked(folder_of(warehouse) / USERS, alone=True) as free:
        return not free


def users_lock(warehouse: Path) -> Lock:
    """Shared by the processes that use the server; had alone by a server that is about to end."""
    return Lock(folder_of(warehouse) / USERS, make=True)
