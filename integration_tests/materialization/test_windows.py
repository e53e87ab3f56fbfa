"""Clock predicates: rows enter and leave at each run with no change of a source, exactly as a full query would have it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration_tests.materialization.conftest import Mv

WINDOW = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, created_at, rand() as split
from {{ target.schema }}.src
where created_at >= current_date() - interval 30 days and created_at < current_date() + interval 1 day
"""
REMEMBER = """
{{ config(materialized='nondeterministic_mv', unique_key='id', on_source_delete='keep') }}
select id, created_at, rand() as split
from {{ target.schema }}.src
where created_at >= current_date() - interval 30 days and created_at < current_date() + interval 1 day
"""
UNTIL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', on_source_delete='keep') }}
select id, v, until, rand() as split from {{ target.schema }}.src where until is null or until > current_timestamp()
"""
VERSIONS = """
{{ config(materialized='nondeterministic_mv', unique_key='k', on_source_delete='keep') }}
select k, since, rand() as split from {{ target.schema }}.days
where since <= current_timestamp() and current_timestamp() < since + interval 24 hours
"""
SHOWN = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['first_seen_at']) }}
select id, current_timestamp() as first_seen_at, current_date() as today
from {{ target.schema }}.src
"""


def create_source(sql: Any) -> None:
    """A row a day, from 2025-12-01 to 2026-03-10, at noon."""
    sql(
        "create or replace table {schema}.src using delta as select id, "
        "timestamp'2025-12-01 12:00:00' + make_dt_interval(cast(id as int)) as created_at from range(100)"
    )


def wanted(sql: Any, day: str) -> Counter[Any]:
    return Counter(
        sql(
            f"select id, created_at from {{schema}}.src where created_at >= date'{day}' - interval 30 days "
            f"and created_at < date'{day}' + interval 1 day"
        )
    )


class TestWindow:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": WINDOW}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        create_source(sql)

    def test_rows_enter_and_leave_by_the_clock(self, mv: Any, sql: Any) -> None:
        mv.run("2026-02-01 06:00:00")
        assert mv.rows("id, created_at") == wanted(sql, "2026-02-01")
        drawn = mv.by_id("split")

        # later on the same day nothing can move
        version = mv.version()
        same_day = mv.run("2026-02-01 23:59:59.999999")
        assert same_day["strategy"] == "NO_OP"
        assert same_day["next_change_at"].startswith("2026-02-02 00:00:00")
        assert mv.version() == version

        # a day later one row leaves and one enters, no source changed
        moved = mv.run("2026-02-02 00:00:00")
        assert (moved["rows_inserted"], moved["rows_deleted"], moved["rows_evicted"]) == (1, 1, 1)
        assert moved["_message"] == "MERGE +1 -1 (1 evicted), 30 kept"
        assert mv.rows("id, created_at") == wanted(sql, "2026-02-02")
        assert all(drawn[key] == value for key, value in mv.by_id("split").items() if key in drawn)

        # deletion at the source and eviction are told apart
        sql("delete from {schema}.src where id = 60")
        both = mv.run("2026-02-04 06:00:00")
        assert (both["rows_deleted"], both["rows_evicted"]) == (3, 2)
        assert mv.rows("id, created_at") == wanted(sql, "2026-02-04")

        # the clock may be turned back: the table is a function of the instant
        mv.run("2026-01-15 06:00:00")
        assert mv.rows("id, created_at") == wanted(sql, "2026-01-15")

    def test_past_the_last_bound_nothing_moves_ever(self, mv: Any) -> None:
        mv.run("2027-01-01 00:00:00")
        assert mv.rows() == Counter()
        later = mv.run("2028-01-01 00:00:00")
        assert later["strategy"] == "NO_OP" and later.get("next_change_at") is None


class TestRemembered:
    """on_source_delete: keep, for append-only sources whose raw data is purged upstream."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": REMEMBER}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        create_source(sql)

    def test_the_window_decides(self, mv: Any, sql: Any) -> None:
        mv.run("2026-02-01 06:00:00")
        drawn = mv.by_id("split")
        before = wanted(sql, "2026-02-02"), wanted(sql, "2026-02-20")
        sql("delete from {schema}.src")
        kept = mv.run("2026-02-01 12:00:00")
        assert kept["rows_deleted"] == 0
        moved = mv.run("2026-02-02 00:00:00")
        assert (moved["rows_inserted"], moved["rows_deleted"], moved["rows_evicted"]) == (1, 1, 1)
        assert mv.rows("id, created_at") == before[0]
        # rows that were not valid yet enter although the source has lost them
        mv.run("2026-02-20 00:00:00")
        assert mv.rows("id, created_at") == before[1]
        now = mv.by_id("split")
        assert all(drawn[key] == value for key, value in now.items() if key in drawn)
        # a full refresh cannot read what the source has lost, and does not lose it either
        mv.run("2026-02-20 00:00:00", "--full-refresh")
        assert mv.by_id("split") == now


class TestRememberedUntil:
    """on_source_delete: keep, and a source that says itself until when a row is valid."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": UNTIL, "versions.sql": VERSIONS}

    def test_windows_that_follow_each_other_need_a_key_of_their_own(self, project: Any, sql: Any) -> None:
        sql(
            "create table {schema}.days using delta as select 1 as k, explode(array(timestamp'2026-02-01', timestamp'2026-02-02')) as since"
        )
        said = Mv(sql, "versions").run("2026-02-01 06:00:00", expect_pass=False)
        assert "KEY_REPEATED" in said and "name the column in which their windows begin in unique_key" in said
        assert sql("show tables in {schema} like 'versions*'") == []

    def test_an_update_that_closes_the_window_is_no_loss(self, mv: Any, sql: Any) -> None:
        sql(
            "create table {schema}.src using delta as select id, 'v1' as v, cast(null as timestamp) as until from range(4)"
        )
        sql("update {schema}.src set until = timestamp'2026-02-20' where id in (2, 3)")
        mv.run("2026-02-01 06:00:00")
        drawn = mv.by_id("split")
        sql("update {schema}.src set until = timestamp'2026-02-01 12:00:00', v = 'v2' where id in (0, 2)")
        sql("delete from {schema}.src where id in (1, 3)")
        done = mv.run("2026-02-02 06:00:00")
        assert (done["rows_inserted"], done["rows_updated"], done["rows_deleted"]) == (0, 0, 2)
        assert mv.by_id("split") == {key: drawn[key] for key in (1, 3)}  # these the source has lost
        mv.run("2026-02-21 06:00:00")
        assert set(mv.by_id("split")) == {1}
        # it comes again: another row, whose values nobody remembers
        sql("update {schema}.src set until = null where id = 0")
        assert mv.run("2026-02-21 07:00:00")["rows_inserted"] == 1
        assert mv.by_id("split")[1] == drawn[1] and mv.by_id("split")[0] != drawn[0]


class TestClockColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": SHOWN}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        create_source(sql)

    def test_frozen_and_shown(self, mv: Any, sql: Any) -> None:
        mv.run("2026-02-01 06:00:00")
        sql("insert into {schema}.src values (500, timestamp'2026-01-01')")
        mv.run("2026-02-03 07:00:00")
        seen = {(str(first), str(today)) for first, today in mv.by_id("first_seen_at, today").values()}
        assert seen == {("2026-02-01 06:00:00", "2026-02-03"), ("2026-02-03 07:00:00", "2026-02-03")}
