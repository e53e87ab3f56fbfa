"""`spark-mv warm-up` makes an archive of Spark's classes that the next start maps, and Java accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_mv.spark.session.jars import cache_folder

_START = """
import sys
from pathlib import Path
from spark_mv.spark.session.warm_up import said_of_the_start
from spark_mv.spark.session.session import open_session

# a start whose archive does not fit ends at once
options = {"spark.driver.extraJavaOptions": "-XX:+UnlockDiagnosticVMOptions -XX:SharedArchiveFile=" + sys.argv[2] + " -Xshare:on"}
spark = open_session(options if sys.argv[2] else {}, Path(sys.argv[1]) / "warehouse", Path(sys.argv[1]) / "spark.log")
print(spark.sql("select 40 + 2").collect()[0][0], said_of_the_start())
"""


@pytest.mark.slow
def test_the_archive_is_made_and_used(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_folder() / "jars")
    environment = {**os.environ, "DBT_SPARK_MV_CACHE": str(cache)}

    def run(*command: str) -> str:
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "42 start: without" in run(sys.executable, "-c", _START, str(tmp_path), "")
    run(str(Path(sys.executable).with_name("spark-mv")), "warm-up")
    (archive,) = (cache / "classes").iterdir()  # and nothing half-made beside it
    assert "42 start: with an archive" in run(sys.executable, "-c", _START, str(tmp_path), "")
    assert "42" in run(sys.executable, "-c", _START, str(tmp_path), str(archive))
