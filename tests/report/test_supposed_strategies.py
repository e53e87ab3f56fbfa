"""Which strategies `explain` says apply, with the columns of the tables known and without."""

from __future__ import annotations

import pytest

from spark_mv.explain.judgement import judge
from spark_mv.query.functions.level import Level

pytestmark = pytest.mark.unit
T = {"id": "int", "k": "string", "a": "array<int>", "v": "int", "d": "date", "ts": "timestamp"}
TABLES = {"t": T, "u": {"id": "int"}}
ROW = {"NO_OP", "APPEND_ONLY", "ROW_BASED", "COMPLETE_RECOMPUTE"}
FULL = {"NO_OP", "COMPLETE_RECOMPUTE"}
CASES = [
    ("select id, upper(a) as a from t", ROW),
    ("select id, rand() as r from t where rand() < 0.5", FULL | {"ROW_BASED"}),
    ("select id from t where rand() < (select max(id) from u)", FULL),
    ("select id from t where ts > current_timestamp() - interval 3 days", ROW - {"APPEND_ONLY"}),
    ("select t.id from t join u on t.id = u.id", ROW - {"APPEND_ONLY"}),
    ("select id from t union all select id from u", ROW),
    ("select id from t union all select id from t where x > 3", ROW - {"APPEND_ONLY"}),
    ("select id from t union select id from u", FULL | {"ROW_BASED"}),
    ("select id, explode(a) as x from t", ROW),
    ("select id, count(*) as n from t group by id", FULL | {"GROUP_AGGREGATE"}),
    ("select id, first(v) as n from t group by id", FULL | {"GROUP_AGGREGATE"}),
    ("with g as (select k, count(*) as n from t group by k) select k as id, n from g where n > 3", FULL | {"GROUP_AGGREGATE"}),
    ("select count(*) as id from t group by k", FULL),
    ("select count(*) as id from t", FULL),
    ("select id, k, count(*) as n from t group by rollup (id, k)", FULL),
    ("select distinct id from t", FULL | {"GROUP_AGGREGATE"}),
    ("select k as id, max(n) as m from (select k, d, count(*) as n from t group by k, d) group by k", FULL | {"GROUP_AGGREGATE"}),
    ("select id, k, sum(v) over (partition by k) as s from t", FULL | {"WINDOW_FUNCTION"}),
    ("select id, sum(v) over (partition by k) as s from t", FULL),
    ("select id, sum(v) over () as s from t", FULL),
    ("select id from t limit 10", FULL),
    ("select id from t tablesample (10 percent) repeatable (1)", FULL),
    ("select id from t where id in (select id from u)", FULL | {"ROW_BASED"}),
    ("select * from t pivot (sum(v) for k in ('a', 'b'))", FULL),
    ("from t |> where id > 3", FULL),
    ("select id from", set()),
]  # fmt: skip


@pytest.mark.parametrize("tables", [TABLES, None], ids=["schemas", "no schemas"])
@pytest.mark.parametrize(("sql", "expected"), CASES, ids=[sql for sql, _ in CASES])
def test_strategies(sql: str, expected: set[str], tables: dict[str, dict[str, str]] | None) -> None:
    judged = judge(sql, unique_key=("id",), schemas=tables)
    assert {s.strategy for s in judged.strategies if s.applies} == expected
    assert all(s.applies != bool(s.reasons) for s in judged.strategies)
    assert bool(judged.supposed) == (tables is None and bool(expected))


def test_less_than_everything_may_be_followed() -> None:
    sql = "select t.id from t where t.id not in (select id from u)"
    row = next(s for s in judge(sql, unique_key=("id",), schemas=TABLES).strategies if s.strategy == "ROW_BASED")
    assert [r.code for r in row.reasons] == ["SUBQUERY"]
    assert row.when == ("rows of t change",)


def test_a_word_is_a_column_of_the_tables_that_are_read_only() -> None:
    tables = {"t": {"id": "INT", "d": "DATE"}, "calendar": {"current_date": "DATE"}}
    sql = "select id from {} where d > current_date - 3"
    found = judge(sql.format("t"), unique_key=["id"], schemas=tables)
    assert found.errors == () and Level.COMMAND in found.analysis.levels
    column = judge(sql.format("t, calendar"), unique_key=["id"], schemas=tables)
    assert column.errors == () and Level.COMMAND not in column.analysis.levels


def test_the_columns_of_an_unpivot_are_in_the_order_of_sparks() -> None:
    tables = {"q": {"id": "INT", "q1": "INT", "q2": "INT"}}
    found = judge("select * from q unpivot (val for nm in (q1, q2))", unique_key=["id", "nm"], schemas=tables)
    assert [column.name for column in found.analysis.columns] == ["id", "nm", "val"]
