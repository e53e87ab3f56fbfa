"""The same models over a Thrift server, where no Python runs: dbt's own process asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration_tests.ai.endpoint import Behaviour, Endpoint
from integration_tests.servers.conftest import SECRET, Project, day, response, target
from integration_tests.servers.server import THRIFT, Server


@pytest.mark.slow
def test_two_days_over_thrift(home: Path) -> None:
    with (
        Server(THRIFT, home / "server", missing=("pyspark", "pandas")) as server,
        Endpoint(Behaviour(rate_limit=0.3, retry_after=0.1)) as endpoint,
    ):
        connection = {"method": "thrift", "host": "127.0.0.1", "port": server.port, "user": "dbt"}
        project = Project(home / "project", {"dev": target(endpoint.url, **connection)})
        rows = {"query": "select id, body, draw, kind, today from demo.tickets order by id"}
        paid = {"query": "select count(*) from demo.ai_results"}
        one = ("--select", "tickets")
        found = project.run(
            {"dbt": ["seed"]},
            day(1, *one),
            rows,
            day(1, *one),
            paid,
            {"sql": "insert into demo.raw values (100, 'it''s \\\\ \"new\"', date'2026-02-02')"},
            day(2, *one),
            rows,
        )
        seeded, first, before, again, still_paid, _, second, after = found

        assert seeded["success"], seeded["error"]
        created = response(first, "tickets")
        assert (created["code"], created["rows_inserted"], created["ai_errors"]) == ("CREATE", 12, 0)
        assert created["ai_calls"] == 6
        assert still_paid == [[6]]
        assert response(again, "tickets")["code"] == "NO_OP"

        merged = response(second, "tickets")
        assert merged["ai_calls"] == 1
        assert merged["rows_deleted"] == 6
        kept = {row[0]: row[:4] for row in before}
        assert [row[0] for row in after] == [1, 3, 5, 7, 9, 11, 100]
        assert all(row[:4] == kept[row[0]] for row in after if row[0] != 100)
        assert after[-1][1] == 'it\'s \\ "new"'
        assert all(row[3] in ("complaint", "question", "praise") for row in [*before, *after])
        assert set(endpoint.seen.answered.values()) == {1}
        assert len(endpoint.seen.answered) == 7
    assert SECRET not in project.output
    files = [f for f in home.rglob("*") if f.is_file() and f.name != "profiles.yml"]
    assert [f for f in files if SECRET.encode() in f.read_bytes()] == []
