"""`spark-mv doctor` on real folders, locks and metadata. No Spark is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_mv.cli import main
from spark_mv.report.findings import Finding, State, findings_json, print_findings, problem, warning
from spark_mv.spark.adapter.open_project import open_project
from spark_mv.spark.doctor import catalogue, folders, machine, packages
from spark_mv.spark.doctor.examine import examine
from spark_mv.spark.doctor.patient import Patient
from spark_mv.spark.session.derby_lock import holder
from spark_mv.spark.session.jars import DELTA_COORDINATES, jar_folder

pytestmark = pytest.mark.unit
PROFILE = {"type": "spark_mv", "method": "session", "schema": "desk", "spark_config": {"spark.driver.memory": "512m"}}
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="locks are asked for on Linux")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose Java, cache and temporary folder are its own; the test stands in it."""
    for name in [name for name in os.environ if name.startswith(("DBT_", "SPARK_"))]:
        monkeypatch.delenv(name)
    root = tmp_path / "desk"
    root.mkdir()
    (root / "dbt_project.yml").write_text("name: desk\nversion: '1.0'\nprofile: desk\n", encoding="utf-8")
    profile(root)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("DBT_SPARK_MV_CACHE", str(tmp_path / "cache"))
    for coordinates in DELTA_COORDINATES.values():
        folder = jar_folder(coordinates)
        folder.mkdir(parents=True)
        (folder / f"{coordinates.split(':')[1]}-1.jar").touch()
    monkeypatch.chdir(root)
    return root


def profile(root: Path, **more: Any) -> None:
    target = {**PROFILE, **more}
    text = json.dumps({"desk": {"target": "dev", "outputs": {"dev": target}}})
    (root / "profiles.yml").write_text(text, encoding="utf-8")


def patient() -> Patient:
    return Patient.of(open_project())


def of(check: str, found: tuple[Finding, ...]) -> Finding:
    (one,) = (finding for finding in found if finding.check == check)
    return one


def test_a_sound_project_has_no_problems(project: Path) -> None:
    before = sorted(project.rglob("*"))
    done = CliRunner().invoke(main, ["doctor", "--format", "json"])
    data = json.loads(done.stdout)
    assert (data["format_version"], data["problems"], done.exit_code) == (1, 0, 0), done.output
    found = {one["check"]: one for one in data["findings"]}
    assert {"Python", "package dbt-core", "package dbt-spark", "package sqlglot", "package pyspark", "project"} <= set(
        found
    )
    assert {"profile", "Java", "Delta", "memory", "folders", "catalogue", "staging", "cache"} <= set(found)
    assert all(one["cure"] for one in data["findings"] if one["state"] != "ok")
    assert "method session" in found["profile"]["sentence"] and "17 at" in found["Java"]["sentence"]
    assert sorted(project.rglob("*")) == before, "doctor changes nothing"


def test_the_profile_reads_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As keys of models do. Which variables there are, dbt knows only within its own commands."""
    key = "{{ env_var('DBT_ENV_SECRET_KEY') }}"
    profile(project, schema="{{ env_var('DESK', 'none') }}", ai={"api_key": key})
    monkeypatch.setenv("DESK", "mine")
    monkeypatch.setenv("DBT_ENV_SECRET_KEY", "s3cret")
    opened = Context().run(open_project)
    assert (opened.problem, opened.config.credentials.schema, opened.config.credentials.ai) == (
        "",
        "mine",
        {"api_key": "s3cret"},
    )
    monkeypatch.delenv("DBT_ENV_SECRET_KEY")
    assert "Env var required but not provided: 'DBT_ENV_SECRET_KEY'" in Context().run(open_project).problem


def test_text_is_a_line_each_and_its_cure(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(project / "nowhere"))
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1 and "\x1b" not in done.output
    lines = done.output.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("problem  Java"))
    assert "there is no program bin/java in it" in lines[at] and lines[at + 1].strip().startswith("→ install a Java")
    assert lines[-1].startswith("1 problem, ")


def test_spark_is_not_started(project: Path) -> None:
    code = """
import sys
from spark_mv.spark.doctor.examine import examine
examine()
pyspark = sys.modules.get("pyspark")
assert pyspark is None or pyspark.SparkContext._gateway is None
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=project)


def test_java_too_old(project: Path) -> None:
    Path(os.environ["JAVA_HOME"], "release").write_text('JAVA_VERSION="11.0.2"\n')
    found = machine.java(patient(), "4.1.4")
    assert found.state is State.PROBLEM and "needs Java 17" in found.sentence and found.cure.startswith("install")
    assert machine.java(patient(), "3.5.1").state is State.OK


def test_java_of_a_server_is_its_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(project / "nowhere"))
    profile(project, host="sc://spark.example:15002/;token=hunter2hunter2")
    found = examine()
    assert of("Java", found).state is of("Delta", found).state is of("memory", found).state is State.OK
    assert "package grpcio" in {one.check for one in found} and "catalogue" not in {one.check for one in found}
    assert "hunter2" not in findings_json(found)


@pytest.mark.parametrize("release,coordinates", DELTA_COORDINATES.items())
def test_jars_of_delta(project: Path, release: str, coordinates: str) -> None:
    assert machine.delta(patient(), f"{release}.9").state is State.OK
    folder = jar_folder(coordinates)
    next(folder.glob("*.jar")).unlink()
    emptied = machine.delta(patient(), f"{release}.9")
    assert emptied.state is State.PROBLEM and str(folder) in emptied.cure
    folder.rmdir()
    missing = machine.delta(patient(), f"{release}.9")
    assert missing.state is State.WARNING and coordinates in missing.sentence and "warm-up" in missing.cure


def test_a_spark_without_delta(project: Path) -> None:
    assert machine.delta(patient(), "3.1.0").state is State.PROBLEM
    profile(project, spark_config={"spark.jars": "/x/delta-spark_2.12-3.3.3.jar"})
    assert machine.delta(patient(), "3.1.0").state is State.OK


@pytest.mark.parametrize(
    "memory,available,limit,state",
    [
        ("4g", 9000, None, State.OK),
        ("4g", 4200, None, State.WARNING),
        ("4g", None, None, State.OK),
        ("4g", 9000, 4200, State.PROBLEM),
        ("lots", 9000, None, State.PROBLEM),
    ],
)
def test_memory(project: Path, memory: str, available: float | None, limit: float | None, state: State) -> None:
    profile(project, spark_config={"spark.driver.memory": memory})
    assert machine.memory(patient(), available, limit).state is state


def test_what_the_system_says_of_memory(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    assert machine.free_memory(tmp_path / "meminfo") == 2.0
    assert machine.free_memory(tmp_path / "none") is None
    for text, limit in (("max\n", None), ("1073741824\n", 1024.0)):
        (tmp_path / "memory.max").write_text(text)
        assert machine.container_limit(tmp_path / "memory.max") == limit


def test_another_spark_home(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    assert [one.state for one in machine.spark_home("4.1.4")] == [State.PROBLEM]
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    (found,) = machine.spark_home("4.1.4")
    assert found.state is State.PROBLEM and "Spark 3.5.1, but PySpark is 4.1.4" in found.sentence
    assert [one.state for one in machine.spark_home("3.5.1")] == [State.OK]


def test_folders_that_cannot_be_written(project: Path) -> None:
    (project / "logs").write_text("a file where a folder should be")
    found = {one.check: one for one in examine()}
    assert found["folder logs"].state is State.PROBLEM and found["folder logs"].cure
    assert "logs" not in found["folders"].sentence and "warehouse" in found["folders"].sentence


def test_room_on_disk(tmp_path: Path) -> None:
    assert [one.check for one in folders.room({"a": tmp_path / "x" / "y", "b": tmp_path})] == ["disk"]
    states = [folders.said_of_room("logs", tmp_path, free).state for free in (50, 1000, 50_000)]
    assert states == [State.PROBLEM, State.WARNING, State.OK]


@pytest.fixture
def held(project: Path) -> Iterator[int]:
    """The metastore, open in another process as Derby does it: a lock on dbex.lck. Gives that process's id."""
    metastore = project / "spark-warehouse" / "metastore"
    metastore.mkdir(parents=True)
    (metastore / "service.properties").touch()
    (metastore / "dbex.lck").touch()
    code = "import fcntl, sys; file = open(sys.argv[1], 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(metastore / "dbex.lck")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        yield other.pid


@LINUX
def test_a_catalogue_that_another_process_holds(project: Path, held: int) -> None:
    metastore = project / "spark-warehouse" / "metastore"
    assert holder(metastore) == held
    found = catalogue.catalogue(patient())
    assert found.state is State.PROBLEM and f"process {held}" in found.sentence and "warehouse:" in found.cure
    assert not catalogue.alone(patient())


@LINUX
def test_the_lock_file_of_an_ended_process_holds_nothing(project: Path) -> None:
    metastore = project / "spark-warehouse" / "metastore"
    assert "made by the first run" in catalogue.catalogue(patient()).sentence
    metastore.mkdir(parents=True)
    assert catalogue.catalogue(patient()).state is State.WARNING
    for name in ("service.properties", "dbex.lck", "db.lck"):
        (metastore / name).touch()
    assert holder(metastore) is None
    found = catalogue.catalogue(patient())
    assert found.state is State.OK and "free" in found.sentence and catalogue.alone(patient())


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.catalogImplementation": "in-memory"},
        {"spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://host/metastore"},
        {"spark.hadoop.hive.metastore.uris": "thrift://host:9083"},
    ],
)
def test_a_catalogue_elsewhere(project: Path, settings: dict[str, str]) -> None:
    profile(project, spark_config=settings)
    assert catalogue.database(patient()) is None and catalogue.catalogue(patient()).state is State.OK


def test_a_catalogue_of_the_users_own(project: Path, tmp_path: Path) -> None:
    url = f"jdbc:derby:;databaseName={tmp_path / 'mine'};create=true"
    profile(project, spark_config={"spark.hadoop.javax.jdo.option.ConnectionURL": url})
    assert catalogue.database(patient()) == tmp_path / "mine"


def test_staging_tables_of_ended_runs(project: Path) -> None:
    tables = project / "spark-warehouse" / "tables" / "desk.db"
    now, old = f"{int(time.time()):x}", f"{int(time.time()) - 90_000:x}"
    for name in (
        f"triage__mv_stage_{now}_0123456789ab",
        f"triage__mv_stage_{old}_0123456789ab",
        "triage",
        f"x__mv_stage_s_{old}_0123456789ab_d",
    ):
        (tables / name).mkdir(parents=True)
        (tables / name / "part.parquet").write_bytes(b"x" * 2**20)
    found = folders.staging(patient(), alone=False)
    assert found.state is State.WARNING and "2 staging tables" in found.sentence and "(2 MB)" in found.sentence
    assert found.sentence.endswith("of triage, x")
    assert "3 staging tables" in folders.staging(patient(), alone=True).sentence


def test_unfinished_downloads(tmp_path: Path) -> None:
    (tmp_path / "jars" / ".fetch-1").mkdir(parents=True)
    assert folders.unfinished(tmp_path).state is State.OK
    found = folders.unfinished(tmp_path, time.time() + 7200)
    assert found.state is State.WARNING and ".fetch-1" in found.cure


def test_packages_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked stands in the metadata; here, in metadata that ask for something else."""
    asked = ["Requires-Python: >=3.99", "Requires-Dist: dbt-core>=99,<100", "Requires-Dist: nowhere-to-be-found>=1"]
    asked += ["Requires-Dist: sqlglot>=1", "Requires-Dist: rich>=99; extra == 'thrift'", "Provides-Extra: thrift"]
    folder = tmp_path / "dbt_spark_mv-0.0.1.dist-info"
    folder.mkdir()
    text = "\n".join(["Metadata-Version: 2.1", "Name: dbt-spark-mv", "Version: 0.0.1", *asked, ""])
    (folder / "METADATA").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {one.check: one for one in packages.packages()}
    assert (
        found["package dbt-core"].state is State.PROBLEM and ">=99,<100 is needed" in found["package dbt-core"].sentence
    )
    assert found["package nowhere-to-be-found"].sentence == "not installed, >=1 is needed"
    assert found["package nowhere-to-be-found"].cure == "pip install 'dbt-spark-mv'"
    assert found["package sqlglot"].state is State.OK and "package rich" not in found
    assert next(one for one in packages.packages(["thrift"]) if one.check == "package rich").state is State.PROBLEM
    assert packages.python().state is State.PROBLEM


def test_extras_of_the_profile(project: Path) -> None:
    assert patient().extras == ("embedded",)
    profile(project, ai={"provider": "local"})
    assert patient().extras == ("embedded", "local")
    profile(project, method="thrift", host="h")
    assert patient().extras == ("thrift",)
    assert {"pyhive", "thrift"} <= {one.name.lower() for one in packages.needed("dbt-spark-mv", "thrift")}


@pytest.mark.parametrize(
    "text,said",
    [
        ("other: {}", "Could not find profile named 'desk'"),
        ("desk: {target: dev, outputs: {prod: {type: spark_mv}}}", "does not have a target named 'dev'"),
        ("desk: {target: dev, outputs: {dev: {type: spark_vm, schema: s}}}", "spark_vm"),
        ("desk: {target: dev, outputs: {dev: {type: spark_mv, method: sesion, schema: s}}}", "sesion"),
        ("desk: [", ""),
    ],
)
def test_a_profile_that_is_wrong(project: Path, text: str, said: str) -> None:
    (project / "profiles.yml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(main, ["doctor", "--format", "json"])
    found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
    assert done.exit_code == 1 and found["profile"]["state"] == "problem" and said in found["profile"]["sentence"]
    assert found["Java"]["state"] == "ok", "the rest is looked at all the same"


def test_no_profile_and_no_project(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "profiles.yml").unlink()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert of("profile", examine()).state is State.PROBLEM
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    found = examine()
    assert of("project", found).state is State.WARNING and not any(one.state is State.PROBLEM for one in found)


def test_arguments_are_dbts_own(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = ["--project-dir", str(project), "--profiles-dir", str(project)]
    assert "desk, target dev" in of("profile", examine(where)).sentence
    done = CliRunner().invoke(main, ["doctor", "--format", "json", "--vars", "{a:", *where])
    assert done.exit_code == 1 and "not valid YAML" in done.stdout and json.loads(done.stdout)


@pytest.mark.parametrize(
    "words", [["doctor", "--vars", "{a:"], ["status", "-t", "nosuch"], ["status", "--vars", "{a:"]]
)
def test_what_dbt_says_of_an_error_is_not_printed_beside_ours(project: Path, words: list[str]) -> None:
    """In a process of its own: dbt makes its first logger when it is imported."""
    command = [sys.executable, "-m", "spark_mv.cli", words[0], "--format", "json", *words[1:]]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2) and "\x1b" not in done.stdout + done.stderr
    assert json.loads(done.stdout) if words[0] == "doctor" else done.stdout == ""


def test_texts_of_others_cannot_talk_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([problem("profile", "a\x1b[31mb\nc", "d\x07"), warning("x", "y", "z")])
    printed = capsys.readouterr().out
    assert "a[31mb c" in printed and not set(printed) & set("\x1b\x07") and "1 problem, 1 warning" in printed


def test_warm_up_without_java_says_what_to_do(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(project / "nowhere"))
    done = CliRunner().invoke(main, ["warm-up"])
    assert done.exit_code == 1 and "Error: JAVA_HOME is" in done.output and "install a Java" in done.output


def test_version() -> None:
    done = CliRunner().invoke(main, ["--version"])
    assert done.exit_code == 0 and "version 0." in done.output
