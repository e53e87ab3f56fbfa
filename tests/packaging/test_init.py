"""The template from which `dbt init` makes a profile; tests/packaging/test_wheel.py goes through `dbt init` itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

TEMPLATE = Path(__file__).parents[2] / "dbt" / "include" / "spark_mv" / "profile_template.yml"


@pytest.mark.parametrize("choice", list(yaml.safe_load(TEMPLATE.read_text())["prompts"]["_choose_connection_method"]))
def test_each_choice_gives_keys_that_the_credentials_know(choice: str) -> None:
    from spark_mv.spark.adapter.credentials import SparkMvCredentials

    asked = yaml.safe_load(TEMPLATE.read_text())["prompts"]
    keys = {key.removeprefix("_fixed_") for key in asked["_choose_connection_method"][choice]}
    keys |= {key for key in asked if not key.startswith("_")} - {"threads"}
    known = set(SparkMvCredentials.__dataclass_fields__)
    assert keys <= known


def test_spark_mv_init_makes_a_project_that_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner
    from dbt.cli.main import dbtRunner

    from spark_mv.cli import main
    from spark_mv.spark.adapter.starter import StarterError, make_project

    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(main, ["init", "desk"])
    assert made.exit_code == 0 and "cd desk && dbt build" in made.output
    monkeypatch.chdir(tmp_path / "desk")
    parsed = dbtRunner().invoke(["--quiet", "parse", "--profiles-dir", "."])
    assert parsed.success, parsed.exception
    names = {(str(node.resource_type), node.name) for node in parsed.result.nodes.values()}
    assert {("model", "visitors"), ("seed", "visits")} <= names and len(names) == 6
    assert not any(
        "{project_name}" in file.read_text()
        for file in (tmp_path / "desk").rglob("*")
        if file.suffix in (".yml", ".md")
    )

    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(main, ["init", "desk"])
    assert again.exit_code == 2 and "exists already" in again.output
    assert CliRunner().invoke(main, ["init", "a-b"]).exit_code == 2
    (tmp_path / "file").write_text("")
    with pytest.raises(StarterError, match=r"cannot be written \(.+\)\. Go to a folder"):
        make_project("desk", tmp_path / "file")
