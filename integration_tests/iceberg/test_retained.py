"""`retain_sources`: the snapshots that a model still needs survive `expire_snapshots`, and are let go when it needs them no longer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dbt.tests.util import write_file

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', file_format='iceberg', retain_sources=true, refresh=var('refresh', 'auto')) }}
select id, name, rand() as drawn from {{ target.schema }}.events
"""
DAY = "2026-02-03 00:00:00"
Sql = Callable[..., Any]


def expire(sql: Sql, table: str = "events") -> None:
    """All snapshots go that nothing holds but the newest."""
    now = sql("select cast(current_timestamp() as string)")[0][0]
    sql(
        f"call iceberg_catalog.system.expire_snapshots(table => '{{schema}}.{table}', older_than => timestamp'{now}', retain_last => 1)"
    )


def tags(sql: Sql, table: str = "events") -> list[int]:
    return [row[0] for row in sql(f"select snapshot_id from {{schema}}.{table}.refs where type = 'TAG'")]


def newest(sql: Sql, table: str = "events") -> int:
    return int(sql(f"select snapshot_id from {{schema}}.{table}.refs where name = 'main'")[0][0])


class TestRetained:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    def test_changes_are_followed_over_expired_snapshots(self, project: Any, mv: Any, sql: Sql) -> None:
        sql("create table {schema}.events (id bigint, name string) using iceberg")
        sql("insert into {schema}.events select id, 'a' from range(400)")
        mv.run(DAY)
        first = newest(sql)
        assert tags(sql) == [first]
        drawn = mv.by_id("drawn")
        # what lies between goes, too: the two ends are compared
        for statement in (
            "delete from {schema}.events where id = 3",
            "update {schema}.events set name = 'b' where id = 5",
        ):
            sql(statement)
        sql("insert into {schema}.events values (1000, 'new')")
        expire(sql)
        assert [row[0] for row in sql("select snapshot_id from {schema}.events.snapshots order by committed_at")] == [
            first,
            newest(sql),
        ]
        said = mv.run(DAY, refresh="incremental")
        assert said["strategy"] == "ROW_BASED", json.dumps(said)
        assert (said["rows_inserted"], said["rows_updated"], said["rows_deleted"]) == (1, 1, 1)
        assert sorted(mv.rows("id, name").elements()) == sorted(sql("select id, name from {schema}.events"))
        after = mv.by_id("drawn")
        assert {id: value for id, value in after.items() if id != 1000} == {k: v for k, v in drawn.items() if k != 3}
        # the tag has moved on, and the older snapshot can go
        assert tags(sql) == [newest(sql)] != [first]
        expire(sql)
        assert mv.run(DAY)["strategy"] == "NO_OP"

        # another source, and none to be held: what was held is let go
        sql("create table {schema}.others using iceberg as select id, 'c' as name from range(400)")
        write_file(MODEL.replace(".events", ".others"), project.project_root, "models", "mv.sql")
        mv.run(DAY)
        assert (tags(sql), tags(sql, "others")) == ([], [newest(sql, "others")])
        write_file(
            MODEL.replace(".events", ".others").replace(", retain_sources=true", ""),
            project.project_root,
            "models",
            "mv.sql",
        )
        sql("insert into {schema}.others values (1001, 'd')")
        mv.run(DAY)
        assert tags(sql, "others") == []
