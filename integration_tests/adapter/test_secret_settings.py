"""A secret of the profile's Spark settings works, and is seen in no command line and no file of the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_mv.spark.session.jars import cache_folder

_START = """
import json, sys
from pathlib import Path
from spark_mv.spark.session import launch
from spark_mv.spark.session.session import open_session

settings = {
    "spark.hadoop.fs.s3a.secret.key": "hunter2-key",
    "spark.sql.catalog.lake.token": "hunter2-token",
    "spark.driver.extraJavaOptions": "-Dmy.password=hunter2-property -Dmy.word=plain",
}
spark = open_session(settings, Path(sys.argv[1]) / "warehouse", Path(sys.argv[1]) / "spark.log")
jvm = spark.sparkContext._jvm
print(json.dumps({
    "hadoop": spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
    "catalog": spark.conf.get("spark.sql.catalog.lake.token"),
    "property": jvm.java.lang.System.getProperty("my.password"),
    "word": jvm.java.lang.System.getProperty("my.word"),
    "command": launch.started_with(),
}))
"""


@pytest.mark.spark
def test_a_secret_is_seen_nowhere(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_folder() / "jars")
    done = subprocess.run(
        [sys.executable, "-c", _START, str(tmp_path)],
        env={**os.environ, "DBT_SPARK_MV_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen["hadoop"] == "hunter2-key" and seen["catalog"] == "hunter2-token"
    assert seen["property"] == "hunter2-property" and seen["word"] == "plain"
    assert "hunter2" not in " ".join(seen["command"]) and "-Dmy.word=plain" in seen["command"]
    launched = list((cache / "launch").glob("*.json"))
    assert launched
    written = [file for folder in (cache / "launch", tmp_path) for file in folder.rglob("*") if file.is_file()]
    assert not [file for file in written if b"hunter2" in file.read_bytes()]
