"""Spark's classes, loaded and checked once and kept in a file that the next JVM maps into memory (class-data sharing).

Most of Spark's start is the loading of some 20,000 classes out of 300 jars. Java writes what a run has loaded into an
archive (`-XX:ArchiveClassesAtExit`, JEP 350) and takes it from there in later runs of the same class path; an archive
that does not fit any more is left aside by Java itself. The archive is made on demand (`spark-mv warm-up`), since making
it takes longer than one start saves.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from spark_mv.spark.session.jars import cache_folder

_USES, _MAKES = "-XX:SharedArchiveFile=", "-XX:ArchiveClassesAtExit="

#: what a dbt run of a few models has Spark and Delta load
_TRAINING = (
    "show databases",
    "create schema warm_up",
    "show table extended in warm_up like '*'",
    "create view warm_up.v as select id, cast(id as string) as word from range(9)",
    "create or replace table warm_up.t using delta tblproperties ('delta.enableDeletionVectors' = 'true', "
    "'delta.enableChangeDataFeed' = 'true') as select id, word, current_timestamp() as at from warm_up.v where id > 1",
    "merge into warm_up.t as t using warm_up.v as s on t.id = s.id when matched and t.id % 2 = 0 then update set word = 'x' "
    "when not matched then insert (id, word) values (s.id, s.word)",
    "insert into warm_up.t select id + 100, word, now() from warm_up.v",
    "delete from warm_up.t where id = 3",
    "describe table extended warm_up.t",
    "describe history warm_up.t limit 1",
    "select count(*), max(a.at) from warm_up.t as a left join warm_up.v as b on a.id = b.id group by b.word order by 1",
    "select * from table_changes('warm_up.t', 1)",
    "drop schema warm_up cascade",
)


def archive_of(command: Sequence[str]) -> Path:
    """Where the archive for this JVM is kept, whether it is there or not: one per Java and class path."""
    java = Path(command[0])
    stamp = java.stat().st_mtime_ns if java.exists() else 0
    about = json.dumps([command[0], stamp, command[list(command).index("-cp") + 1]])
    return cache_folder() / "classes" / (hashlib.sha256(about.encode()).hexdigest()[:32] + ".jsa")


def with_archive(command: Sequence[str]) -> list[str]:
    """The command, made to use its archive where there is one and nobody has said otherwise."""
    given = any(part.startswith((_USES, _MAKES, "-Xshare:")) for part in command)
    if given or "-cp" not in command:
        return list(command)
    archive = archive_of(command)
    return [command[0], f"{_USES}{archive}", *command[1:]] if archive.is_file() else list(command)


def said_of_the_start() -> str | None:
    """A line for `dbt debug`: whether this process's Spark has used its archive; None where Spark is not of this process."""
    from spark_mv.spark.session.launch import LaunchError, started_with

    try:
        command = started_with()
    except LaunchError:
        return None
    if any(part.startswith(_USES) for part in command):
        return "start: with an archive of Spark's classes"
    return "start: without an archive of Spark's classes; `spark-mv warm-up`, once, makes later starts quicker"


def make_archive(say: Callable[[str], None] = print) -> Path:
    """Starts Spark on a temporary warehouse, lets it load what dbt runs use, and keeps that. Returns the archive.

    Needs a process without a Spark of its own. Raises RuntimeError when Java has written none, and what a start raises.
    """
    from spark_mv.spark.session.launch import started_with, stop_java
    from spark_mv.spark.session.session import open_session

    folder = cache_folder() / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".make-") as work:
        made = Path(work) / "classes.jsa"
        say("starting Spark …")
        settings = {"spark.driver.extraJavaOptions": f"{_MAKES}{made}"}
        spark = open_session(settings, Path(work) / "warehouse", Path(work) / "spark.log")
        for statement in _TRAINING:
            spark.sql(statement).collect()
        archive = archive_of(started_with())
        say("writing the archive of its classes …")
        spark.sparkContext.stop()
        stop_java()
        if not made.is_file():
            log = Path(work) / "spark.log"
            raise RuntimeError("Java has written no archive:\n" + log.read_text(errors="replace")[-2000:])
        os.replace(made, archive)
    return archive
