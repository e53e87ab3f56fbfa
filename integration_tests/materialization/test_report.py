"""`spark-mv status` and `spark-mv report` read what real runs have recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dbt.tests.util import run_dbt

from spark_mv.cli import main
from spark_mv.report.facts import from_json

RECENT = "{{ config(materialized='view') }} select * from {{ target.schema }}.src"
MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['seen_at']) }}
select id, ai_analyze_sentiment(body) as mood, rand() as split, current_timestamp() as seen_at
from {{ ref('recent') }}
where d > current_date() - interval 5 days
"""
BROKEN = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id % 3 as id, uuid() as token, 'hunter-hunter' as said from {{ target.schema }}.src
"""
NEVER = """
{{ config(materialized='nondeterministic_mv', meta={'nondeterministic_mv': {'unique_key': 'id', 'refresh': 'full'}}) }} select id, rand() as r from {{ ref('mv') }}
"""

REFUSED = (
    "{{ config(materialized='nondeterministic_mv', unique_key='id') }} select rand() as id, d from {{ ref('recent') }}"
)
UNRENDERED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
{% if execute %}{{ exceptions.raise_compiler_error('no such day, hunter-hunter') }}{% endif %} select id from {{ ref('recent') }}
"""
PROPERTIES = """
sources:
  - name: operations
    schema: "{{ target.schema }}"
    tables:
      - name: mv_runs
        config: {freshness: {warn_after: {count: 1, period: day}}}
exposures:
  - {name: runs_of_models, type: dashboard, owner: {name: data team}, depends_on: ["source('operations', 'mv_runs')"]}
"""


class TestReport:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        ai = {"provider": "scripted", "api_key": "hunter-hunter", "price_per_1k_input_tokens": 2.0}
        return {**dbt_profile_target, "run_history": True, "ai": ai}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        more = {"refused.sql": REFUSED, "unrendered.sql": UNRENDERED, "models.yml": PROPERTIES}
        return {"recent.sql": RECENT, "mv.sql": MODEL, "broken.sql": BROKEN, "never.sql": NEVER, **more}

    def test_status_and_report(self, project: Any, mv: Any, sql: Any, tmp_path: Path) -> None:
        sql(
            "create table {schema}.src using delta as select id, concat('text ', id % 4) as body, "
            "date'2026-02-01' - cast(id % 3 as int) as d from range(9)"
        )
        run_dbt(["run", "--select", "recent"])
        mv.run("2026-02-01 06:00:00")
        mv.run("2026-02-04 06:00:00")
        mv.name = "broken"
        mv.run("2026-02-04 06:00:00", expect_pass=False)
        run_dbt(["run", "--select", "refused", "unrendered"], expect_pass=False)

        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        found = CliRunner().invoke(main, ["status", *where, "--format", "json"])
        assert found.exit_code == 1, found.output
        status = json.loads(found.stdout)
        models = {m["model"]: m for m in status["models"]}
        assert {name: m["condition"] for name, m in models.items()} == {
            "broken": "failed", "refused": "failed", "unrendered": "failed", "never": "never run", "mv": "due"
        }  # fmt: skip
        # what was refused is in mv_runs, what Jinja stopped is in dbt's own results alone
        assert (
            "PER_ROW_IN_UNIQUE_KEY" in models["refused"]["last_run"]["message"]
            and "before it had a plan" in models["refused"]["sentence"]
        )
        assert "no such day, *****" in models["unrendered"]["last_run"]["message"]
        assert sql("select model, strategy, as_of from {schema}.mv_runs where strategy = ''") == [
            ("model.test.refused", "", None)
        ]
        assert [str(r.status) for r in run_dbt(["source", "freshness"])] == ["pass"]
        assert run_dbt(["ls", "--select", "+exposure:runs_of_models", "--resource-type", "source"]) == [
            "source:test.operations.mv_runs"
        ]
        assert models["mv"]["rows"] == 6 and models["mv"]["next_change"] == "2026-02-05T00:00:00+00:00"
        assert models["mv"]["last_run"]["status"] == "success" and "key" in models["broken"]["last_run"]["message"]
        assert status["notes"] == []

        page, kept = tmp_path / "report.html", tmp_path / "facts.json"
        made = CliRunner().invoke(main, ["report", *where, "-o", str(page), "--facts", str(kept)])
        assert made.exit_code == 0, made.output
        facts = from_json(kept.read_text())
        mine = next(m for m in facts.models if m.name == "mv")
        other = next(m for m in facts.models if m.name == "never")
        assert other.unique_key == ("id",) and other.settings["refresh"] == "full"
        newest, first = mine.runs
        assert (first.rows_inserted, first.ai_calls, first.ai_reused) == (9, 4, 0)
        assert (newest.rows_evicted, newest.ai_calls) == (3, 0)
        assert mine.record is not None and next(iter(mine.record.sources)).endswith(".src")
        assert [(use.function, use.answers) for use in facts.ai] == [("ai_analyze_sentiment", 4)]
        assert next(iter(facts.columns.values())) == {"id": "bigint", "body": "string", "d": "date"}
        text = page.read_text()
        assert "hunter-hunter" not in text and "hunter-hunter" not in kept.read_text()
        assert '<mark class="l-ai" title="ai">ai_analyze_sentiment' in text and '<mark class="l-command"' in text
        assert 'datetime="2026-02-05T00:00:00+00:00"' in text

    def test_explain_and_doctor(self, project: Any, mv: Any, warehouse: Path) -> None:
        """After the runs above, dbt's own manifest tells all of a model; and Spark's JVM is seen to hold the catalogue."""
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        run_dbt(["compile", "--exclude", "unrendered"])
        explained = CliRunner().invoke(main, ["explain", "mv", *where, "--format", "json"])
        assert explained.exit_code == 0, explained.output
        data = json.loads(explained.stdout)
        assert data["unique_key"] == ["id"] and data["errors"] == []
        assert [column["name"] for column in data["columns"] if column["frozen"]] == ["seen_at"]
        assert [(table["name"].rpartition(".")[2], len(table["via"])) for table in data["tables"]] == [("src", 1)]

        examined = CliRunner().invoke(main, ["doctor", *where, "--format", "json"])
        found = {one["check"]: one for one in json.loads(examined.stdout)["findings"]}
        assert found["Java"]["state"] == found["Delta"]["state"] == found["profile"]["state"] == "ok"
        assert found["catalogue"]["state"] == "problem" and examined.exit_code == 1
        assert str(warehouse / "metastore") in found["catalogue"]["sentence"]
        assert "hunter-hunter" not in examined.output
