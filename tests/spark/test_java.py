"""Finding Java: what is said when there is none, or a wrong one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from spark_mv.spark.session.java import JavaError, find_java, parse_java_version

pytestmark = pytest.mark.unit


def _java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


@pytest.mark.parametrize(
    "text,major",
    [
        ('JAVA_VERSION="17.0.15"', 17),
        ('openjdk version "21.0.2" 2024-01-16', 21),
        ('java version "1.8.0_402"', 8),
        ("nonsense", None),
    ],
)
def test_versions(text: str, major: int | None) -> None:
    assert parse_java_version(text) == major


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(
        JavaError, match=r"^Spark 4\.1\.4 runs on Java, and no Java was found: install a Java runtime 17"
    ):
        find_java("4.1.4", {"PATH": str(tmp_path)})


def test_java_home_without_java(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"JAVA_HOME is .*there is no program bin/java"):
        find_java("4.1.4", {"JAVA_HOME": str(tmp_path)})


def test_java_too_old(tmp_path: Path) -> None:
    _java(tmp_path, "11.0.2")
    with pytest.raises(JavaError, match=r"needs Java 17 or newer, but .* is Java 11: install"):
        find_java("4.1.4", {"JAVA_HOME": str(tmp_path)})


def test_java_that_fits(tmp_path: Path) -> None:
    program = _java(tmp_path, "17.0.1")
    assert find_java("4.1.4", {"JAVA_HOME": str(tmp_path)}) == str(program)
    assert find_java("3.5.1", {"PATH": os.pathsep.join([str(program.parent)])}) == str(program)
