"""Java, PySpark, Delta's jars and memory, asked in the way in which a run asks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from spark_mv.report.findings import Finding, ok, problem, warning
from spark_mv.spark.doctor.patient import Patient
from spark_mv.spark.session.jars import JarsError, delta_coordinates, jar_folder
from spark_mv.spark.session.java import JavaError, find_java, java_version
from spark_mv.spark.session.spark_settings import brings_delta

BESIDE_THE_HEAP_MB = 512
"""What a JVM takes beside the heap of `spark.driver.memory`: Spark's classes, threads, buffers."""
_UNITS = {"k": 2**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}


def pyspark_release() -> str | None:
    """The installed PySpark's, without importing it; None where there is none."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def java(patient: Patient, release: str | None) -> Finding:
    """The Java that Spark would be started with. `release` is PySpark's."""
    if not patient.embedded:
        return ok("Java", f"not needed here: Spark runs elsewhere (method {patient.method})")
    if release is None:
        return warning("Java", "which one is needed is known with PySpark only", "install PySpark first")
    try:
        program = find_java(release)
        major = java_version(program)
    except JavaError as error:
        sentence, _, cure = str(error).partition(": ")
        return problem("Java", sentence, cure or "install a Java runtime 17")
    where = "JAVA_HOME" if os.environ.get("JAVA_HOME") else "PATH"
    if major is None:
        return warning("Java", f"{program} (from {where}) does not tell its version", f"`{program} -version` should")
    return ok("Java", f"{major} at {program} (from {where}), for Spark {release}")


def spark_home(release: str | None) -> Iterator[Finding]:
    """A SPARK_HOME of another release than PySpark's: Python and Java would not understand each other."""
    home = os.environ.get("SPARK_HOME")
    if not home or release is None:
        return
    core = sorted((Path(home) / "jars").glob("spark-core_*.jar"))
    found = core[-1].stem.rpartition("-")[2] if core else None
    if found is None:
        yield problem("SPARK_HOME", f"{home} has no Spark in it", "unset SPARK_HOME")
    elif found != release:
        yield problem(
            "SPARK_HOME",
            f"{home} is Spark {found}, but PySpark is {release}",
            "unset SPARK_HOME, or install that PySpark",
        )
    else:
        yield ok("SPARK_HOME", f"{home} is Spark {found}, as PySpark is")


def delta(patient: Patient, release: str | None) -> Finding:
    """The Delta that fits, and whether its jars are here."""
    if not patient.embedded:
        return ok("Delta", "brought by the server")
    if brings_delta(patient.user):
        return ok("Delta", "brought by the profile's Spark settings")
    if release is None:
        return warning("Delta", "which one fits is known with PySpark only", "install PySpark first")
    try:
        coordinates = delta_coordinates(release)
    except JarsError as error:
        sentence, _, cure = str(error).partition("; ")
        return problem("Delta", sentence, cure)
    folder, artifact = jar_folder(coordinates), coordinates.split(":")[1]
    jars = list(folder.glob("*.jar"))
    if not folder.exists():
        return warning(
            "Delta",
            f"{coordinates} is not in the cache yet; the first run fetches it, which needs a network",
            f"`spark-mv warm-up` does it now; without a network, put its jars into {folder}",
        )
    if not any(jar.name.startswith(f"{artifact}-") for jar in jars):
        return problem(
            "Delta", f"{coordinates} is missing in {folder}", f"remove {folder}, so that it is fetched again"
        )
    return ok("Delta", f"{coordinates}, {len(jars)} jars in {folder}")


def memory(patient: Patient, available: float | None, limit: float | None) -> Finding:
    """Whether the driver's heap fits. `available` and `limit` (of the container) in MB; None: not known."""
    if not patient.embedded:
        return ok("memory", "Spark runs elsewhere")
    asked = patient.settings["spark.driver.memory"]
    wanted = megabytes(asked)
    if wanted is None:
        return problem("memory", f"spark.driver.memory: {asked!r} is no size", "write it as 4g")
    cure = f"end something else, or set spark.driver.memory in the profile (spark_config) below {asked}"
    if limit is not None and limit < wanted + BESIDE_THE_HEAP_MB:
        return problem("memory", f"the container may use {limit:,.0f} MB, but Spark's heap alone {wanted:,.0f}", cure)
    if available is None:
        return ok("memory", f"how much is free cannot be told here; Spark's heap takes up to {wanted:,.0f} MB")
    if available < wanted + BESIDE_THE_HEAP_MB:
        return warning("memory", f"{available:,.0f} MB are free, and Spark's heap may take {wanted:,.0f}", cure)
    return ok("memory", f"{available:,.0f} MB free, Spark's heap takes up to {wanted:,.0f} MB")


def megabytes(size: str) -> float | None:
    """A size as Java and Spark write it, in MB; None for what is none.

    >>> megabytes("2g"), megabytes("512m"), megabytes("1073741824"), megabytes("much")
    (2048.0, 512.0, 1024.0, None)
    """
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", size.strip().lower())
    return None if found is None else int(found[1]) * _UNITS.get(found[2], 2.0**-20)


def free_memory(file: Path = Path("/proc/meminfo")) -> float | None:
    """MB that programs could still take (Linux: MemAvailable); None where the system does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read_text(encoding="utf-8"), re.M)
        return int(found[1]) / 1024 if found else None
    except OSError:
        return None


def container_limit(file: Path = Path("/sys/fs/cgroup/memory.max")) -> float | None:
    """MB that this container may use; None where there is no limit (control groups, version 2)."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) / 2**20 if text.isdigit() else None
