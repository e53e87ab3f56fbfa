"""Models with AI, random and clock columns over a Spark Connect server that knows nothing of dbt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.ai.endpoint import Endpoint
from integration_tests.servers.conftest import SECRET, Project, day, response, target
from integration_tests.servers.server import CONNECT, Server, free_port

AS_OF_DAY_2 = ("--vars", json.dumps({"as_of": "2026-02-02 06:00:00"}))


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(free_port()),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(home),
    }
    with Server(CONNECT, home / "server", settings) as running:
        yield running


def test_two_days_over_spark_connect(server: Server, home: Path) -> None:
    with Endpoint() as endpoint:
        url = f"sc://127.0.0.1:{server.port}"
        project = Project(home / "project", {"dev": target(endpoint.url, method="session", host=url)})
        rows = {"query": "select id, body, draw, kind, today from demo.tickets order by id"}
        version = {"query": "select count(*) from demo.ai_results"}
        found = project.run(
            {"dbt": ["seed"]},
            day(1),
            rows,
            version,
            day(1),
            version,
            {"sql": "insert into demo.raw values (100, 'text new', date'2026-02-02')"},
            {"dbt": ["run-operation", "explain_mv", "--args", '{"model": "tickets"}', *AS_OF_DAY_2]},
            day(2),
            rows,
            {"dbt": ["run-operation", "ai_views", *AS_OF_DAY_2]},
            {"query": "select state, count(*) from demo.tickets__ai_answers group by 1 order by 1"},
        )
        _, first, before, paid, again, still_paid, _, explained, second, after, views, states = found

        # two models at once, one call per text
        created = response(first, "tickets")
        assert (created["code"], created["rows_inserted"]) == ("CREATE", 12)
        calls = [response(first, name)["ai_calls"] for name in ("tickets", "kinds")]
        assert sum(calls) == 6
        assert set(endpoint.seen.asked.values()) == {1}
        assert all(kind in ("complaint", "question", "praise") for _, _, _, kind, _ in before)

        # nothing changed: nothing is written, nobody is asked
        assert paid == still_paid == [[6]]
        assert response(again, "kinds")["code"] == "NO_OP"
        assert response(again, "tickets")["ai_calls"] == 0

        # a day later: a new text is the only call, what left its window has left, what stayed has kept its values
        assert explained["success"], explained["error"]
        assert "AI calls: 1 to make now" in project.output
        merged = response(second, "tickets")
        assert merged["ai_calls"] + response(second, "kinds")["ai_calls"] == 1
        assert len(endpoint.seen.asked) == 7
        assert set(endpoint.seen.asked.values()) == {1}
        assert merged["rows_deleted"] == 6
        kept = {row[0]: row[:4] for row in before}
        assert [row[0] for row in after] == [1, 3, 5, 7, 9, 11, 100]
        assert all(row[:4] == kept[row[0]] for row in after if row[0] != 100)
        assert {row[4] for row in before} == {"2026-02-01"}
        assert {row[4] for row in after} == {"2026-02-02"}
        assert views["success"], views["error"]
        assert dict(states) == {"current": 4}  # odd texts of January 31, and the new one

    # the key: not in the project, in what dbt printed, nor anywhere on the server
    assert SECRET not in project.output
    files = [f for f in home.rglob("*") if f.is_file() and f.name != "profiles.yml"]
    assert any("app-" in f.name or "local-" in f.name for f in files)  # the event log
    assert [f for f in files if SECRET.encode() in f.read_bytes()] == []
    pages = [server.page(path) for path in ("/connect/", "/SQL/", "/jobs/", "/stages/", "/environment/")]
    pages += [server.page(f"/SQL/execution/?id={number}") for number in range(30)]
    assert len([page for page in pages if page]) > 10
    assert not any(SECRET in page for page in pages)


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["pandas", "openai"])
def test_a_server_whose_python_lacks_a_package(missing: str, tmp_path: Path) -> None:
    with Server(CONNECT, tmp_path / "server", missing=(missing,)) as server, Endpoint() as endpoint:
        connection = {"method": "session", "host": f"sc://127.0.0.1:{server.port}"}
        project = Project(tmp_path / "project", {"dev": target(endpoint.url, **connection)})
        _, run = project.run({"dbt": ["seed"]}, day(1, "--select", "kinds"))
        assert (response(run, "kinds")["ai_calls"], response(run, "kinds")["ai_errors"]) == (6, 0)
        assert set(endpoint.seen.asked.values()) == {1}
    assert "dbt's own process asks instead" in project.output
    assert missing in project.output
