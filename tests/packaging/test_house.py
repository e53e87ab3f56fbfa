"""Files for contributors and releases name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from spark_mv import __version__

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("file", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda file: file.name)
def test_loads(file: Path) -> None:
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["name"]


def test_every_suite_runs_in_the_workflow() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    suites = makefile.split("$(addprefix integration_tests/,", 1)[1].split(")", 1)[0].split()
    assert sorted(jobs["spark"]["strategy"]["matrix"]["suite"]) == sorted(suites)


def test_workflows_call_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = set()
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values():
            runs = [step["run"] for step in job["steps"] if "run" in step]
            called |= {run.split()[1].split("/")[0] for run in runs if run.startswith("make ")}
    assert {"lint", "test-unit", "docs", "release-check", "audit"} <= called
    for target in called:
        assert f"\n{target}:" in makefile or f"\n{target}/%:" in makefile, target


def test_citation_is_of_this_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__


def test_the_package_hub_can_take_the_dbt_package() -> None:
    """What its script asks of a repository: a name, a range of dbt, a licence, dependencies in the root if any; tags are of the wheel's version."""
    project = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    assert project["name"] == "dbt_spark_mv" and project["version"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert [one[:2] for one in project["require-dbt-version"]] == [">=", "<3"]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert not [file for file in ROOT.rglob("packages.yml") if not {".venv", "build"} & set(file.parts)]
