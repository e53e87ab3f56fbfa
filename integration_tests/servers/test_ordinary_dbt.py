"""Ordinary dbt over a Spark Connect server: seeds, SQL and Python models, MERGE, a snapshot, the catalogue."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integration_tests.servers.server import CONNECT, Server

pytestmark = pytest.mark.slow

_MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, name, {{ 2 if is_incremental() else 1 }} as round from {{ ref('people') }}
"""
_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    people = dbt.ref("people")
    return people.filter(people.id > 1).withColumn("by", people.id * 10)
"""
_SNAPSHOT = """
snapshots:
  - name: people_then
    relation: ref('people')
    config: {strategy: check, check_cols: all, unique_key: [id, name]}
"""
FILES = {
    "seeds/people.csv": "id,name\n1,Ada\n2,O'Hara\n3,back\\slash\n",
    "models/merged.sql": _MERGED,
    "models/filtered.py": _PYTHON,
    "snapshots/people_then.yml": _SNAPSHOT,
    "dbt_project.yml": "name: probe\nversion: '1.0'\nprofile: probe\nflags: {send_anonymous_usage_stats: false}\n",
}


def test_a_project_over_connect(home: Path, tmp_path: Path) -> None:
    """Each command ends with its process: a session that is left open on the server would keep it waiting."""
    with Server(CONNECT, home / "server") as server:
        profile: dict[str, Any] = {"type": "spark_mv", "method": "session", "schema": "probe", "threads": 2}
        profile["host"] = f"sc://127.0.0.1:{server.port}"
        files = {**FILES, "profiles.yml": json.dumps({"probe": {"target": "dev", "outputs": {"dev": profile}}})}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")

        def dbt(*command: str) -> str:
            program = Path(sys.executable).with_name("dbt")
            answer = subprocess.run(
                [str(program), "--no-use-colors", *command, "--profiles-dir", "."],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=240,
            )
            assert answer.returncode == 0, answer.stdout + answer.stderr
            return answer.stdout

        for _ in range(2):
            dbt("build")
        query = (
            "select m.id, m.name, m.round, f.by from {{ ref('merged') }} m "
            "left join {{ ref('filtered') }} f on m.id = f.id order by 1"
        )
        shown = json.loads(dbt("--quiet", "show", "--output", "json", "--inline", query))["show"]
        assert [tuple(row.values()) for row in shown] == [
            (1, "Ada", 2, None),
            (2, "O'Hara", 2, 20),
            (3, "back\\slash", 2, 30),
        ]
        dbt("docs", "generate")
        catalog = json.loads((tmp_path / "target" / "catalog.json").read_text(encoding="utf-8"))
        assert len(catalog["nodes"]) == 4
