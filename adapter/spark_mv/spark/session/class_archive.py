"""Spark's classes, loaded and checked once and kept in a file that the next JVM maps into memory (class-data sharing).

Most of Spark's start is the loading of some 20,000 classes out of 300 jars. Java writes what a run has loaded into an
archive (`-XX:ArchiveClassesAtExit`, JEP 350) and takes it from there in later runs of the same class path; an archive
that does not fit any more is left aside by Java itself. The archive is made on demand (`warm_up.py`), since making it
takes longer than one start saves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from spark_mv.spark.session.jars import cache_folder

USES, MAKES = "-XX:SharedArchiveFile=", "-XX:ArchiveClassesAtExit="


def archive_of(command: Sequence[str]) -> Path:
    """Where the archive for this JVM is kept, whether it is there or not: one per Java and class path."""
    java = Path(command[0])
    stamp = java.stat().st_mtime_ns if java.exists() else 0
    about = json.dumps([command[0], stamp, command[list(command).index("-cp") + 1]])
    return cache_folder() / "classes" / (hashlib.sha256(about.encode()).hexdigest()[:32] + ".jsa")


def with_archive(command: Sequence[str]) -> list[str]:
    """The command, made to use its archive where there is one and nobody has said otherwise."""
    given = any(part.startswith((USES, MAKES, "-Xshare:")) for part in command)
    if given or "-cp" not in command:
        return list(command)
    archive = archive_of(command)
    return [command[0], f"{USES}{archive}", *command[1:]] if archive.is_file() else list(command)
