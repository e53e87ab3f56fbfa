"""Of a SELECT with LIMIT, only the rows that it may show are asked about."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.ai_plan import plan_ai

pytestmark = pytest.mark.unit


def asked(sql: str) -> str:
    plan = plan_ai(sql, results_table="r", identity={"model": "m"})
    assert not plan.errors
    return plan.calls[-1].request_sql.split("SELECT DISTINCT request FROM (", 1)[1]


@pytest.mark.parametrize(
    ("sql", "order", "number"),
    [
        ("select id, ai_gen(body) as a from t order by id limit 100", "id", 100),
        ("select id, ai_gen(body) as a from t order by ts desc nulls last, 1 limit 10 offset 5", "ts desc nulls last, id", 15),
        ("select id, upper(n) as m, ai_gen(body) as a from t order by m, t.k desc limit 3", "upper(n), t.k desc", 3),
        ("select id, row_number() over (order by k) as n, ai_gen(body) as a from t order by `id` limit 3", "id", 3),
        ("select *, ai_gen(body) as a from t order by x + 1 asc limit 3", "x + 1 asc", 3),
        ("select id, ai_gen(body) as a from t where ai_filter(x, 'q') order by id limit 3", "id", 3),
        ("with c as (select *, ai_gen(body) as a from t) select id, a from c where id > 3 order by ts limit 10", "ts", 10),
    ],
)  # fmt: skip
def test_those_that_tie_with_the_last_one_too(sql: str, order: str, number: int) -> None:
    text = asked(sql)
    assert f"rank() OVER (ORDER BY {order}) AS __mv_rank FROM" in text and f"WHERE __mv_rank <= {number})" in text


@pytest.mark.parametrize(
    "sql",
    [
        "select id, ai_gen(body) as a from t limit 6",  # any of them, perhaps others than are asked about
        "with c as (select *, ai_gen(body) as a from t) select id, a from c limit 7",
        "select id, ai_gen(body) as a from t order by a limit 3",
        "select id, ai_gen(body) as a from t order by 2 limit 3",
        "select id, ai_gen(body) as a, upper(a) as b from t order by b limit 3",
        "select id, ai_gen(body) as a from t order by all limit 3",
        "select id, ai_gen(body) as a from t sort by id limit 3",
        "select id, ai_gen(body) as a from t order by ai_gen(x) limit 3",
        "select id, ai_gen(body) as a from t union all select 1, 'x' order by 1 limit 3",
        "select id, ai_gen(body) as a from t limit all",
        "select id, ai_gen(body) as a from t limit 1 + 2",
        "select id, ai_gen(body) as a from t offset 3",
        "select id, x + 1 as y, ai_gen(body) as a from t order by upper(y) limit 3",  # of the alias, or of a column
        "select id, ai_gen(body) as a from t order by row_number() over (order by id) limit 3",
        "select distinct id, ai_gen(body) as a from t order by id limit 3",
        "select * from t where ai_filter(x, 'q') order by id limit 3",
        "select count(ai_gen(body)) as n from t limit 1",
        "select id, explode(arr) as e, ai_gen(body) as a from t limit 3",
        "select id, max(ai_gen(body)) over (partition by k) as a from t order by id limit 3",
        "with c as (select id, ai_gen(body) as a from t) select * from c order by a limit 10",
        "with c as (select id, ai_gen(body) as a from t) select id, upper(a) as u from c order by u limit 10",
        "with c as (select id, ai_gen(body) as a from t) select id, a from c where a = 'x' order by id limit 10",
        "with c as (select id, ai_gen(body) as a from t) select max(a) as m from c limit 1",
        "select id, (select ai_gen(r.txt) from r where r.tid = t.id order by r.ts limit 1) as a from t",
    ],
)
def test_all_rows(sql: str) -> None:
    assert "__mv_rank" not in asked(sql) and "LIMIT" not in asked(sql)
