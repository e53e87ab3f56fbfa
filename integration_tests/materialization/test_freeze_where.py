"""freeze_where: rows of the table for which a condition holds are neither changed nor deleted; the window still takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.materialization.conftest import Mv

JOINED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze_where=var('frozen', "day < date'2026-01-10'"),
          refresh=var('refresh', 'auto'), audit=var('every', none)) }}
select o.id, o.day, o.v * {{ var('times', 1) }} as v, c.name, rand() as draw {{ var('more', '') }}
from {{ target.schema }}.src o join {{ target.schema }}.dim c on c.id = o.cid
"""
PLAIN = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze_where="v = 'closed'", refresh='incremental_strict') }}
select id, v, rand() as draw from {{ target.schema }}.many
"""
WINDOW = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze_where="d < current_date() - interval 2 days") }}
select id, d, v, rand() as draw from {{ target.schema }}.days where d > date_sub(current_date(), 5)
"""
GROUPS = """
{{ config(materialized='nondeterministic_mv', unique_key='d', freeze_where="d < current_date() - interval 2 days") }}
select d, count(*) as n from {{ target.schema }}.days where d > date_sub(current_date(), 5) group by d
"""
REFUSED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze_where=var('frozen')) }}
select id, d, v, rand() as draw from {{ target.schema }}.days
"""
PROPERTIES = """
models:
  - name: mv
    data_tests: [matches_recompute]
"""
FEED = "using delta tblproperties (delta.enableChangeDataFeed = true)"


class TestFreezeWhere:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "mv.sql": JOINED,
            "plain.sql": PLAIN,
            "windowed.sql": WINDOW,
            "groups.sql": GROUPS,
            "refused.sql": REFUSED,
            "models.yml": PROPERTIES,
        }

    def test_frozen_rows_stay_whatever_dimensions_and_sql_do(
        self, project: Any, mv: Any, sql: Callable[[str], Any]
    ) -> None:
        sql(f"create table {{schema}}.src {FEED} as select id, date_add(date'2026-01-05', cast(id as int)) as day, "
            "1 as v, id % 2 as cid from range(10)")  # fmt: skip
        sql(f"create table {{schema}}.dim {FEED} as select id, concat('old ', id) as name from range(2)")
        columns = "day, v, name, draw"
        mv.run()
        first = mv.by_id(columns)

        sql("update {schema}.dim set name = concat('new ', id)")
        sql("update {schema}.src set v = 7 where id in (1, 8)")
        sql("delete from {schema}.src where id in (2, 9)")
        sql("insert into {schema}.src values (20, date'2026-01-01', 1, 0), (21, date'2026-01-20', 1, 0)")
        done = mv.run(every=True)
        rows = mv.by_id(columns)
        assert done["rows_deleted"] == 1 and done["rows_inserted"] == 2
        assert {k: rows[k] for k in range(5)} == {k: first[k] for k in range(5)}  # 2 is lost, 1 edited at the source
        assert 9 not in rows and rows[8][1] == 7 and rows[8][2] == "new 0" and rows[8][3] == first[8][3]
        assert rows[20][2] == rows[21][2] == "new 0"  # what is new comes in, late or not
        assert mv.run()["strategy"] == "NO_OP"
        run_dbt(["test", "--select", "mv"])

        sql("insert into {schema}.src values (2, date'2026-01-30', 5, 0)")  # the key of a row that is frozen
        assert mv.run()["rows_inserted"] == 0 and mv.by_id(columns) == rows
        frozen = {k: rows[k] for k in (0, 1, 2, 3, 4, 20)}
        mv.run(times=3)  # other SQL, another column, a rebuild
        assert {k: v for k, v in mv.by_id(columns).items() if k in frozen} == frozen
        assert mv.by_id("v")[8] == (21,)
        assert mv.run(times=3, more=", o.v + 1 as w")["code"] == "REPLACE"
        mv.run("2026-02-01 06:00:00", "--full-refresh", times=3, more=", o.v + 1 as w")
        after = mv.by_id(columns + ", w")
        assert {k: v[:-1] for k, v in after.items() if k in frozen} == frozen
        assert after[1][-1] == 8 and after[0][-1] == 2  # a column that is new has the query's value

        mv.run(frozen="", times=3)  # without it, the table is the query again
        assert mv.rows("id, v, name") == dict.fromkeys(sql("select o.id, o.v * 3, c.name from {schema}.src o join {schema}.dim c on c.id = o.cid"), 1)  # fmt: skip
        assert {k: v for (k, v) in mv.by_id("draw").items() if k in first} == {
            k: (v[-1],) for k, v in first.items() if k != 9
        }

    def test_incremental_strategies_leave_them_too(self, project: Any, sql: Callable[[str], Any]) -> None:
        sql(f"create table {{schema}}.many {FEED} as select id, if(id < 100, 'closed', 'open') as v from range(20000)")
        plain = Mv(sql, "plain")
        plain.run()
        sql("update {schema}.many set v = 'edited' where id in (5, 500)")
        sql("delete from {schema}.many where id in (6, 600)")
        done = plain.run()
        assert (done["strategy"], done["rows_updated"], done["rows_deleted"]) == ("ROW_BASED", 1, 1)
        assert plain.rows("id, v", "id in (5, 500, 6, 600)") == {(5, "closed"): 1, (500, "edited"): 1, (6, "closed"): 1}
        sql("insert into {schema}.many values (6, 'back'), (600, 'back'), (20001, 'closed')")
        done = plain.run()
        assert (done["strategy"], done["rows_inserted"], done["rows_updated"]) == ("ROW_BASED", 2, 0)

    def test_the_window_takes_frozen_rows(self, project: Any, sql: Callable[[str], Any]) -> None:
        sql(
            f"create table {{schema}}.days {FEED} as select id, date_add(date'2026-02-01', cast(id as int)) as d, 1 as v from range(5)"
        )
        windowed, groups = Mv(sql, "windowed"), Mv(sql, "groups")
        for one in (windowed, groups):
            one.run("2026-02-05 06:00:00")  # frozen are those of the first and the second
        draws = windowed.by_id("draw")
        sql("truncate table {schema}.days")  # the source lost everything
        sql("insert into {schema}.days values (10, date'2026-02-02', 1)")
        windowed.run("2026-02-05 07:00:00")
        groups.run("2026-02-05 07:00:00")
        assert windowed.by_id("draw") == {**{k: draws[k] for k in (0, 1)}, 10: windowed.by_id("draw")[10]}
        assert groups.rows("cast(d as string), n") == {("2026-02-01", 1): 1, ("2026-02-02", 1): 1}
        # the source knows nothing of the row of the first any more: the table tells when it leaves
        for one in (windowed, groups):
            assert one.run("2026-02-05 20:00:00")["strategy"] == "NO_OP"
            done = one.run("2026-02-06 00:00:00")
            assert (done["rows_deleted"], done["strategy"] == "NO_OP") == (1, False)
        assert set(windowed.by_id("d")) == {1, 10}
        windowed.run("2026-02-07 00:00:00")
        assert set(windowed.by_id("d")) == set()

        # the window takes a frozen row: what the source has had of its key since then enters
        sql("insert into {schema}.days values (30, date'2026-02-07', 1), (31, date'2026-02-12', 1)")
        windowed.run("2026-02-10 06:00:00")
        frozen = windowed.by_id("d, v, draw")
        sql("update {schema}.days set d = date'2026-02-12', v = 2 where id = 30")
        windowed.run("2026-02-11 06:00:00")
        assert windowed.by_id("d, v, draw") == frozen
        done = windowed.run("2026-02-12 06:00:00")
        assert (done["rows_deleted"], done["rows_inserted"], done["rows_updated"]) in ((1, 1, 0), (0, 0, 1))
        assert windowed.rows("id, cast(d as string), v") == {(30, "2026-02-12", 2): 1, (31, "2026-02-12", 1): 1}
        assert windowed.by_id("d, v, draw")[31] == frozen[31]

        refused = Mv(sql, "refused")
        for condition, why in {
            "rand() < 0.5": "depends on rand",
            "id in (select 1)": "has a subquery",
            "sum(id) > 1": "has an aggregate",
            "d > current_date()": "can become false by the clock alone",
            "nowhere = 1": "cannot be evaluated on the query's columns: [UNRESOLVED_COLUMN",
            "id + 1": "gives bigint",
        }.items():
            assert why in refused.run(expect_pass=False, frozen=condition)
