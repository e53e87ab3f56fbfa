"""The Spark settings of the embedded session: fit for one machine, or for a driver of a cluster; never in front of the user's own."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from spark_mv.spark.session.iceberg import asked_for, iceberg_settings, with_extensions

ENFORCED = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Setting of Delta 4.4; `false` lets older versions be read for as long as their files are there."""

MASTER = "spark.master"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
#: fit for a Spark that is one process; on a cluster Spark's and Delta's own defaults are
_ONE_MACHINE_ONLY = (
    "spark.ui.enabled", "spark.sql.shuffle.partitions", "spark.default.parallelism", "spark.databricks.delta.snapshotPartitions",
)  # fmt: skip

#: with one of these the user brings Delta, so that the adapter need not
_BRINGS_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def brings_delta(user: Mapping[str, str]) -> bool:
    """True when the user's own settings already put Delta on the class path."""
    return any("delta-spark" in user.get(key, "") or "delta-core" in user.get(key, "") for key in _BRINGS_JARS)


def brings_iceberg(user: Mapping[str, str]) -> bool:
    """True when the user's own settings already put Iceberg on the class path."""
    return any("iceberg-spark-runtime" in user.get(key, "") for key in _BRINGS_JARS)


def is_local(master: str) -> bool:
    """Whether Spark's executor is the process of its driver. `local-cluster[…]` starts processes of its own.

    >>> is_local("local[*]"), is_local("local-cluster[2,1,1024]"), is_local("spark://host:7077"), is_local("yarn")
    (True, False, False, False)
    """
    return master == "local" or master.startswith("local[")


def _on_loopback(master: str) -> bool:
    """Whether the driver of this master is to be found on loopback: executors elsewhere would look for it on their own machine."""
    return master.startswith("local") or any(master.startswith(f"spark://{host}:") for host in _LOOPBACK)


def embedded_settings(
    user: Mapping[str, str], warehouse: Path, jars: list[Path], cores: int | None = None, memory_mb: int | None = None
) -> dict[str, str]:
    """All settings to start Spark with. Whatever `user` sets, stays as the user set it.

    Measured on two cores: `snapshotPartitions` = 1 makes a small MERGE 3 to 5 times quicker, shuffle partitions as many as
    cores save most of the rest.
    """
    cores = cores or _cores()
    settings = {
        "spark.app.name": "dbt-spark-mv",
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # without its UI Spark still remembers the last 1000 statements with their plans, and a long run fills the heap
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.maxPlanStringLength": "65536",
        # a commit of Delta alone fills Spark's cache of 100 compiled classes, and the next one compiles them again
        "spark.sql.codegen.cache.maxEntries": "2000",
        # names of the machine that resolve to nowhere have kept many a laptop from starting Spark
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_driver_memory_mb(memory_mb)}m",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.databricks.delta.snapshotPartitions": "1",
        # Delta remembers 10,000 tables for an hour, 3 MB of plans each: a project of 700 models filled 2 GB
        "spark.databricks.delta.delta.log.cacheSize": "150",
        # Delta would list a table's files in every checksum file, where nothing reads them, and in any time zone but UTC
        # compare the list with the log after each commit (an INSERT of one row: 0.6 instead of 0.2 seconds)
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # Delta 4.4 would read no version older than a week but the newest, whether its files are there or not
        ENFORCED: "false",
        # Spark's default, INT96, keeps no minimum and maximum: a window's condition would read every row of a file
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # CREATE TABLE without USING makes a table that can be updated, as on Databricks
        "spark.sql.sources.default": "delta",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": unquote((warehouse / "tables").as_uri()),  # Hadoop takes %20 for part of a name
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={warehouse / 'metastore'};create=true",
    }
    if asked_for(user):
        settings |= iceberg_settings()
        settings["spark.sql.extensions"] = with_extensions(settings["spark.sql.extensions"])
    master = user.get(MASTER, settings[MASTER])
    if not is_local(master):
        settings = {key: value for key, value in settings.items() if key not in _ONE_MACHINE_ONLY}
    if not _on_loopback(master):
        del settings["spark.driver.host"], settings["spark.driver.bindAddress"]
    if jars and is_local(master):
        # on the class path from the start: Spark copies what spark.jars names for each of its executors
        settings["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    elif jars:
        settings["spark.jars"] = ",".join(jar.as_uri() for jar in jars)
    log = (Path(__file__).parent / "log4j2.properties").as_uri()
    # Spark's classes take some 130 MB; from Java's 21 MB upwards each step would cost a collection of the whole heap, five in all.
    # With Java's 1 MB of stack an expression of 500 levels overflows it; with 4 MB one of 1,000 does not
    java = (
        f"-Dlog4j2.configurationFile={log}",
        shlex.quote(f"-Dderby.stream.error.file={warehouse / 'derby.log'}"),
        "-XX:+UseParallelGC -XX:MetaspaceSize=256m -Xss4m",
    )
    settings["spark.driver.extraJavaOptions"] = " ".join(java)
    if _COLLECTOR.search(user.get("spark.driver.extraJavaOptions", "")):  # Java starts with one of them only
        settings["spark.driver.extraJavaOptions"] = _COLLECTOR.sub("", settings["spark.driver.extraJavaOptions"])
    merged = {**settings, **user}
    # lists to which the user may add without losing what makes Delta work
    for key, separator in (
        ("spark.jars", ","),
        ("spark.sql.extensions", ","),
        ("spark.driver.extraClassPath", os.pathsep),
    ):
        if key in user and key in settings and user[key] != settings[key]:
            merged[key] = separator.join(dict.fromkeys([*settings[key].split(separator), *user[key].split(separator)]))
    java_options = [settings["spark.driver.extraJavaOptions"], user.get("spark.driver.extraJavaOptions", "")]
    merged["spark.driver.extraJavaOptions"] = " ".join(
        filter(None, java_options)
    )  # the last of two that contradict counts
    return merged


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))  # fewer than the machine's inside a container
    except AttributeError:
        return os.cpu_count() or 1


def _driver_memory_mb(memory_mb: int | None) -> int:
    """A quarter of the machine's memory, at least Spark's own default of 1 GB, at most 8 GB."""
    if memory_mb is None:
        try:
            memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        except (AttributeError, ValueError, OSError):
            memory_mb = 4096
    return max(1024, min(8192, memory_mb // 4))
