"""What `spark-mv status` and `spark-mv report` take from a project's manifest, as dbt itself makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_mv.spark.adapter.read_project import _children
from spark_mv.spark.adapter.starter import make_project

pytestmark = pytest.mark.unit
EXPOSURE = """
exposures:
  - {name: board, type: dashboard, owner: {name: team}, depends_on: [ref('visitors')]}
"""


def test_what_reads_a_model_in_a_project_with_seeds_and_tests(tmp_path: Path) -> None:
    from dbt.cli.main import dbtRunner

    project = make_project("desk", tmp_path)
    (project / "models" / "often.sql").write_text("select * from {{ ref('visitors') }} where visits > 1")
    (project / "models" / "board.yml").write_text(EXPOSURE)
    where = ["--project-dir", str(project), "--profiles-dir", str(project)]
    parsed = dbtRunner().invoke(["--quiet", "--no-send-anonymous-usage-stats", "parse", *where])
    assert parsed.success, parsed.exception
    read_by = {node.name for node in _children(parsed.result, "model.desk.visitors")}
    assert read_by == {"often", "board"}  # not the seed, which depends on nothing, nor the tests


@pytest.mark.parametrize("command", [["status"], ["report"], ["adopt", "visitors"], ["eject", "visitors"], ["serve"]])
def test_where_there_is_no_project_that_is_what_is_said(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from spark_mv.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # no ~/.dbt either, of which dbt speaks first
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert f"no dbt project in {tmp_path}" in " ".join(done.output.split())
