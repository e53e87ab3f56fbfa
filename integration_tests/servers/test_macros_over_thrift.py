"""Models by macros alone over a Thrift server (plain dbt-spark, method thrift), by turns with the adapter over the same server. The
engine answers the AI functions, so that nothing of it needs Python there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.servers.conftest import Project, day, response
from integration_tests.servers.server import THRIFT, Server

ROOT = Path(__file__).parents[2]
PLAN = "from spark_mv.cli import main; main()"
CLASSIFY = (
    "create function demo.classify(x string, labels array<string>) returns string not deterministic "
    "return concat(labels[length(x) % 3], ' ', uuid())"
)


@pytest.mark.slow
def test_turns_over_thrift(home: Path) -> None:
    with Server(THRIFT, home / "macros", missing=("pyspark", "pandas")) as server:
        connection = {"method": "thrift", "host": "127.0.0.1", "port": server.port, "user": "dbt", "schema": "demo"}
        ai = {"provider": "native", "model": "engine", "options": {"ai_classify": "demo.classify"}}
        plain = {"type": "spark", "threads": 2, **connection}
        folder = home / "project_of_macros"
        project = Project(folder, {"dev": {**plain, "type": "spark_mv", "ai": ai}, "plain": plain})
        (folder / "packages.yml").write_text(json.dumps({"packages": [{"local": str(ROOT)}]}))
        rows = {"query": "select id, body, draw, kind, today from demo.tickets order by id"}
        paid = {"query": "select count(*) from demo.ai_results where status = 'ok'"}
        one, by_macros = ("--select", "tickets"), ("--select", "tickets", "--target", "plain")
        project.run({"dbt": ["deps"]}, {"dbt": ["seed"]}, {"sql": CLASSIFY})
        places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
        made = subprocess.run(
            [sys.executable, "-c", PLAN, "plan", *places], capture_output=True, text=True, check=False
        )
        assert made.returncode == 0 and "tickets: planned" in made.stdout, made.stdout + made.stderr

        found = project.run(
            day(1, *by_macros),
            rows,
            day(1, *one),
            {"sql": "insert into demo.raw values (100, 'it''s \\\\ \"new\"', date'2026-02-02')"},
            day(1, *by_macros),
            rows,
            paid,
            day(1, *one),
            day(2, *by_macros),
            rows,
            day(2, *one),
            paid,
        )
        created, first, again, _, followed, second, _, adapter, moved, third, last, still_paid = found

        assert response(created, "tickets")["code"] == "CREATE"
        assert len(first) == 12 and len({row[3] for row in first}) == 6
        assert response(again, "tickets")["code"] == "NO_OP"
        assert response(followed, "tickets")["code"] == "MERGE"
        assert [row for row in second if row[0] != 100] == first and len(second) == 13
        assert response(adapter, "tickets")["code"] == "NO_OP"
        assert response(moved, "tickets")["code"] == "MERGE"
        assert {row[0]: row[:4] for row in third} == {
            row[0]: row[:4] for row in second if row[0] in (1, 3, 5, 7, 9, 11, 100)
        }
        assert response(last, "tickets")["code"] == "NO_OP" and still_paid == [[7]]
