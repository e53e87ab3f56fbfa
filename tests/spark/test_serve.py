"""`spark-mv serve` without its Spark: real processes, real locks, real files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spark_mv.cli import main
from spark_mv.report.findings import State
from spark_mv.spark.adapter import serving
from spark_mv.spark.adapter.credentials import SparkMvCredentials
from spark_mv.spark.adapter.open_project import open_project
from spark_mv.spark.doctor import catalogue
from spark_mv.spark.doctor.patient import Patient
from spark_mv.spark.serve import state, use
from spark_mv.spark.session.session import CatalogueInUse, SessionError, why_no_start

pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no such server on Windows"),
]
USER = {"spark.driver.memory": "1g", "spark.sql.ansi.enabled": "false"}

SERVER = """
import dataclasses, json, os, sys, time
from pathlib import Path
from spark_mv.spark.serve import state
warehouse, about = Path(sys.argv[1]), json.loads(sys.argv[2])
folder = state.folder_of(warehouse)
lock = state.Lock(folder / state.LOCK, make=True)
assert lock.take(alone=True)
if about is not None:
    state.write(warehouse, dataclasses.replace(state.Server(**about), process=os.getpid()))
print("up", flush=True)
while not (folder / state.STOP).exists():
    time.sleep(0.05)
(folder / state.STATE).unlink(missing_ok=True)
"""
"""All of the server's process but its Spark."""


@pytest.fixture(autouse=True)
def _no_other_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("DBT_", "SPARK_"))]:
        monkeypatch.delenv(name)
    yield
    use.let_go()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    begun: list[subprocess.Popen[str]] = []

    def start(about: state.Server | None, warehouse: Path = tmp_path) -> int:
        said = json.dumps(vars(about) if about else None)
        command = [sys.executable, "-c", SERVER, str(warehouse), said]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        begun.append(process)
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        return process.pid

    yield start
    for process in begun:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def server(**other: Any) -> state.Server:
    import pyspark

    facts: dict[str, Any] = {
        "process": 1,
        "machine": state.this_machine(),
        "port": 15002,
        "token": "t0p",
        "since": time.time(),
        "idle_seconds": 60.0,
        "spark": pyspark.__version__,
        "python": state.this_python(),
        "settings": state.digests("t0p", USER),
    }
    return state.Server(**{**facts, **other})


def test_the_state_is_its_users_own_and_tells_no_secret(tmp_path: Path) -> None:
    (tmp_path / "serve").mkdir()
    told = server(settings=state.digests("t0p", {"spark.hadoop.fs.s3a.secret.key": "hunter2"}))
    state.write(tmp_path, told)
    file = tmp_path / "serve" / "server.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "hunter2" not in file.read_text()
    assert "t0p" not in repr(told) and "t0p" not in told.address and told.url.endswith("/;token=t0p")
    assert state.read(tmp_path) == told


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": 1}', "null"])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "serve").mkdir()
    (tmp_path / "serve" / "server.json").write_text(text)
    assert state.read(tmp_path) is None


def test_a_killed_server_is_noticed_whatever_its_number_is_now(tmp_path: Path, start: Any) -> None:
    process = start(server())
    assert state.running(tmp_path) == server(process=process, since=state.running(tmp_path).since)  # type: ignore[union-attr]
    os.kill(process, 9)
    os.waitpid(process, os.WNOHANG)
    deadline = time.monotonic() + 10
    while state.is_held(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    state.write(tmp_path, server(process=os.getpid()))  # its number belongs to another process now
    assert state.running(tmp_path) is None
    assert not (tmp_path / "serve" / "server.json").exists()
    assert use.server_to_use(USER, tmp_path) is None


def test_only_one_takes_the_lock_and_looking_does_not_stop_it(tmp_path: Path) -> None:
    first, second = (state.Lock(tmp_path / "serve" / "lock", make=True) for _ in range(2))
    assert first.take(alone=True) and not second.take(alone=True)
    assert state.is_held(tmp_path)
    first.free()
    assert second.take(alone=True)
    second.free()
    assert not state.is_held(tmp_path)


def test_dbt_uses_it_and_keeps_it(tmp_path: Path, start: Any) -> None:
    process = start(server())
    found = use.server_to_use(USER, tmp_path)
    assert found is not None and found.process == process
    assert state.in_use(tmp_path) and use.server_to_use(USER, tmp_path) == found
    with pytest.raises(serving.ServeError, match="--force"):
        serving.stop(tmp_path)
    use.let_go()
    assert not state.in_use(tmp_path)
    assert f"process {process}" in serving.stop(tmp_path)
    assert not state.is_held(tmp_path) and "no server" in serving.stop(tmp_path)


def test_a_server_that_ends_in_a_run_is_said(tmp_path: Path, start: Any) -> None:
    start(server())
    assert use.server_to_use(USER, tmp_path) is not None
    serving.stop(tmp_path, force=True)
    with pytest.raises(SessionError, match="ended during this run"):
        use.server_to_use(USER, tmp_path)


def test_not_where_the_settings_name_a_server(tmp_path: Path, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start(server())
    assert use.server_to_use({"spark.remote": "sc://other"}, tmp_path) is None
    monkeypatch.setenv("SPARK_REMOTE", "sc://other")
    assert use.server_to_use(USER, tmp_path) is None
    monkeypatch.setenv("SPARK_REMOTE", server().url)  # as `spark-mv serve --url` says it, for the notebook beside
    assert use.server_to_use(USER, tmp_path) is not None and state.in_use(tmp_path)
    assert "t0p" in cli(tmp_path, "--url", warehouse=str(tmp_path)).output


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"spark": "3.9.9"}, "PySpark 3.9.9 there"),
        ({"python": "2.7"}, "Python 2.7"),
        ({"machine": "far"}, "machine far"),
    ],
)
def test_a_server_of_something_else(tmp_path: Path, start: Any, other: dict[str, str], said: str) -> None:
    start(server(**other))
    with pytest.raises(SessionError, match=said):
        use.server_to_use(USER, tmp_path)


def test_one_that_starts_is_waited_for_and_one_that_hangs_is_said(tmp_path: Path, start: Any) -> None:
    start(None)
    assert "starts or ends" in serving.said_of(tmp_path)
    with pytest.raises(SessionError, match="neither answers nor ends"):
        use.server_to_use(USER, tmp_path, 0.3)


@pytest.mark.parametrize(
    ("now", "differ"),
    [
        (USER, []),
        ({**USER, "spark.driver.memory": "2g"}, ["spark.driver.memory"]),
        ({**USER, "spark.x": "1"}, ["spark.x"]),
        ({"spark.sql.ansi.enabled": "false"}, ["spark.driver.memory"]),
    ],
)
def test_settings_are_compared_both_ways(now: dict[str, str], differ: list[str]) -> None:
    assert server().other_settings(now) == differ
    if differ:
        with pytest.raises(SessionError, match=differ[0]):
            use.refuse_other_settings(None, server(), now)


def test_a_catalogue_in_use_is_told_from_all_that_this_start_logged(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("Caused by: ERROR XSDB6: of another day\n")
    earlier = log.stat().st_size
    frames = "".join(f"\tat org.apache.derby.Frame{n}\n" for n in range(300))
    log.write_text(log.read_text() + frames + "end\n")
    other = why_no_start(RuntimeError("no client"), tmp_path, log, earlier)
    assert not isinstance(other, CatalogueInUse) and "no client" in str(other) and str(other).endswith("end")
    log.write_text(log.read_text() + "Caused by: ERROR XSDB6: Another instance of Derby\n" + frames)
    assert isinstance(why_no_start(RuntimeError("no client"), tmp_path, log, earlier), CatalogueInUse)


@pytest.mark.parametrize(("said", "meant"), [("auto", "auto"), ("off", "off"), (False, "off")])
def test_the_word_of_the_profile(said: Any, meant: str) -> None:
    assert SparkMvCredentials.from_dict({"schema": "s", "serve": said}).serve == meant
    assert SparkMvCredentials.from_dict({"schema": "s"}).serve == "auto"


@pytest.mark.parametrize("said", ["on", True, 3, None])
def test_another_word_is_refused(said: Any) -> None:
    with pytest.raises(Exception, match="is not one of auto, off"):
        SparkMvCredentials(schema="s", serve=said)


def cli(root: Path, *arguments: str, **target: Any) -> Result:
    (root / "dbt_project.yml").write_text("name: desk\nversion: '1.0'\nprofile: desk\n")
    output = {"type": "spark_mv", "method": "session", "schema": "desk", "spark_config": USER, **target}
    (root / "profiles.yml").write_text(json.dumps({"desk": {"target": "dev", "outputs": {"dev": output}}}))
    folders = ("--project-dir", str(root), "--profiles-dir", str(root))
    return CliRunner().invoke(main, ["serve", *arguments, *folders])


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"serve": False}, "serve: off"),
        ({"host": "sc://far:15002"}, "without a `host`"),
        ({"method": "thrift", "host": "far"}, "method: session"),
        ({"formats": ["iceberg"]}, "is not served"),
    ],
)
def test_what_is_not_served(tmp_path: Path, target: dict[str, Any], said: str) -> None:
    done = cli(tmp_path, **target)
    assert (done.exit_code, said in done.output) == (2, True), done.output
    assert not (tmp_path / "spark-warehouse").exists()


def test_on_the_console(tmp_path: Path, start: Any) -> None:
    for action in ("--status", "--url"):
        done = cli(tmp_path, action)
        assert done.exit_code == 1 and "no server runs" in done.output
    process = start(server(), tmp_path / "spark-warehouse")
    done = cli(tmp_path, "--status")
    assert done.exit_code == 0 and f"process {process} serves" in done.output and "t0p" not in done.output
    assert cli(tmp_path, "--url").output == "sc://localhost:15002/;token=t0p\n"
    second = cli(tmp_path)
    assert second.exit_code == 1 and f"process {process} serves" in second.output and "--stop" in second.output
    assert cli(tmp_path, "--stop").exit_code == 0 and cli(tmp_path, "--status").exit_code == 1


def test_doctor_tells_who_has_the_catalogue(tmp_path: Path, start: Any) -> None:
    def found(**target: Any) -> Any:
        cli(tmp_path, "--status", **target)
        folders = ("--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path))
        return catalogue.catalogue(Patient.of(open_project(folders)))

    cli(tmp_path, "--status")
    user = serving.project_to_serve(("--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path))).user
    assert "made by the first run" in found().sentence
    start(server(settings=state.digests("t0p", user)), tmp_path / "spark-warehouse")
    served = found()
    assert served.state is State.OK and "which dbt uses" in served.sentence
    off = found(serve="off")
    assert off.state is State.PROBLEM and "spark-mv serve --stop" in off.cure
    other = found(spark_config={**USER, "spark.driver.memory": "3g"})
    assert other.state is State.WARNING and "spark.driver.memory" in other.sentence
