"""Jars that are not what their projects published are not kept. Ivy itself is not run: its answer is written by the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_mv.spark.session import jars
from spark_mv.spark.session.jar_checksums import altered, recorded
from spark_mv.spark.session.jars import DELTA_COORDINATES, ICEBERG_COORDINATES, JarsError, local_jars

pytestmark = pytest.mark.unit
CHECKSUM_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_every_release_that_is_fetched_is_recorded() -> None:
    for coordinates in (*DELTA_COORDINATES.values(), *ICEBERG_COORDINATES.values()):
        _, artifact, version = coordinates.split(":")
        assert len(recorded()[f"{artifact}-{version}.jar"]) == 64


def test_altered(tmp_path: Path) -> None:
    for name in ("same.jar", "other.jar", "unknown.jar"):
        (tmp_path / name).write_bytes(b"abc")
    known = {"same.jar": CHECKSUM_OF_ABC, "other.jar": "0" * 64, "gone.jar": "0" * 64}
    assert altered(tmp_path.glob("*.jar"), known) == ["other.jar"]


def test_an_altered_jar_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(coordinates: str, java: str, spark_jars: Path, work: Path, ivy_settings: str | None) -> None:
        (work / "jars").mkdir()
        (work / "jars" / "delta-storage-4.4.0.jar").write_bytes(b"something else")

    monkeypatch.setenv("DBT_SPARK_MV_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "_fetch", fetch)
    with pytest.raises(JarsError, match=r"delta-storage-4\.4\.0\.jar of .* came with other bytes"):
        local_jars(DELTA_COORDINATES["4.1"], "java", tmp_path / "spark")
    assert not list((tmp_path / "jars").glob("*"))
