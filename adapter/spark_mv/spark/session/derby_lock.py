"""Which process has opened a Derby database, told without opening it."""

from __future__ import annotations

import re
import struct
import sys
import time
from pathlib import Path

LOCK = "dbex.lck"
"""The file in a Derby database on which the process that has it open holds a lock; the file itself stays when it ends."""
ONE_AT_A_TIME = (
    "Wait for the other dbt run (or close the notebook), let all share one Spark (`spark-mv serve`), or give this one its own "
    "`warehouse:` folder in the profile."
)


class UnknownHolder(Exception):
    """This system or file system does not tell who holds a lock."""


def derby_folder(url: str) -> Path | None:
    """The folder of a database in the process that names it; None for one in memory.

    >>> derby_folder("jdbc:derby:;databaseName=/w/metastore;create=true"), derby_folder("jdbc:derby:memory:m")
    (PosixPath('/w/metastore'), None)
    """
    found = re.search(r"databaseName=([^;]+)", url)
    name = found[1] if found else url.removeprefix("jdbc:derby:").split(";")[0]
    return None if not name or name.startswith("memory:") else Path(name.removeprefix("directory:"))


def holder(database: Path) -> int | None:
    """The id of the process that has the database open, None where nobody has. Raises UnknownHolder.

    Derby locks the file through Java's FileChannel, on POSIX systems a record lock of fcntl, which can be asked for.
    """
    if not (database / LOCK).exists():
        return None
    if not sys.platform.startswith("linux"):
        raise UnknownHolder("only Linux is asked for locks")
    import fcntl

    layout = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length (0: to the end), process
    try:
        with (database / LOCK).open("rb") as file:
            asked = struct.pack(layout, fcntl.F_WRLCK, 0, 0, 0, 0)
            kind, _, _, _, process = struct.unpack(layout, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    except OSError as error:
        raise UnknownHolder(str(error)) from error
    return None if kind == fcntl.F_UNLCK else int(process)


def held_for(database: Path, seconds: float) -> bool:
    """Whether another process has the database open for all of these seconds; a process that ends lets go of it on its way.
    False where that cannot be told."""
    until = time.monotonic() + seconds
    try:
        while holder(database) is not None:
            if time.monotonic() > until:
                return True
            time.sleep(0.2)
    except UnknownHolder:
        pass
    return False
