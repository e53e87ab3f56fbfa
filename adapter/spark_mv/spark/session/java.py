"""Finding a Java that the installed Spark runs on, or saying in one sentence what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path


class JavaError(Exception):
    """No usable Java. The message is one sentence that says what to install."""


def minimum_java(spark_version: str) -> int:
    """The oldest major Java release that this Spark runs on (Spark's "Downloading" page)."""
    return 17 if int(spark_version.split(".")[0]) >= 4 else 8


def parse_java_version(text: str) -> int | None:
    """The major release from a `release` file or from the output of `java -version`.

    >>> parse_java_version('JAVA_VERSION="17.0.15"'), parse_java_version('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def find_java(spark_version: str, environ: dict[str, str] | None = None) -> str:
    """The path of the `java` program to start Spark with: that of JAVA_HOME, else the one on the PATH.

    Raises JavaError when there is none or when it is older than Spark needs.
    """
    env = dict(os.environ) if environ is None else environ
    need = minimum_java(spark_version)
    cure = f"install a Java runtime {max(need, 17)} (for instance OpenJDK 17) and point JAVA_HOME at it"
    home = env.get("JAVA_HOME")
    if home:
        java = shutil.which("java", path=str(Path(home) / "bin"))
        if java is None:
            raise JavaError(f"JAVA_HOME is {home}, but there is no program bin/java in it: {cure}.")
    else:
        java = shutil.which("java", path=env.get("PATH", ""))
        if java is None:
            raise JavaError(f"Spark {spark_version} runs on Java, and no Java was found: {cure}.")
    version = java_version(java)
    if version is not None and version < need:
        raise JavaError(f"Spark {spark_version} needs Java {need} or newer, but {java} is Java {version}: {cure}.")
    return java


def java_version(java: str) -> int | None:
    """The major release of a `java` program, None where it does not tell. Read from the installation's `release` file, which is
    quicker than starting a JVM. Raises JavaError for one that cannot be started."""
    release = Path(java).resolve().parent.parent / "release"
    try:
        version = parse_java_version(release.read_text(encoding="utf-8", errors="replace"))
        if version is not None:
            return version
    except OSError:
        pass
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise JavaError(f"{java} cannot be started ({error}): install a Java runtime 17.") from error
    return parse_java_version(answer.stderr + answer.stdout)
