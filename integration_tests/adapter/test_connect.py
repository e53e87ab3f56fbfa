"""dbt against a Spark Connect server: seeds, SQL and Python models, MERGE and a snapshot, with Spark in another process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.find_spark_home import _find_spark_home

from spark_mv.spark.jars import delta_coordinates, local_jars
from spark_mv.spark.java import find_java

pytestmark = pytest.mark.slow

_MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, name, {{ 2 if is_incremental() else 1 }} as round from {{ ref('people') }}
"""
_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    people = dbt.ref("people")
    return people.filter(people.id > 1).withColumn("by", people.id * 10)
"""
_SNAPSHOT = """
snapshots:
  - name: people_then
    relation: ref('people')
    config: {strategy: check, check_cols: all, unique_key: [id, name]}
"""
FILES = {
    "seeds/people.csv": "id,name\n1,Ada\n2,O'Hara\n3,back\\slash\n",
    "models/merged.sql": _MERGED,
    "models/filtered.py": _PYTHON,
    "snapshots/people_then.yml": _SNAPSHOT,
    "dbt_project.yml": "name: probe\nversion: '1.0'\nprofile: probe\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
    pytest.importorskip("grpc_status", reason="Spark Connect's client needs grpcio-status")
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(_find_spark_home())
    jars = local_jars(delta_coordinates(pyspark.__version__), find_java(pyspark.__version__), home / "jars")
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    try:
        while not _listens(port):
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            time.sleep(0.3)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_project_over_connect(server: str, tmp_path: Path) -> None:
    profile: dict[str, Any] = {"type": "spark_mv", "method": "session", "schema": "probe", "threads": 2}
    profile["spark_config"] = {"spark.remote": server}
    files = {**FILES, "profiles.yml": json.dumps({"probe": {"target": "dev", "outputs": {"dev": profile}}})}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def dbt(*command: str) -> str:
        program = Path(sys.executable).with_name("dbt")
        answer = subprocess.run(
            [str(program), "--no-use-colors", *command, "--profiles-dir", "."],
            cwd=tmp_path,
            env={key: value for key, value in os.environ.items() if key != "DBT_LOG_PATH"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    for _ in range(2):
        dbt("build")
    query = (
        "select m.id, m.name, m.round, f.by from {{ ref('merged') }} m left join {{ ref('filtered') }} f on m.id = f.id"
    )
    shown = json.loads(dbt("--quiet", "show", "--output", "json", "--inline", query + " order by 1"))["show"]
    assert [tuple(row.values()) for row in shown] == [
        (1, "Ada", 2, None),
        (2, "O'Hara", 2, 20),
        (3, "back\\slash", 2, 30),
    ]
    dbt("docs", "generate")
    catalog = json.loads((tmp_path / "target" / "catalog.json").read_text(encoding="utf-8"))
    assert len(catalog["nodes"]) == 4
