"""What a user installs is what the repository holds: no file missing, none too many."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (built,) = out.glob("*.whl")
    return built


def _in_repository() -> set[str]:
    """Paths that a wheel should have, from the files under version control."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    found = set()
    for name in listed.stdout.splitlines():
        if not (ROOT / name).is_file():
            continue
        if name.startswith("adapter/spark_mv/"):
            found.add(name.removeprefix("adapter/"))
        elif name.startswith("dbt/"):
            found.add(name)
        elif name.startswith("macros/"):
            found.add("dbt/include/spark_mv/" + name)
    return found


def test_wheel_holds_the_files_of_the_repository(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    missing = _in_repository() - names
    assert not missing, f"not in the wheel: {sorted(missing)}"
    untracked = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    known = {name.removeprefix("adapter/") for name in untracked}
    known |= {"dbt/include/spark_mv/" + name for name in untracked}
    extra = names - _in_repository() - known
    assert not extra, f"in the wheel, but not in the repository: {sorted(extra)}"


def test_wheel_leaves_dbts_own_packages_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not {"dbt/__init__.py", "dbt/adapters/__init__.py", "dbt/include/__init__.py"} & set(names)
    assert not [name for name in names if name.startswith(("tests/", "integration_tests/", "benchmarks/", "examples/"))]


def test_wheel_names_its_extras(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    text = archive.read(metadata).decode()
    for extra in ("embedded", "local", "openai", "dev"):
        assert f"Provides-Extra: {extra}" in text
    assert "Requires-Dist: pyspark" in text
    assert "Requires-Python: <3.14,>=3.10" in text


def _project(folder: Path, kind: str, package: bool) -> Path:
    folder.mkdir()
    (folder / "models").mkdir()
    (folder / "models" / "one.sql").write_text(
        "{{ config(materialized='nondeterministic_mv', unique_key='id') }} select 1 as id, rand() as draw"
    )
    (folder / "dbt_project.yml").write_text("name: probe\nversion: '1.0.0'\nprofile: probe\n")
    host = "      host: localhost\n" if kind == "spark" else ""
    (folder / "profiles.yml").write_text(
        f"probe:\n  target: dev\n  outputs:\n    dev:\n      type: {kind}\n      method: session\n      schema: s\n{host}"
    )
    if package:
        (folder / "packages.yml").write_text(f"packages:\n  - local: {ROOT}\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind,package", [("spark_mv", False), ("spark", True), ("spark_mv", True)])
def test_fresh_environment_parses(wheel: Path, fresh: Path, tmp_path: Path, kind: str, package: bool) -> None:
    """The adapter alone, its macros as a package of `dbt deps` on plain dbt-spark, and both at once."""
    project = _project(tmp_path / "project", kind, package)
    steps = [["deps"]] if package else []
    for step in [*steps, ["parse"]]:
        command = [str(fresh / "dbt"), "--no-send-anonymous-usage-stats", *step, "--profiles-dir", str(project)]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, textwrap.shorten(done.stdout + done.stderr, 3000)


@pytest.mark.slow
def test_init_writes_a_profile_that_dbt_reads(fresh: Path, tmp_path: Path) -> None:
    """`dbt init` lists adapters that lie beside dbt's own, so only an installed wheel's; answers come from a pipe."""
    about = "from dbt.version import _get_adapter_plugin_names as names; print(list(names()).index('spark_mv') + 1)"
    python = [str(fresh / "python"), "-c", about]
    number = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    def dbt(*command: str, answers: str = "") -> str:
        program = [str(fresh / "dbt"), "--no-send-anonymous-usage-stats", *command, "--profiles-dir", str(tmp_path)]
        done = subprocess.run(program, cwd=tmp_path, input=answers, capture_output=True, text=True, check=False)
        assert done.returncode == 0, textwrap.shorten(done.stdout + done.stderr, 3000)
        return done.stdout

    # the adapter, the connection method, the schema; the number of threads as the template has it
    dbt("init", "shop", answers=f"{number}\n1\nanalytics\n\n")
    profile = yaml.safe_load((tmp_path / "profiles.yml").read_text(encoding="utf-8"))
    wanted = {"type": "spark_mv", "method": "session", "schema": "analytics", "threads": 2}
    assert profile["shop"]["outputs"]["dev"] == wanted
    assert "my_first_dbt_model" in dbt("list", "--project-dir", "shop", "--resource-type", "model")


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new virtual environment with nothing but the wheel, pyspark and what they need."""
    home = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    programs = home / ("Scripts" if sys.platform == "win32" else "bin")
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", str(ROOT / "constraints.txt"), f"{wheel}[embedded]"], check=True)
    return programs
