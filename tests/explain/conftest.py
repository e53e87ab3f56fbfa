"""A small project as dbt leaves it, for what reads it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

PROFILE = {
    "type": "spark_mv",
    "method": "session",
    "schema": "desk",
    "functions": {"score": {"determinism": "deterministic"}},
    "ai": {"functions": {"my_ai": {"prompt": "x"}}},
    "spark_config": {"spark.sql.session.timeZone": "Europe/Berlin"},
}
FILES = {
    "dbt_project.yml": "name: desk\nversion: '1.0'\nprofile: desk\nvars: {functions: {dice: {determinism: nondeterministic}}}\n",
    "profiles.yml": json.dumps({"desk": {"target": "dev", "outputs": {"dev": PROFILE}}}),
    "models/recent.sql": "{{ config(materialized='view') }}\nselect id, body, ts, current_date() as today from desk.tickets",
    "models/between.sql": "{{ config(materialized='ephemeral') }}\nselect * from {{ ref('recent') }}",
    "models/triage.sql": """{{ config(materialized='nondeterministic_mv', unique_key=['id'], freeze='seen_at', ai={'max_ai_calls': 9}) }}
select id, score(body) as score, dice() as dice, my_ai(body) as answer, today,
       current_timestamp() as seen_at
from {{ ref('between') }}""",
    "models/plain.sql": "{{ config(materialized='table') }}\nselect id, rand() as draw from {{ ref('typed') }}",
    "models/typed.sql": "{{ config(materialized='table') }}\nselect 1 as id",
    "models/switched_off.sql": "{{ config(enabled=false) }}\nselect 1 as id",
    "models/schema.yml": "models: [{name: typed, config: {contract: {enforced: true}}, columns: [{name: id, data_type: int}]}]",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as `dbt compile` leaves it. No Java is in reach, so that none can be started."""
    from dbt.cli.main import dbtRunner

    root = tmp_path_factory.mktemp("desk")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(root / "no-java"))
        where = ["--project-dir", str(root), "--profiles-dir", str(root)]
        quietly = ["--quiet", "--no-send-anonymous-usage-stats", "compile", "--no-populate-cache", "--no-introspect"]
        done = dbtRunner().invoke([*quietly, *where])
    assert done.success, done.exception
    return root


@pytest.fixture
def project(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it, in which the test stands."""
    root = tmp_path / "desk"
    shutil.copytree(compiled, root)
    monkeypatch.chdir(root)
    for name in [name for name in os.environ if name.startswith("DBT_")]:
        monkeypatch.delenv(name)
    yield root
