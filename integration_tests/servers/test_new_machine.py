"""State lives in the warehouse alone: each day on an empty disk, and every kept value and paid answer is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from integration_tests.servers.conftest import Project, day, response

from spark_mv.spark.session.jars import cache_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def machine(home: Path, warehouse: Path, number: int) -> Project:
    """Another project folder, home and cache. Jars are not fetched again: they are the same on every machine."""
    disk = home / f"machine{number}"
    ai = {"provider": "scripted", "model": "m", "options": {"count_file": str(home / "asked")}}
    dev = {"type": "spark_mv", "method": "session", "schema": "demo", "warehouse": str(warehouse), "ai": ai}
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": 1, "spark.driver.memory": "1g"}
    project = Project(disk / "checkout", {"dev": {**dev, "spark_config": settings}})
    (disk / "home").mkdir()
    (disk / "cache").mkdir()
    (disk / "cache" / "jars").symlink_to(cache_folder() / "jars")
    project.environment |= {"HOME": str(disk / "home"), "DBT_SPARK_MV_CACHE": str(disk / "cache")}
    return project


def test_each_day_on_an_empty_disk(home: Path) -> None:
    warehouse = home / "warehouse"
    tickets = {"query": "select id, body, draw, kind, today from demo.tickets order by id"}
    kinds = {"query": "select kind, n from demo.kinds order by kind"}

    def rows(found: list[Any]) -> dict[int, list[Any]]:
        return {row[0]: row[1:4] for row in found}

    seeded, first, before, kinds_before = machine(home, warehouse, 1).run({"dbt": ["seed"]}, day(1), tickets, kinds)
    assert seeded["success"] and response(first, "tickets")["code"] == "CREATE"
    asked = (home / "asked").read_text(encoding="utf-8")
    assert len(asked.splitlines()) == 6  # six texts, in two models

    again, second, after = machine(home, warehouse, 2).run(day(1), day(2), tickets)
    assert {response(again, model)["code"] for model in ("tickets", "kinds")} == {"NO_OP"}
    assert response(second, "tickets")["rows_evicted"] == 6 and response(second, "kinds")["code"] == "NO_OP"
    assert rows(after) == {key: row for key, row in rows(before).items() if key in rows(after)} and len(after) == 6

    rebuilt, last, kinds_last = machine(home, warehouse, 3).run(day(2, "--full-refresh"), tickets, kinds)
    assert response(rebuilt, "tickets")["ai_calls"] == 0
    assert rows(last) == rows(after) and kinds_last == kinds_before
    assert (home / "asked").read_text(encoding="utf-8") == asked
