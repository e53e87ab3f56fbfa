"""The archive of Spark's classes is used where it fits and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_mv.spark.session import class_archive
from spark_mv.spark.session.class_archive import archive_of, with_archive

pytestmark = pytest.mark.unit

COMMAND = ["/opt/java/bin/java", "-cp", "/jars/a.jar:/spark/jars/*", "-Xmx1g", "org.apache.spark.deploy.SparkSubmit"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(class_archive, "cache_folder", lambda: tmp_path)
    (tmp_path / "classes").mkdir()
    return tmp_path


def test_without_an_archive_the_command_stays() -> None:
    assert with_archive(COMMAND) == COMMAND


def test_an_archive_goes_before_all_else() -> None:
    archive = archive_of(COMMAND)
    archive.write_bytes(b"")
    assert with_archive(COMMAND) == [COMMAND[0], f"-XX:SharedArchiveFile={archive}", *COMMAND[1:]]


def test_each_class_path_has_its_own() -> None:
    archive_of(COMMAND).write_bytes(b"")
    other = [*COMMAND[:2], "/jars/b.jar:/spark/jars/*", *COMMAND[3:]]
    assert archive_of(other) != archive_of(COMMAND)
    assert with_archive(other) == other
    assert archive_of([*COMMAND, "-Xmx2g"]) == archive_of(COMMAND)


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=/x.jsa", "-XX:ArchiveClassesAtExit=/x.jsa", "-Xshare:off"])
def test_what_the_user_says_about_sharing_wins(option: str) -> None:
    archive_of(COMMAND).write_bytes(b"")
    command = [*COMMAND[:3], option, *COMMAND[3:]]
    assert with_archive(command) == command
