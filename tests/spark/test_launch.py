"""The command line of Spark's JVM, as Spark's own launcher puts it together."""

from __future__ import annotations

import os
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
    asked: list[str] = []
    monkeypatch.setattr(launch, "_ask_launcher", lambda *_: asked.append("again") or command)
    assert launch.java_command(java, home, settings) == command and not asked
    (kept,) = cache.glob("*.json")
    for other in ('{"format": 2, "command": ["rm"]}', '["rm", 1]', '["rm"]', "[", "\0"):
        kept.write_text(other, encoding="utf-8")
        assert launch.java_command(java, home, settings) == command and asked.pop() == "again"


def test_other_settings_are_another_command(cache: Path) -> None:
    java, home = find_java(pyspark.__version__), Path(_find_spark_home())
    small = launch.java_command(java, home, {"spark.driver.memory": "1g"})
    assert launch.java_command(java, home, {"spark.driver.memory": "2g"}) != small


def test_where_the_jvm_is_stands_in_nobody_elses_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """dbt's threads read the whole environment; a variable that goes while they do is a KeyError there."""
    from pyspark import java_gateway

    told: list[tuple[str, str]] = []

    def connected(conf: object) -> str:
        inside = vars(java_gateway)["os"].environ
        told.append((inside["PYSPARK_GATEWAY_PORT"], inside["PYSPARK_GATEWAY_SECRET"]))
        assert not [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]
        return "gateway"

    monkeypatch.setattr(java_gateway, "launch_gateway", connected)
    assert launch.connect(4711, "word") == "gateway"
    assert told == [("4711", "word")] and vars(java_gateway)["os"] is os
