"""Rows that a first run refuses, where a session tells an error of Spark's tasks by its outermost words alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration_tests.servers.conftest import Project, response
from integration_tests.servers.server import CONNECT, THRIFT, Server

MODEL = "{{ config(materialized='nondeterministic_mv', unique_key='id') }} "
FILES = {
    "models/repeated.sql": MODEL + "select id % 5 as id, uuid() as u from {{ target.schema }}.src",
    "models/nothing.sql": MODEL + "select nullif(id, 3) as id, uuid() as u from {{ target.schema }}.src",
    "models/raising.sql": MODEL
    + "select id, if(id = 3, cast(raise_error('their own error') as int), 1) as one from {{ target.schema }}.src",
    "models/good.sql": MODEL + "select id, uuid() as u from {{ target.schema }}.src",
}


@pytest.mark.parametrize("way", [CONNECT, pytest.param(THRIFT, marks=pytest.mark.slow)], ids=["connect", "thrift"])
def test_the_rows_are_named(way: str, tmp_path: Path) -> None:
    with Server(way, tmp_path / "server") as server:
        connection = (
            {"method": "session", "host": f"sc://127.0.0.1:{server.port}"}
            if way == CONNECT
            else {"method": "thrift", "host": "127.0.0.1", "port": server.port, "user": "dbt"}
        )
        target = {"type": "spark_mv", "schema": "demo", "threads": 2, **connection}
        project = Project(tmp_path / "project", {"dev": target}, FILES)
        _, _, run, tables = project.run(
            {"sql": "create schema if not exists demo"},
            {"sql": "create table demo.src using delta as select id from range(6)"},
            {"dbt": ["run"]},
            {
                "queries": {
                    name: f"select '{name}', count(*) from demo.{name}" for name in ("repeated", "nothing", "raising")
                }
            },
        )
    assert response(run, "good")["rows_inserted"] == 6
    said = {name: node["message"] for name, node in run["nodes"].items()}
    assert "[KEY_REPEATED]" in said["repeated"] and '{"id":0}' in said["repeated"], said
    assert "[KEY_REPEATED]" in said["nothing"] and "NULL" in said["nothing"], said
    assert "their own error" in said["raising"], said
    assert all("cannot be found" in str(rows) for rows in tables.values()), tables
