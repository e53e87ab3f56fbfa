"""`spark-mv explain MODEL`: what dbt itself left of a small project is read, and what is missing is said with its cure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spark_mv.cli import main
from spark_mv.explain.project_model import ModelError, model_names, project_model

pytestmark = pytest.mark.unit


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def edit(project: Path, change: Any) -> None:
    """The manifest with a change made to its nodes."""
    file = project / "target" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    change(manifest["nodes"])
    file.write_text(json.dumps(manifest), encoding="utf-8")


def test_all_is_taken_from_the_project(project: Path) -> None:
    data = json.loads(explain("triage", "--format", "json").stdout)
    assert data["errors"] == [] and data["unique_key"] == ["id"] and data["model"] == "triage"
    levels = {column["name"]: column["level"] for column in data["columns"]}
    assert levels == {
        "id": "deterministic",
        "score": "deterministic",  # declared in the profile
        "dice": "nondeterministic",  # declared as a variable
        "answer": "ai",  # declared in the profile, too
        "today": "command",  # the clock of the view, below an ephemeral model
        "seen_at": "command",
    }
    assert [column["name"] for column in data["columns"] if column["frozen"]] == ["seen_at"]
    assert data["tables"] == [{"name": "desk.tickets", "occurrences": 1, "via": ["desk.recent"]}]


def test_types_that_are_not_known_are_said_with_both_cures(project: Path) -> None:
    said = " ".join(explain("triage").output.split())
    assert "--schema" in said and "dbt docs generate" in said


def test_text_shows_the_compiled_sql(project: Path) -> None:
    shown = explain("triage")
    assert shown.exit_code == 0, shown.output
    line = next(line for line in shown.output.splitlines() if "| " in line and "dice() as dice" in line)
    assert line.strip().startswith(tuple("123456789"))
    assert "\x1b" not in shown.output


def test_columns_of_a_contract_are_known(project: Path) -> None:
    data = json.loads(explain("plain", "-k", "id", "--format", "json").stdout)
    assert data["supposed_tables"] == [] and not data["errors"]
    assert "note: it is materialized as table" in explain("plain").output


def test_columns_of_the_catalog_are_known(project: Path) -> None:
    assert json.loads(explain("triage", "--format", "json").stdout)["supposed_tables"] == ["desk.tickets"]
    edit(project, lambda nodes: nodes["model.desk.plain"]["config"]["contract"].update(enforced=False))
    edit(project, lambda nodes: nodes["model.desk.typed"]["config"]["contract"].update(enforced=False))
    assert json.loads(explain("plain", "--format", "json").stdout)["supposed_tables"] == ["desk.typed"]
    columns = {"ID": {"name": "id", "type": "bigint", "index": 1}}
    catalog = {"nodes": {"model.desk.typed": {"columns": columns}}, "sources": {}}
    (project / "target" / "catalog.json").write_text(json.dumps(catalog), encoding="utf-8")
    assert json.loads(explain("plain", "--format", "json").stdout)["supposed_tables"] == []


@pytest.mark.parametrize("name", ["triage", "desk.triage", "model.desk.triage"])
def test_names_of_a_model(project: Path, name: str) -> None:
    assert explain(name).output.startswith("triage: nondeterministic, keyed by id")


def test_the_file_of_a_model_is_the_model(project: Path, tmp_path: Path) -> None:
    """As somebody names it who completes a path; without its project, its Jinja is an error and the note tells the cure."""
    named = explain("models/triage.sql")
    assert named.output.startswith("triage: nondeterministic, keyed by id") and "has Jinja in it" in named.output
    (tmp_path / "alone.sql").write_text("select id from {{ ref('recent') }}", encoding="utf-8")
    alone = " ".join(explain(str(tmp_path / "alone.sql"), "-k", "id").output.split())
    assert "PARSE_ERROR" in alone and "alone.sql is not read as a model" in alone and "no model 'alone'" in alone


def test_options_win(project: Path, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"score": {"determinism": "nondeterministic"}}', encoding="utf-8")
    options = ["-k", "score", "--functions", str(tmp_path / "f.json"), "--model", "other", "--freeze", "today"]
    data = json.loads(explain("triage", *options, "--format", "json").stdout)
    assert (data["model"], data["unique_key"]) == ("other", ["score"])
    assert [column["name"] for column in data["columns"] if column["frozen"]] == ["today"]
    assert next(column for column in data["columns"] if column["name"] == "score")["level"] == "nondeterministic"


def test_time_zone_of_the_profile() -> None:
    from spark_mv.explain.question import Question

    assert Question("select 1", time_zone="Europe/Berlin").with_options(time_zone=None).time_zone == "Europe/Berlin"


def test_from_elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    where = ["--project-dir", str(project), "--profiles-dir", str(project)]
    assert explain("triage", *where).exit_code == 0
    missing = explain("triage")
    assert missing.exit_code == 2 and "no dbt project" in missing.output


def test_a_profile_that_cannot_be_read_is_a_note(project: Path) -> None:
    (project / "profiles.yml").write_text("desk: {outputs: {}}", encoding="utf-8")
    shown = explain("triage")
    assert shown.exit_code == 0 and "note: functions and time zone of the profile are not known: " in shown.output


def test_a_project_that_cannot_be_read_has_its_target_elsewhere(project: Path) -> None:
    (project / "dbt_project.yml").write_text("name: desk\nprofile: desk\ntarget-path: out\n", encoding="utf-8")
    (project / "target").rename(project / "out")
    assert explain("triage").exit_code == 0
    (project / "profiles.yml").write_text("desk: {outputs: {}}", encoding="utf-8")
    assert "The project itself cannot be read: " in explain("triage").output


def test_a_file_of_that_name_goes_first(project: Path) -> None:
    (project / "triage").write_text("select 7 as seven", encoding="utf-8")
    assert "seven" in explain("triage").output
    assert explain("models/nope.sql").exit_code == 2


def test_never_compiled(project: Path) -> None:
    edit(project, lambda nodes: [node.pop("compiled_code", None) for node in nodes.values()])
    assert explain("triage").exit_code == 0  # from the files under target/compiled
    shutil.rmtree(project / "target" / "compiled" / "desk" / "models")
    answer = explain("triage")
    assert answer.exit_code == 2 and "`dbt compile -s triage` does that" in answer.output
    shutil.rmtree(project / "target")
    answer = explain("triage")
    assert answer.exit_code == 2 and "`dbt compile -s triage` makes it" in answer.output


def test_a_view_that_was_not_compiled_is_a_note(project: Path) -> None:
    edit(project, lambda nodes: nodes["model.desk.recent"].pop("compiled_code"))
    (project / "target" / "compiled" / "desk" / "models" / "recent.sql").unlink()
    assert (
        "note: not looked through, since not compiled: recent; `dbt compile -s +triage` does that"
        in explain("triage").output
    )


def test_a_model_changed_since_is_a_note(project: Path) -> None:
    assert "note:" not in explain("triage").output
    with (project / "models" / "triage.sql").open("a", encoding="utf-8") as file:
        file.write("\nwhere id > 1")
    assert "note: models/triage.sql has changed since; `dbt compile -s triage`" in explain("triage").output


def test_a_model_compiled_without_rows_is_a_note(project: Path) -> None:
    edit(
        project,
        lambda nodes: nodes["model.desk.triage"].update(
            compiled_code="select id from (select * from a.b where false limit 0)"
        ),
    )
    assert "note: it was compiled last under --empty" in explain("triage").output


def test_a_config_that_a_run_refuses_is_a_note(project: Path) -> None:
    config = {"unique_keys": "id", "refresh": "sometimes", "unique_key": None}
    edit(project, lambda nodes: nodes["model.desk.triage"]["config"].update(config))
    output = explain("triage").output
    assert "note: a run refuses its config: unique_keys: there is no such setting; did you mean 'unique_key'?" in output
    assert "note: a run refuses its config: refresh: 'sometimes' is not one of" in output
    assert "error MISSING_UNIQUE_KEY" in output and "config: unique_key is missing" not in output


def test_a_word_of_the_ai_block_that_is_unknown_is_a_note(project: Path) -> None:
    edit(project, lambda nodes: nodes["model.desk.triage"]["config"].update(ai={"max_ai_cals": 3}))
    assert "(did you mean 'max_ai_calls'?)" in explain("triage").output


@pytest.mark.parametrize(
    "name,said",
    [("triaje", "did you mean 'triage'"), ("switched_off", "is disabled"), ("zzzzzz", "`dbt parse` renews it")],
)
def test_no_such_model(project: Path, name: str, said: str) -> None:
    answer = explain(name)
    assert answer.exit_code == 2 and said in " ".join(answer.output.split())


def test_versions_and_packages(project: Path) -> None:
    def versions(nodes: Any) -> None:
        for number in (1, 2):
            twin = {**nodes["model.desk.triage"], "version": number, "latest_version": 1}
            nodes[f"model.desk.triage.v{number}"] = {
                **twin,
                "unique_id": f"model.desk.triage.v{number}",
                "compiled_code": f"select {number} as id",
            }
        del nodes["model.desk.triage"]

    edit(project, versions)
    target = project / "target"
    assert project_model(project, target, "triage").sql == "select 1 as id"
    assert project_model(project, target, "triage.v2").sql == "select 2 as id"
    edit(project, lambda nodes: nodes["model.desk.triage.v2"].update(version=None, package_name="other"))
    with pytest.raises(ModelError, match="several models are called triage"):
        edit(project, lambda nodes: nodes["model.desk.triage.v1"].update(version=None))
        edit(project, lambda nodes: [nodes[f"model.desk.triage.v{n}"].update(latest_version=None) for n in (1, 2)])
        project_model(project, target, "triage")
    assert project_model(project, target, "other.triage").sql == "select 2 as id"


def test_python_models_have_no_sql(project: Path) -> None:
    edit(project, lambda nodes: nodes["model.desk.triage"].update(language="python"))
    assert "written in python" in explain("triage").output


@pytest.mark.parametrize("text", ["not json", "[]"])
def test_a_manifest_that_is_none(project: Path, text: str) -> None:
    (project / "target" / "manifest.json").write_text(text, encoding="utf-8")
    assert explain("triage").exit_code == 2
    assert model_names(project / "target") == []


@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_pipe_that_takes_ascii_only(tmp_path: Path, format_: str) -> None:
    (tmp_path / "m.sql").write_text("select id, rand() as `日本` from t", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "spark_mv.cli",
        "explain",
        str(tmp_path / "m.sql"),
        "-k",
        "id",
        "--format",
        format_,
    ]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    if format_ == "json":
        assert json.loads(done.stdout)["columns"][1]["name"] == "日本"
    else:
        assert b"\\u65e5\\u672c" in done.stdout


def test_a_file_needs_no_dbt(tmp_path: Path) -> None:
    (tmp_path / "m.sql").write_text("select 1 as id", encoding="utf-8")
    code = """
import sys
for stranger in ("dbt", "pyspark", "agate"):
    sys.modules[stranger] = None  # importing it fails
from spark_mv.cli import main
main(["explain", sys.argv[1], "-k", "id"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.sql")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("m: deterministic, keyed by id")


@pytest.mark.parametrize("sql", ["{{ config() }} select 1 as id", "", "select 1 as id; select 2 as id"])
def test_what_cannot_be_read_is_not_called_deterministic(sql: str) -> None:
    said = CliRunner().invoke(main, ["explain", "-", "-k", "id"], input=sql)
    assert said.exit_code == 0 and said.output.startswith("model: cannot be judged, keyed by id")
    data = json.loads(CliRunner().invoke(main, ["explain", "-", "-k", "id", "--format", "json"], input=sql).output)
    assert data["level"] == "nondeterministic" and data["errors"]
