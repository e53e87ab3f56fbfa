"""The jars of Delta and Iceberg for the installed Spark: fetched once by their coordinates, then used from the local copy.

Spark's own `spark.jars.packages` asks its repositories at each start (seconds, and a network). Here Ivy, which Spark
ships, is run once; its result is kept under the user's cache folder, one folder per set of coordinates.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_mv.spark.session.jar_checksums import altered, recorded

#: Delta's release and artifact per minor release of Spark. From 4.0 on the artifact's name carries Spark's minor. Before 3.3.3 a table could not be replaced on Spark
#: 3.5.6 and later (delta-io/delta#4671)
DELTA_COORDINATES = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
}

#: Iceberg's release and artifact. Before 1.10.2 it gave rows wrong ids when manifests were merged
ICEBERG_COORDINATES = {
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}

#: what Spark brings itself; not fetched, let alone put in front of Spark's own
_BROUGHT_BY_SPARK = (
    "com.fasterxml.jackson.*", "com.github.luben", "org.apache.hadoop", "org.apache.logging.log4j",
    "org.apache.parquet", "org.slf4j", "org.xerial.snappy",
)  # fmt: skip


class JarsError(Exception):
    """The jars could not be fetched. The message says which, and what to do without a network."""


def delta_coordinates(spark_version: str) -> str:
    """Maven coordinates of the Delta release for this Spark, e.g. `4.1.4`. Raises JarsError for an unknown one."""
    return _coordinates("Delta", DELTA_COORDINATES, spark_version)


def iceberg_coordinates(spark_version: str) -> str:
    """Maven coordinates of the Iceberg release for this Spark. Raises JarsError for an unknown one."""
    return _coordinates("Iceberg", ICEBERG_COORDINATES, spark_version)


def _coordinates(name: str, known: Mapping[str, str], spark_version: str) -> str:
    minor = ".".join(spark_version.split(".")[:2])
    try:
        return known[minor]
    except KeyError:
        raise JarsError(
            f"No {name} release is known for Spark {spark_version}; install pyspark "
            f"{' or '.join(sorted(known))}, or name {name}'s jar in the profile, under spark_config, "
            "as spark.jars.packages or spark.jars."
        ) from None


def cache_folder() -> Path:
    """Where fetched jars are kept: $DBT_SPARK_MV_CACHE, else the user's cache folder."""
    own = os.environ.get("DBT_SPARK_MV_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(base).expanduser() / "dbt-spark-mv"


def jar_folder(coordinates: str) -> Path:
    """Where the jars of these coordinates are kept, whether they are there or not."""
    return cache_folder() / "jars" / coordinates.replace(":", "_")


def local_jars(coordinates: str, java: str, spark_jars: Path, ivy_settings: str | None = None) -> list[Path]:
    """The jar files for `group:artifact:version` and what it needs beyond `spark_jars`, fetched if they are not here.

    A fetch is atomic: the folder appears under its name only when complete. `ivy_settings` names a settings file of
    the user's own (Spark's setting spark.jars.ivySettings). Raises JarsError.
    """
    folder = jar_folder(coordinates)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as work:
            _fetch(coordinates, java, spark_jars, Path(work), ivy_settings)
            _drop_what_spark_has(Path(work) / "jars", spark_jars)
            _refuse_altered(Path(work) / "jars", coordinates)
            try:
                (Path(work) / "jars").rename(folder)
            except OSError:
                if not folder.is_dir():  # another process was quicker
                    raise
    return sorted(folder.glob("*.jar"))


def _fetch(coordinates: str, java: str, spark_jars: Path, work: Path, ivy_settings: str | None) -> None:
    group, artifact, version = coordinates.split(":")
    ivy = sorted(spark_jars.glob("ivy-*.jar"))
    if not ivy:
        raise JarsError(f"There is no Ivy in {spark_jars}, so {coordinates} cannot be fetched.")
    excludes = "".join(f'<exclude org="{name}" matcher="regexp"/>' for name in _BROUGHT_BY_SPARK)
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="spark_mv" module="jars"/>'
        f"<dependencies><dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)} "
        f'conf="default->default(compile)"/>{excludes}</dependencies></ivy-module>',
        encoding="utf-8",
    )
    command = [java, "-cp", str(ivy[-1]), "org.apache.ivy.Main", "-warn", "-types", "jar", "bundle"]
    command += ["-ivy", str(work / "ivy.xml"), "-cache", str(work / "ivy")]
    command += ["-retrieve", str(work / "jars" / "[artifact]-[revision].[ext]")]
    if ivy_settings:
        command += ["-settings", ivy_settings]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if answer.returncode != 0 or not list((work / "jars").glob(f"{artifact}-*.jar")):
        tail = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-8:])
        raise JarsError(
            f"The jars of {coordinates} could not be fetched. They are needed once; without a network, put them "
            f"into {jar_folder(coordinates)} or name them in the profile, "
            f"under spark_config, as spark.jars.\n{tail}"
        )


def _refuse_altered(folder: Path, coordinates: str) -> None:
    other = altered(folder.glob("*.jar"), recorded())
    if other:
        raise JarsError(
            f"{', '.join(other)} of {coordinates} came with other bytes than its project published, and was not kept. Ask who "
            "runs the repository that it came from; spark.jars.ivySettings in the profile, under spark_config, names another one."
        )


def _drop_what_spark_has(folder: Path, spark_jars: Path) -> None:
    """Two releases of one library on a class path give errors far from their cause: Spark's stay."""
    brought = {_name(jar) for jar in spark_jars.glob("*.jar")}
    for jar in folder.glob("*.jar"):
        if _name(jar) in brought:
            jar.unlink()
    shutil.rmtree(folder.parent / "ivy", ignore_errors=True)


def _name(jar: Path) -> str:
    """The artifact's name without its release: `jts-core-1.20.0.jar` is `jts-core`."""
    return re.sub(r"-\d[^/]*$", "", jar.stem)
