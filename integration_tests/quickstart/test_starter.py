"""The project that `spark-mv init` makes builds at once, with its tests, in a process of its own; and dbt's own starter runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BIN = Path(sys.executable).parent


def run(folder: Path, *command: str, given: str | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DBT_")}
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=folder,
        env={**environment, "HOME": str(folder)} if given else environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def results(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    return {one["unique_id"].split(".", 2)[2]: one for one in found}


@pytest.mark.slow
def test_spark_mv_init_and_dbt_build(tmp_path: Path) -> None:
    run(tmp_path, "spark-mv", "init", "desk")
    project = tmp_path / "desk"
    run(project, "dbt", "build")
    built = results(project)
    assert len(built) == 6 and {one["status"] for one in built.values()} == {"success", "pass"}
    assert built["visitors"]["adapter_response"]["rows_inserted"] == 5
    assert "visitors" in run(project, "spark-mv", "status")  # what the project's README goes on with
    assert "visits" in run(project, "spark-mv", "explain", "visitors")
    run(project, "spark-mv", "report")
    assert "visitors" in (project / "target" / "spark_mv_report.html").read_text(encoding="utf-8")
    # folders of the project's own
    file = project / "dbt_project.yml"
    file.write_text(f'{file.read_text()}\nmacro-paths: ["makros"]\ntarget-path: out\n')
    assert "visitors: planned" in run(project, "spark-mv", "plan", "desk.visitors")
    assert list((project / "makros" / "spark_mv_plans").glob("*.sql"))
    run(project, "spark-mv", "report")
    assert (project / "out" / "spark_mv_report.html").is_file()
    assert "nothing to ask: visitors" in run(project, "spark-mv", "cost", "desk.visitors")
    run(project, "spark-mv", "eject", "visitors", "--apply")
    assert "never run" in run(project, "spark-mv", "status")
