"""Whose prompt files a model's are: those of its own project, also where that is a package of another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner

FILES = {
    "profiles.yml": "desk: {target: dev, outputs: {dev: {type: spark_mv, method: session, schema: s, warehouse: w}}}",
    "dbt_project.yml": "{name: desk, profile: desk, config-version: 2, version: '1.0.0'}",
    "packages.yml": "packages: [{local: helpers}]",
    "prompts/triage.md": "Ours.",
    "models/ours.sql": "select {{ ai_prompt('triage') }} as a, {{ ai_prompt('tone', package='helpers') }} as b",
    "helpers/dbt_project.yml": "{name: helpers, config-version: 2, version: '1.0.0', vars: {ai_prompt_path: texts}}",
    "helpers/texts/triage.md": "---\nversion: 7\n---\nTheirs.",
    "helpers/models/theirs.sql": "select {{ ai_prompt('triage') }} as a",
    "helpers/prompts/tone.md": "Be kind.",
}


def test_a_package_has_prompts_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    where = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    assert dbtRunner().invoke(["deps", *where]).success
    done = dbtRunner().invoke(["parse", *where])
    assert done.success, done.exception
    nodes = json.loads((tmp_path / "target" / "manifest.json").read_text())["nodes"]
    seen = {name: {k: v.split(" (")[0] for k, v in node["config"]["meta"].items()} for name, node in nodes.items()}
    assert seen == {
        "model.desk.ours": {"ai_prompt triage": "triage", "ai_prompt tone": "tone"},
        "model.helpers.theirs": {"ai_prompt triage": "triage 7"},
    }
    (tmp_path / "models" / "ours.sql").write_text("select {{ ai_prompt('tone', package='helper') }} as b")
    failed = dbtRunner().invoke(["parse", *where])
    assert "there is no package 'helper' in the project" in str(failed.exception)
    for nothing in ("none", "var('no_such', none)", "3"):
        (tmp_path / "models" / "ours.sql").write_text(f"select {{{{ ai_prompt({nothing}) }}}} as b")
        failed = dbtRunner().invoke(["parse", *where])
        assert "the first argument names a file in the folder of prompts, e.g. ai_prompt('triage')" in str(
            failed.exception
        )
