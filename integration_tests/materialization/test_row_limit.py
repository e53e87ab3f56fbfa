"""max_rows_changed: a run that would change, delete or evict more rows stops before anything is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from integration_tests.materialization.conftest import Mv

PLAIN = """
{{ config(materialized='nondeterministic_mv', unique_key='id', max_rows_changed=var('limit', 2), refresh=var('refresh', 'auto')) }}
select id, v, rand() as draw {{ var('more', '') }} from {{ target.schema }}.src
"""
GROUPS = """
{{ config(materialized='nondeterministic_mv', unique_key='g', max_rows_changed='40%') }}
select id % 5 as g, sum(v) as total, count(*) as n from {{ target.schema }}.src group by 1
"""
WINDOW = """
{{ config(materialized='nondeterministic_mv', unique_key='id', max_rows_changed='20%') }}
select id, d, uuid() as u from {{ target.schema }}.days where d > date_sub(current_date(), 3)
"""
CLOCK = """
{{ config(materialized='nondeterministic_mv', unique_key='id', max_rows_changed=0) }}
select id, current_date() as today from {{ target.schema }}.days
"""
ALL = {"max_rows_changed": "100%"}


class TestRowLimit:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": PLAIN, "groups.sql": GROUPS, "windowed.sql": WINDOW, "clock.sql": CLOCK}

    @pytest.fixture
    def src(self, sql: Callable[[str], Any]) -> None:
        sql("create or replace table {schema}.src using delta tblproperties (delta.enableChangeDataFeed = true) "
            "as select id, cast(1 as bigint) as v from range(10)")  # fmt: skip
        for name in ("mv", "groups"):
            sql(f"drop table if exists {{schema}}.{name}")

    def stops(self, mv: Any, *args: str, **variables: Any) -> str:
        version, rows = mv.version(), mv.rows()
        said = str(mv.run(*args, expect_pass=False, **variables))
        assert "max_rows_changed" in said and "Nothing was published" in said and "100%" in said
        assert (mv.version(), mv.rows()) == (version, rows)
        return said

    @pytest.mark.slow
    def test_every_way_to_publish(self, project: Any, mv: Any, sql: Any, src: None) -> None:
        now = "2026-02-01 06:00:00"
        assert mv.run()["rows_inserted"] == 10  # a first run changes nothing
        sql("insert into {schema}.src select id, 1 from range(10, 40)")
        assert mv.run()["rows_inserted"] == 30  # nor does a row that comes

        sql("update {schema}.src set v = 2 where id < 2")
        done = mv.run()  # exactly the limit
        assert (done["rows_updated"], done["strategy"]) == (2, "ROW_BASED")
        sql("update {schema}.src set v = 3 where id < 2")
        sql("delete from {schema}.src where id = 9")
        assert "change 2 and delete 1 rows: 3 of 40" in self.stops(mv)
        # nor by another strategy or another statement, and not the second time either
        self.stops(mv, now, "--full-refresh")
        self.stops(mv, refresh="full")
        self.stops(mv)
        draws = mv.by_id("draw")
        assert mv.run(**ALL)["rows_updated"] == 2  # let pass, once
        assert {k: draws[k] for k in mv.by_id("draw")} == mv.by_id("draw")
        assert mv.run()["strategy"] == "NO_OP"

        sql("truncate table {schema}.src")  # a source that arrived empty
        assert "delete 39 rows: 39 of 39" in self.stops(mv, limit="90%")
        sql("insert into {schema}.src select id, 1 from range(40) where id <> 9")
        assert mv.run()["rows_updated"] == 2
        assert {k: draws[k] for k in mv.by_id("draw")} == mv.by_id("draw")

        # a new column changes no value, a new expression of an old one changes all
        assert mv.run(more=", id * 2 as w")["code"] == "REPLACE"
        self.stops(mv, more=", id * 3 as w")
        assert mv.run(more=", id * 3 as w", max_rows_changed=38)["rows_updated"] == 38

        assert "is not a whole number of rows" in mv.run(max_rows_changed="some", expect_pass=False)

    def test_a_share_is_of_the_rows_before_the_run(self, project: Any, sql: Any, src: None) -> None:
        groups = Mv(sql, "groups")
        groups.run()
        sql("update {schema}.src set v = v + 1 where id in (0, 1)")
        assert groups.run()["rows_updated"] == 2
        sql("update {schema}.src set v = v + 1 where id in (0, 1, 2)")
        assert "change 3 and delete 0 rows: 3 of 5" in self.stops(groups)
        sql("update {schema}.src set v = v - 1 where id = 2")
        assert groups.run()["rows_updated"] == 2  # the source was put right

    def test_evictions_count_and_the_clock_in_a_column_does_not(self, project: Any, sql: Any) -> None:
        sql("create or replace table {schema}.days using delta as select id, date_add(date'2026-02-01', cast(id % 5 as int)) "
            "as d from range(50)")  # fmt: skip
        windowed, clock = Mv(sql, "windowed"), Mv(sql, "clock")
        assert windowed.run("2026-02-03 00:00:00")["rows_inserted"] == 50
        assert windowed.run("2026-02-04 00:00:00")["rows_evicted"] == 10
        assert "delete 20 rows, 20 of them by the clock: 20 of 40" in self.stops(windowed, "2026-02-06 00:00:00")
        assert windowed.run("2026-02-06 00:00:00", **ALL)["rows_evicted"] == 20

        clock.run("2026-02-03 00:00:00")
        assert clock.run("2026-02-04 00:00:00")["rows_updated"] == 50
