"""Sources, models, AI answers and remembered draws in a real REST catalogue of Iceberg's, which is the default one and holds no Delta table:
several processes at a time work in it."""

from __future__ import annotations

import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from integration_tests.ai.endpoint import Endpoint
from integration_tests.conftest import SETTINGS
from integration_tests.servers.conftest import Project, day, response, target
from integration_tests.servers.rest_catalogue import RestCatalogue

pytestmark = pytest.mark.slow

SAMPLE = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, body, rand() as draw from {{ ref('raw') }} where rand() < 0.5
"""
NAMED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, upper(body) as loud, uuid() as token from lake.demo.raw
"""


@pytest.fixture(scope="module")
def catalogue(home: Path) -> Any:
    with RestCatalogue(home / "catalogue") as running:
        yield running


def project_of(home: Path, name: str, catalogue: RestCatalogue, endpoint: Endpoint) -> Project:
    """A project with a Spark, and a warehouse, of its own. Nothing but the settings of the catalogue says Iceberg, and the format."""
    settings = {**SETTINGS, "spark.driver.memory": "1g", **catalogue.settings("lake")}
    connection = {
        "method": "session",
        "warehouse": str(home / name / "warehouse"),
        "formats": ["delta", "iceberg"],
        "file_format": "iceberg",
        "spark_config": settings,
    }
    project = Project(home / name, {"dev": target(endpoint.url, **connection)})
    for model, text in {"sample": SAMPLE, "named": NAMED}.items():
        (project.folder / "models" / f"{model}.sql").write_text(text, encoding="utf-8")
    return project


def test_it_answers_many_at_once(catalogue: RestCatalogue) -> None:
    made = {"data": b'{"namespace": ["many"], "properties": {}}', "headers": {"Content-Type": "application/json"}}
    urllib.request.urlopen(urllib.request.Request(f"{catalogue.url}/v1/namespaces", **made)).close()

    def ask(_: int) -> int:
        with urllib.request.urlopen(f"{catalogue.url}/v1/namespaces/many", timeout=60) as answer:
            return int(answer.status)

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(ask, range(200))) == {200}


def test_days_and_two_processes(catalogue: RestCatalogue, home: Path) -> None:
    rows = {"query": "select id, body, draw, kind, today from demo.tickets order by id"}
    sample = {"query": "select id, draw from demo.sample order by id"}
    named = {"query": "select id, token from demo.named order by id"}
    own = [
        {"query": f"select count(*) from demo.{table}.snapshots"}
        for table in ("ai_results", "mv_runs", "sample__state", "tickets", "raw")
    ]
    with Endpoint() as endpoint:
        project = project_of(home, "one", catalogue, endpoint)
        found = project.run({"dbt": ["seed"]}, day(1), rows, sample, named, day(1), *own)
        _, first, before, sampled, tokens, again = found[:6]
        assert response(first, "tickets")["rows_inserted"] == 12
        assert sum(response(first, name)["ai_calls"] for name in ("tickets", "kinds")) == 6
        assert response(first, "sample")["rows_inserted"] == len(sampled) > 0
        assert all(response(again, name)["code"] == "NO_OP" for name in ("tickets", "kinds", "sample", "named"))
        # each of these is a table of Iceberg's: no other has snapshots
        assert all(rows[0][0] > 0 for rows in found[6:])

        # another process, and then two at once: one publishes, the other gives way or finds all done; no value moves
        project.run(
            {"sql": "insert into demo.raw values (100, 'text new', date'2026-02-02')"},
            {"sql": "delete from demo.raw where id in (3, 4)"},
        )
        other = project_of(home, "two", catalogue, endpoint)
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda one: one.run(day(2)), (project, other)))
        for (done,) in both:
            for name, node in done["nodes"].items():
                said = f"{name}: {node['message']}"
                assert node["status"] in ("success", "skipped") or "TURN_TAKEN" in said or "another run" in said, said
        last, after, sampled_now, tokens_now = other.run(day(2), rows, sample, named)
        assert all(node["status"] == "success" for node in last["nodes"].values())
        kept = {row[0]: row[:4] for row in before}
        assert [row[0] for row in after] == [1, 5, 7, 9, 11, 100]
        assert all(row[:4] == kept[row[0]] for row in after if row[0] != 100)
        assert len(endpoint.seen.asked) == 7
        was, now = dict(map(tuple, sampled)), dict(map(tuple, sampled_now))
        assert {id: draw for id, draw in now.items() if id != 100} == {
            id: draw for id, draw in was.items() if id not in (3, 4)
        }
        was, now = dict(map(tuple, tokens)), dict(map(tuple, tokens_now))
        assert {**{id: token for id, token in was.items() if id not in (3, 4)}, 100: now[100]} == now
