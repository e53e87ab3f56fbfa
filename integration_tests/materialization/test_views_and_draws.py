"""What hides: a clock or a draw in an upstream view, a draw in a filter."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

THROUGH_VIEW = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select v.id, v.day, v.split from {{ target.schema }}.recent v
"""
SAMPLE = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, amount, uuid() as row_id from {{ target.schema }}.src
where rand() < 0.5 and amount >= 0
"""


class TestViews:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": THROUGH_VIEW}

    def test_clock_and_draw_in_a_view(self, project: Any, mv: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as select id, date'2026-01-01' + cast(id as int) as day from range(60)"
        )
        sql(
            "create or replace view {schema}.deep as select id, day, rand() as r from {schema}.src where day <= current_date()"
        )
        sql(
            "create or replace view {schema}.recent as select id, day, r as split from {schema}.deep where day > current_date() - 10"
        )
        mv.run("2026-01-20 06:00:00")
        before = mv.by_id("split")
        assert set(before) == set(range(10, 20))
        assert mv.run("2026-01-20 12:00:00")["strategy"] == "NO_OP"
        moved = mv.run("2026-01-21 00:00:00")
        assert (moved["rows_inserted"], moved["rows_deleted"], moved["rows_evicted"]) == (1, 1, 1)
        after = mv.by_id("split")
        assert {k: v for k, v in after.items() if k in before} == {k: v for k, v in before.items() if k in after}
        # a view that is defined anew is changed SQL
        sql(
            "create or replace view {schema}.recent as select id, day, r as split from {schema}.deep where day > current_date() - 5"
        )
        mv.run("2026-01-21 00:00:00")
        assert set(mv.by_id("day")) == set(range(16, 21))


class TestSample:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": SAMPLE}

    def test_a_sample_stays_the_same_sample(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, 1 as amount from range(400)")
        first = mv.run()
        assert 100 < first["rows_inserted"] < 300
        sample = mv.by_id("row_id")
        assert mv.run()["strategy"] == "NO_OP"

        sql("update {schema}.src set amount = 2")
        mv.run()
        assert mv.by_id("row_id") == sample
        assert set(mv.rows("amount")) == {(2,)}

        sql("insert into {schema}.src select id + 1000, 1 from range(400)")
        mv.run()
        more = mv.by_id("row_id")
        assert {k: v for k, v in more.items() if k < 1000} == sample
        assert 100 < len(more) - len(sample) < 300

        mv.run("2026-02-01 06:00:00", "--full-refresh")
        assert mv.by_id("row_id") == more

        # a wider sample keeps every row of the narrower one: the draws are kept, not the outcome
        write_file(SAMPLE.replace("0.5", "0.9"), project.project_root, "models", "mv.sql")
        mv.run()
        wider = mv.by_id("row_id")
        assert len(wider) > len(more) and {k: wider[k] for k in more} == more

        # a candidate that goes and comes back draws anew
        sql("update {schema}.src set amount = -1")
        mv.run()
        assert mv.rows() == {} and sql("select count(*) from {schema}.mv__state") == [(0,)]
        sql("update {schema}.src set amount = 1")
        mv.run()
        assert set(mv.by_id("row_id")) != set(wider)


BELOW = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
with drawn as (select *, rand() as dice, case when rand() < 0.5 then 'a' else 'b' end as half from {{ target.schema }}.src),
sized as (select *, dice * 2 as size from drawn)
select * from sized where dice < 0.5 and half = 'a' and amount >= 0
"""
SHARED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select s.id from {{ target.schema }}.src s cross join (select rand() as threshold) x where s.amount > x.threshold
"""


class TestDrawsBelow:
    """A sample by a column of a CTE is the same sample, and shows the draw that it was taken by."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": BELOW, "shared.sql": SHARED}

    def test_a_sample_by_a_drawn_column(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, 1 as amount from range(400)")
        mv.run()
        sample = mv.rows("id, dice, half, size")
        assert 50 < len(sample) < 150
        assert all(dice < 0.5 and half == "a" and size == dice * 2 for _, dice, half, size in sample)
        sql("insert into {schema}.src select id + 1000, 1 from range(400)")
        mv.run()
        more = mv.rows("id, dice, half, size")
        assert {row for row in more if row[0] < 1000} == set(sample)
        assert all(dice < 0.5 and half == "a" and size == dice * 2 for _, dice, half, size in more)
        sql("update {schema}.src set amount = 2 where id < 1000")
        mv.run()
        assert set(mv.rows("id, dice, half, size")) == set(more)
        run_dbt(["run", "--select", "shared"], expect_pass=False)
        assert sql("show tables in {schema} like 'shared*'") == []
