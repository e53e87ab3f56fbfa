"""`spark-mv warm-up`: a Spark that loads what dbt runs use, and leaves an archive of its classes behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from spark_mv.spark.session.class_archive import MAKES, USES, archive_of
from spark_mv.spark.session.jars import cache_folder
from spark_mv.spark.session.launch import LaunchError, started_with, stop_java
from spark_mv.spark.session.session import open_session

#: what a dbt run of a few models has Spark and Delta load
_TRAINING = (
    "show databases", "create schema warm_up", "show table extended in warm_up like '*'",
    "create view warm_up.v as select id, cast(id as string) as word from range(9)",
    "create or replace table warm_up.t using delta tblproperties ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true') as select id, word, current_timestamp() as at from warm_up.v where id > 1",
    "merge into warm_up.t as t using warm_up.v as s on t.id = s.id when matched and t.id % 2 = 0 then update set word = 'x' when not matched then insert (id, word) values (s.id, s.word)",
    "insert into warm_up.t select id + 100, word, now() from warm_up.v", "delete from warm_up.t where id = 3",
    "describe table extended warm_up.t", "describe history warm_up.t limit 1",
    "select count(*), max(a.at) from warm_up.t as a left join warm_up.v as b on a.id = b.id group by b.word order by 1",
    "select * from table_changes('warm_up.t', 1)", "drop schema warm_up cascade",
)  # fmt: skip


def said_of_the_start() -> str | None:
    """A line for `dbt debug`: whether this process's Spark has used its archive; None where Spark is not of this process."""
    try:
        command = started_with()
    except LaunchError:
        return None
    if any(part.startswith(USES) for part in command):
        return "start: with an archive of Spark's classes"
    return "start: without an archive of Spark's classes; `spark-mv warm-up`, once, makes later starts quicker"


def make_archive(say: Callable[[str], None] = print) -> Path:
    """Starts Spark on a temporary warehouse, lets it load what dbt runs use, and keeps that. Returns the archive.

    Needs a process without a Spark of its own. Raises RuntimeError when Java has written none, and what a start raises.
    """
    folder = cache_folder() / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".make-") as work:
        made = Path(work) / "classes.jsa"
        say("starting Spark …")
        settings = {"spark.driver.extraJavaOptions": f"{MAKES}{made}"}
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
