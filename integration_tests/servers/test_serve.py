"""`spark-mv serve`: one Spark for several processes of dbt, and the same tables as without it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_mv.spark.serve.state import FOLDER, LOG, STATE, Server, is_held, running, users_lock

pytestmark = pytest.mark.slow

_DRAWN = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, name, rand() as draw, current_date() as today from {{ ref('people') }}
where d > date_sub(current_date(), 3)
"""
FILES = {
    "seeds/people.csv": "id,name,d\n1,Ada,2026-01-30\n2,O'Hara,2026-01-31\n3,back\\slash,2026-02-01\n",
    "models/one.sql": _DRAWN,
    "models/two.sql": _DRAWN,
    "dbt_project.yml": "name: probe\nversion: '1.0'\nprofile: probe\nflags: {send_anonymous_usage_stats: false}\n",
}
_ROWS = "select 1 as m, * from {{ ref('one') }} union all select 2, * from {{ ref('two') }} order by m, id"
_STRANGER = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote(sys.argv[1]).create()
print("answer", session.range(7).count())
session.stop()
"""


_AFTER_ITS_END = """
import os, signal, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from spark_mv.spark.serve.state import is_held
from spark_mv.spark.serve.use import end_with, server_to_use
warehouse = Path(sys.argv[1])
server = server_to_use({}, warehouse)
session = SparkSession.builder.remote(server.url).create()
end_with(session, server, warehouse)
assert session.range(7).count() == 7
os.kill(server.process, signal.SIGKILL)
while is_held(warehouse):
    time.sleep(0.1)
try:
    session.range(7).count()
except Exception as error:
    print(error, flush=True)
os._exit(0)
"""


class Desk:
    """A project whose dbt and spark-mv run in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "spark-warehouse"
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        self.profile()

    def profile(self, settings: dict[str, Any] | None = None, **more: Any) -> None:
        own = {"spark.driver.memory": "1g", "spark.master": "local[2]", "spark.sql.shuffle.partitions": 1}
        target = {
            "type": "spark_mv",
            "method": "session",
            "schema": "probe",
            "spark_config": {**own, **(settings or {})},
        }
        target |= more
        text = json.dumps({"probe": {"target": "dev", "outputs": {"dev": target}}})
        (self.folder / "profiles.yml").write_text(text, encoding="utf-8")

    def begin(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).with_name(program)), *arguments, "--profiles-dir", "."]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def ask(self, program: str, *arguments: str, status: int = 0) -> str:
        process = self.begin(program, *arguments)
        said, _ = process.communicate(timeout=240)
        assert process.returncode == status, said
        return said

    def run(self, day: int, *more: str) -> tuple[str, ...]:
        return ("run", *more, "--vars", json.dumps({"as_of": f"2026-02-{day:02} 06:00:00"}))

    def rows(self) -> list[dict[str, Any]]:
        return list(json.loads(self.show(_ROWS))["show"])

    def show(self, query: str) -> str:
        return self.ask("dbt", "--quiet", "show", "--limit", "-1", "--output", "json", "--inline", query)

    @property
    def own_spark(self) -> bool:
        """Whether dbt has started a Spark of its own."""
        return (self.folder / "logs" / "spark.log").exists()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    if server := running(made.warehouse):
        os.kill(server.process, signal.SIGKILL)


def test_several_processes_share_one_spark(desk: Desk) -> None:
    assert "no server runs" in desk.ask("spark-mv", "serve", "--status", status=1)
    desk.ask("spark-mv", "serve")
    server = running(desk.warehouse)
    assert server is not None
    assert stat.S_IMODE((desk.warehouse / FOLDER / STATE).stat().st_mode) == 0o600
    assert server.token not in Path(f"/proc/{server.process}/cmdline").read_text() if sys.platform == "linux" else True
    second = desk.ask("spark-mv", "serve", status=1)
    assert f"process {server.process} serves" in second and "--stop" in second

    desk.ask("dbt", "seed")
    both = [desk.begin("dbt", *desk.run(1, "-s", model, "--target-path", model)) for model in ("one", "two")]
    for process in both:
        said, _ = process.communicate(timeout=240)
        assert process.returncode == 0 and "Traceback" not in said, said
    assert not desk.own_spark
    served = desk.rows()
    assert [(row["m"], row["id"], row["name"]) for row in served] == [
        (m, n, name) for m in (1, 2) for n, name in ((1, "Ada"), (2, "O'Hara"), (3, "back\\slash"))
    ]

    _only_with_the_token(server)
    # the first two belong to a session and hold there; the others to the start, and are Spark's own or not
    desk.profile({"spark.sql.shuffle.partitions": 2, "spark.databricks.delta.snapshotPartitions": 2})
    assert '"value": "2"' in desk.show("set spark.sql.shuffle.partitions")
    desk.profile({"spark.driver.memory": "1100m", "spark.sql.extensions": "x.Y", "spark.sql.ansi.enabled": True})
    refused = desk.ask("dbt", *desk.run(1), status=2)
    assert "profile has: spark.driver.memory, spark.sql.extensions. Start it again" in refused and "--stop" in refused
    desk.profile(serve=False)
    refused = desk.ask("dbt", *desk.run(1), status=2)
    assert "spark-mv serve --stop" in refused and "serve: auto" in refused
    desk.profile()
    assert "process" in desk.ask("spark-mv", "serve", "--status")
    assert desk.ask("spark-mv", "serve", "--url").strip() == server.url

    assert f"ended (process {server.process})" in desk.ask("spark-mv", "serve", "--stop")
    assert "no server runs" in desk.ask("spark-mv", "serve", "--stop")
    (desk.folder / "logs" / "spark.log").unlink()
    assert desk.rows() == served
    assert desk.own_spark


def test_a_killed_server_is_noticed(desk: Desk) -> None:
    desk.ask("spark-mv", "serve")
    server = running(desk.warehouse)
    assert server is not None
    os.kill(server.process, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while is_held(desk.warehouse) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "no server runs" in desk.ask("spark-mv", "serve", "--status", status=1)
    assert not (desk.warehouse / FOLDER / STATE).exists()
    assert "INSERT 3" in desk.ask("dbt", "seed")
    assert desk.own_spark


def test_a_server_that_is_gone_is_not_asked_again(desk: Desk) -> None:
    """Spark's client would ask for ten minutes, at each statement."""
    desk.ask("spark-mv", "serve")
    done = subprocess.run(
        [sys.executable, "-c", _AFTER_ITS_END, str(desk.warehouse)], capture_output=True, text=True, timeout=100
    )
    assert "is gone. Spark was ended while this ran" in done.stdout, done.stdout + done.stderr


def test_an_idle_server_ends_unless_dbt_has_it_in_use(desk: Desk) -> None:
    desk.ask("spark-mv", "serve", "--idle", "0.1")
    used = users_lock(desk.warehouse)
    assert used.take(alone=False)
    time.sleep(16)  # idle for 6 seconds, and asked every 5
    assert running(desk.warehouse) is not None
    assert "--force" in desk.ask("spark-mv", "serve", "--stop", status=1)
    used.free()
    deadline = time.monotonic() + 30
    while is_held(desk.warehouse) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not is_held(desk.warehouse)
    assert "idle for 6 seconds" in (desk.warehouse / FOLDER / LOG).read_text(encoding="utf-8")


def _only_with_the_token(server: Server) -> None:
    def knock(url: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _STRANGER, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert "answer 7" in knock(server.url).stdout
    for url in (server.address, f"{server.address}/;token=wrong"):
        done = knock(url)
        assert done.returncode != 0 and "answer" not in done.stdout
        assert "UNAUTHENTICATED" in done.stderr or "token" in done.stderr.lower(), done.stderr[-2000:]
