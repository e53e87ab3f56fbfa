"""dbt as a user starts it: one command in a fresh process, and what its log says about when.

Both sides get the same project. Plain dbt-spark is `type: spark`, `method: session` with Delta's packages as Delta's own
quickstart configures them; ours is the profile of three lines from the README.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import yaml

from spark_mv.spark.session.jars import delta_coordinates

OURS, PLAIN = "dbt-spark-mv", "dbt-spark"

#: Delta's documented settings for a session of one's own
DELTA = {
    "spark.jars.packages": delta_coordinates(pyspark.__version__),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True)
class Timing:
    """Seconds since the process was started: the first statement's answer, and the process's end. None: too long."""

    first_answer: float | None
    end: float | None


def make_project(folder: Path, side: str, files: dict[str, str], settings: dict[str, str] | None = None) -> Path:
    """A dbt project with these files and the profile of `side`, with more settings of Spark; what was there goes."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "models").mkdir(parents=True)
    profile: dict[str, Any] = {"type": "spark_mv", "method": "session", "schema": "bench", "threads": 1}
    if side == PLAIN:
        profile |= {"type": "spark", "host": "localhost", "server_side_parameters": {**DELTA, **(settings or {})}}
    elif settings:
        profile["spark_config"] = settings
    formats = {"models": {"+file_format": "delta"}, "seeds": {"+file_format": "delta"}}
    write_yaml(folder / "dbt_project.yml", {"name": "bench", "version": "1.0", "profile": "bench", **formats})
    write_yaml(folder / "profiles.yml", {"bench": {"target": "dev", "outputs": {"dev": profile}}})
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def write_yaml(path: Path, content: Any) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def run(folder: Path, *command: str, limit: float = 600.0) -> Timing:
    """One dbt command in the project. Raises RuntimeError when it fails; a run over the limit is stopped."""
    log = folder / "logs" / "dbt.log"
    log.unlink(missing_ok=True)
    dbt = Path(sys.executable).with_name("dbt")
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    start = time.time()
    process = subprocess.Popen(
        [str(dbt), "--log-format-file", "json", "--log-level-file", "debug", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Timing(first_answer(log, start), None)
    end = time.time() - start
    if process.returncode != 0:
        raise RuntimeError(output.decode(errors="replace")[-3000:])
    return Timing(first_answer(log, start), end)


def first_answer(log: Path, start: float) -> float | None:
    """When dbt logged that its first statement was answered, in seconds after `start`."""
    if not log.exists():
        return None
    for line in log.read_text(encoding="utf-8").splitlines():
        info = json.loads(line)["info"]
        if info["name"] == "SQLQueryStatus":
            stamp = dt.datetime.fromisoformat(info["ts"].replace("Z", "+00:00"))
            return stamp.timestamp() - start
    return None
