"""The command line of Spark's JVM, as Spark's own launcher puts it together."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from pyspark.find_spark_home import _find_spark_home

from spark_mv.spark.session import launch
from spark_mv.spark.session.java import find_java


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(launch, "cache_folder", lambda: tmp_path)
    return tmp_path / "launch"


def test_the_command_is_one_that_can_be_run_and_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java, home = find_java(pyspark.__version__), Path(_find_spark_home())
    settings = {"spark.master": "local[1]", "spark.driver.memory": "1g"}
    command = launch.java_command(java, home, settings)
    assert Path(command[0]).is_file()
    assert "-Xmx1g" in command
    assert command[-1] == "pyspark-shell"
    assert "spark.master=local[1]" in command
    assert len(list(cache.glob("*.json"))) == 1
    monkeypatch.setattr(launch, "_ask_launcher", lambda *_: pytest.fail("asked again"))
    assert launch.java_command(java, home, settings) == command


def test_other_settings_are_another_command(cache: Path) -> None:
    java, home = find_java(pyspark.__version__), Path(_find_spark_home())
    small = launch.java_command(java, home, {"spark.driver.memory": "1g"})
    assert launch.java_command(java, home, {"spark.driver.memory": "2g"}) != small
