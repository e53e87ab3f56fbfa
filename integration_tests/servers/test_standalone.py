"""A standalone cluster of two workers: the same tables as embedded, jobs that carry names, Ctrl-C, a lost executor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration_tests.servers.conftest import Project
from integration_tests.servers.core_models import MODELS
from integration_tests.servers.standalone import Cluster
from integration_tests.servers.ways import standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

_LONG = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select cast(a.id as int) as id, sum(pmod(hash(a.id, b.id), 7)) as n, rand() as draw
from range(0, 40, 1, 4) a cross join range({{ var('b', 10) }}) b group by a.id
"""
_ENDLESS = """
{{ config(materialized='table') }}
select sum(a.id * b.id % 7) as n from range(100000000) as a cross join range(100000000) as b
"""


def wait(ready: Callable[[], bool], what: str, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


def names(events: Path) -> set[str]:
    """Descriptions of all jobs in the event logs, which are those of their groups too."""
    found = set()
    for file in events.rglob("*"):
        if not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            if '"SparkListenerJobStart"' in line:
                properties: dict[str, Any] = json.loads(line).get("Properties", {})
                found.add(properties.get("spark.jobGroup.id", ""))
                assert properties.get("spark.jobGroup.id", "") in properties.get("spark.job.description", "")
    return found


def test_the_core_suite(tmp_path: Path) -> None:
    outcome = standalone(tmp_path, "delta")
    assert (outcome.failed, outcome.refused) == ({}, {})
    assert len(outcome.looked_at) > 100
    assert {f"dbt model.demo.{model.name}" for model in MODELS if model.materialized != "view"} <= names(
        tmp_path / "events"
    )


def test_a_lost_executor_and_ctrl_c(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        dev = {**cluster.profile(tmp_path / "events"), "schema": "demo", "second_reading": False}
        project = Project(
            tmp_path / "project", {"dev": dev}, {"models/long.sql": _LONG, "models/endless.sql": _ENDLESS}
        )
        log = project.folder / "logs" / "dbt.log"
        rows = {"query": "select id, n, draw from demo.long order by id"}
        first, before = project.run({"dbt": ["run", "--select", "long"]}, rows)
        assert first["success"], first

        def begin(*words: str) -> subprocess.Popen[str]:
            log.unlink(missing_ok=True)
            program = str(Path(sys.executable).with_name("dbt"))
            return subprocess.Popen(
                [program, "--no-use-colors", "run", "--profiles-dir", ".", *words],
                cwd=project.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={k: v for k, v in os.environ.items() if k not in ("DBT_PROFILES_DIR", "DBT_LOG_PATH")},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

        def sent(process: subprocess.Popen[str], text: str) -> bool:
            assert process.poll() is None, process.communicate()[0]
            return log.exists() and text in log.read_text(encoding="utf-8") and len(cluster.executors()) == 2

        dbt = begin("--select", "long", "--vars", "{b: 20000000}")
        try:
            wait(lambda: sent(dbt, "range(20000000)"), "the long statement")
            time.sleep(4)
            lost = cluster.kill_executor()
            said, _ = dbt.communicate(timeout=900)
        finally:
            dbt.kill()
        assert dbt.returncode == 0, said
        (after,) = project.run(rows)
        assert lost not in cluster.executors()
        assert [(row[0], row[2]) for row in after] == [(row[0], row[2]) for row in before]
        assert all(row[1] > old[1] for row, old in zip(after, before, strict=True))

        dbt = begin("--select", "endless")
        try:
            wait(lambda: sent(dbt, "cross join range(100000000)"), "the endless statement")
            time.sleep(4)
            assert cluster.applications()
            dbt.send_signal(signal.SIGINT)
            said, _ = dbt.communicate(timeout=300)
        finally:
            dbt.kill()
        assert dbt.returncode != 0 and "CANCEL query model.demo.endless" in said
        wait(lambda: not cluster.applications(), "the application's end", 60)
