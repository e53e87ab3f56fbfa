"""Iceberg tables as sources: read at a snapshot, followed from snapshot to snapshot, recomputed from where that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select s.id, s.name, d.area, rand() as drawn
from {{ target.schema }}.src s left join {{ target.schema }}.dim d on s.area = d.area
"""


class TestAnIcebergSource:
    """One table's history, with a Delta table beside it in the same schema."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    def test_its_history(self, mv: Any, sql: Callable[..., Any], operation: Callable[..., str]) -> None:
        def run(strategy: str, *changed: int) -> None:
            """The run, its strategy, and how many rows it inserted, updated and deleted; the table is the query's."""
            said = mv.run()
            found = (said["strategy"], *(said[f"rows_{what}"] for what in ("inserted", "updated", "deleted")))
            assert found == (strategy, *(changed or (0, 0, 0)))
            query = "select s.id, s.name, d.area from {schema}.src s left join {schema}.dim d on s.area = d.area"
            assert sorted(mv.rows("id, name, area").elements(), key=str) == sorted(sql(query), key=str)

        def reasons() -> str:
            return operation("explain_mv", {"model": "mv"}, as_of="2026-02-01 06:00:00")

        sql("create table {schema}.dim using delta as select 'n' as area union all select 's'")
        sql("create table {schema}.src (id bigint, name string, area string) using iceberg")
        run("COMPLETE_RECOMPUTE")
        run("NO_OP")
        sql(
            "insert into {schema}.src select id, concat('a', id), if(id % 3 = 0, null, if(id % 3 = 1, 'n', 's')) from range(1, 1001)"
        )
        run("COMPLETE_RECOMPUTE", 1000, 0, 0)
        drawn = mv.by_id("drawn")
        run("NO_OP")

        # rows that only come are read off the files that brought them
        sql("insert into {schema}.src values (1001, 'd', 'n')")
        run("APPEND_ONLY", 1, 0, 0)
        # where rows changed, the files that came and went tell which; they hold rows besides that are as they were
        sql("insert into {schema}.src select id, 'b', 's' from range(1002, 1012)")
        run("APPEND_ONLY", 10, 0, 0)
        drawn = mv.by_id("drawn")
        sql("update {schema}.src set name = 'B' where id = 1002")
        sql("delete from {schema}.src where id = 1003")
        run("ROW_BASED", 0, 1, 1)
        kept = mv.by_id("drawn")
        assert {k: kept[k] for k in drawn if k != 1003} == {k: v for k, v in drawn.items() if k != 1003}

        # compaction moves rows and changes none
        sql(
            "call iceberg_catalog.system.rewrite_data_files(table => '{schema}.src', options => map('rewrite-all', 'true'))"
        )
        assert mv.run()["rows_affected"] == 0
        run("NO_OP")

        # rolled back: the snapshot that the last run read is not behind the table any more
        first = sql("select snapshot_id from {schema}.src.snapshots order by committed_at limit 1")[0][0]
        sql(f"call iceberg_catalog.system.rollback_to_snapshot('{{schema}}.src', {first})")
        assert "SOURCE_ROLLED_BACK" in reasons()
        run("COMPLETE_RECOMPUTE", 0, 0, 10)
        assert mv.by_id("drawn")[1] == drawn[1]

        # expired: it cannot be read any more
        sql("insert into {schema}.src values (1001, 'e', 's')")
        sql(
            "call iceberg_catalog.system.expire_snapshots(table => '{schema}.src', older_than => timestamp'2090-01-01 00:00:00', "
            "retain_last => 1)"
        )
        assert "HISTORY_GONE" in reasons()
        run("COMPLETE_RECOMPUTE", 1, 0, 0)

        # new columns make no snapshot, and an older one does not have them
        sql("alter table {schema}.src add column more int")
        run("COMPLETE_RECOMPUTE")
        run("NO_OP")
        sql("insert into {schema}.src values (1002, 'f', 's', 1)")
        assert "SOURCE_SCHEMA_CHANGED" in reasons()
        run("COMPLETE_RECOMPUTE", 1, 0, 0)
        sql("update {schema}.src set name = 'F' where id = 1002")
        run("ROW_BASED", 0, 1, 0)

        # a table of the same name that was made anew
        sql("drop table {schema}.src")
        sql("create table {schema}.src using iceberg as select 1L as id, 'z' as name, 'n' as area")
        assert "SOURCE_SCHEMA_CHANGED" in reasons()
        run("COMPLETE_RECOMPUTE", 0, 1, 1001)
        assert mv.by_id("drawn")[1] == drawn[1]
