"""A dbt project beside a server, run step by step in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

SECRET = "sk-planted-5e2d7f14"

DBT_PROJECT = """
name: demo
version: "1.0"
profile: demo
flags: {send_anonymous_usage_stats: false}
"""

EXECUTE_SQL = "{% macro execute_sql(text) %}{% do run_query(text) %}{% endmacro %}"

RAW = "id,body,d\n" + "".join(f"{n},text {n % 6},2026-01-{30 + n % 2}\n" for n in range(12))

#: AI, random and clock columns in one model
TICKETS = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, body, d, rand() as draw, current_date() as today,
       ai_classify(body, array('complaint', 'question', 'praise')) as kind
from {{ ref('raw') }}
where d > date_sub(current_date(), 3)
"""

#: the same questions as in tickets, and answers to group by
KINDS = """
{{ config(materialized='nondeterministic_mv', unique_key='kind') }}
select ai_classify(body, array('complaint', 'question', 'praise')) as kind, count(*) as n
from {{ ref('raw') }}
group by 1
"""

TICKETS_AND_KINDS = {"models/tickets.sql": TICKETS, "models/kinds.sql": KINDS, "seeds/raw.csv": RAW}


class Project:
    """A project folder; `run` takes steps as dbt_steps.py wants them."""

    def __init__(
        self, folder: Path, targets: dict[str, dict[str, Any]], files: Mapping[str, str] = TICKETS_AND_KINDS
    ) -> None:
        self.folder = folder
        self.environment = dict(os.environ)
        self.output = ""
        for name, text in {
            "dbt_project.yml": DBT_PROJECT,
            "profiles.yml": json.dumps({"demo": {"target": "dev", "outputs": targets}}),
            "macros/execute_sql.sql": EXECUTE_SQL,
            **files,
        }.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def run(self, *steps: dict[str, Any]) -> list[Any]:
        program = Path(__file__).with_name("dbt_steps.py")
        done = subprocess.run(
            [sys.executable, str(program), str(self.folder)],
            input=json.dumps(steps),
            capture_output=True,
            text=True,
            timeout=1800,
            cwd=self.folder,
            env=self.environment,
            check=False,
        )
        self.output += done.stdout + done.stderr
        line = next((s for s in done.stdout.splitlines() if s.startswith("RESULT ")), None)
        assert line, (done.stdout + done.stderr)[-4000:]
        return list(json.loads(line[7:]))

    def seen(self, endpoint: Any) -> dict[str, int]:
        return dict(endpoint.seen.asked)


def target(endpoint_url: str, **connection: Any) -> dict[str, Any]:
    """An output of the profile: how to connect, and AI functions by the endpoint."""
    ai = {"provider": "openai", "base_url": endpoint_url, "model": "m", "api_key": SECRET, "concurrency": 4}
    return {"type": "spark_mv", "schema": "demo", "threads": 2, **connection, "ai": ai}


def day(number: int, *more: str) -> dict[str, Any]:
    """A run of all models in the morning of that day of February."""
    return {"dbt": ["run", *more, "--vars", json.dumps({"as_of": f"2026-02-{number:02} 06:00:00"})]}


def response(step: Any, model: str) -> dict[str, Any]:
    """What a model's run said; fails with dbt's message when it did not succeed."""
    node = step["nodes"][model]
    assert node["status"] == "success", node["message"]
    return dict(node["response"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")
