"""Of which rows a frozen column's AI call is not asked: the table keeps an answer for them."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.ai_plan import AiPlan, plan_ai
from spark_mv.query.ai_calls.kept_answers import KeptAnswers

pytestmark = pytest.mark.unit


def planned(sql: str) -> AiPlan:
    kept = KeptAnswers("s.m", ("id",), ("a",))
    plan = plan_ai(sql, results_table="s.ai_results", identity={"model": "m"}, kept=kept)
    assert not plan.errors
    return plan


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("select id, ai_gen(body) as a from t", "id"),
        ("select id, ai_gen(a) as a from t where a is not null", "id"),
        ("select t.id, ai_gen(body) as A from t join u using (k)", "t.id"),
        ("select *, ai_gen(body) as a from t", "`id`"),
        ("select t.*, ai_gen(t.body) as a from t join u on t.k = u.k", "t.`id`"),
        ("select no as id, ai_gen(body) as a from t", "no"),
        ("with x as (select no as nr, ai_gen(body) as a, k from t) select nr as id, x.a from x where k > 5", "no"),
        ("with x as (select *, ai_gen(body) as b from t), y as (select id as i2, b from x) select i2 as id, b as a from y", "`id`"),
        ("with x as (select id, ai_gen(body) as a from t) select x.id, x.a from x left join u on x.id = u.id", "id"),
        ("select * from (select id, ai_gen(body) as a from t) q", "id"),
        ("with x as (select id, ai_gen(body) as a from t) select id, a from x join u on x.k = u.k", "id"),
    ],
)  # fmt: skip
def test_found(sql: str, key: str) -> None:
    (call,) = planned(sql).calls
    assert call.kept_column.lower() == "a"
    assert f"WHERE __mv_kept_0 = {key}) IS NULL THEN" in call.unkept_sql
    assert "__mv_kept" not in call.request_sql


def test_calls_in_calls_and_beside_each_other() -> None:
    calls = planned("select id, concat(ai_gen(ai_gen(x)), ai_gen(y)) as a, ai_gen(y) as b from t").calls
    assert sorted(call.kept_column for call in calls) == ["", "a", "a", "a"]


@pytest.mark.parametrize(
    "sql",
    [
        "select id, ai_gen(body) as b from t",  # not frozen
        "select id, ai_gen(body) as a, upper(a) as b from t",  # shown twice
        "select id, ai_gen(body) as a from t order by a limit 3",  # decides on rows
        "select distinct id, ai_gen(body) as a from t",
        "select id, ai_gen(body) as a from t union all select id, body from u",
        "select id + 1 as id, ai_gen(body) as a from t",  # the key is no column of what the call reads
        "select k as id0, id0 as id, ai_gen(body) as a from t",
        "with x as (select id, ai_gen(body) as a from t) select id, a from x where a = 'q'",
        "with x as (select id, ai_gen(body) as a from t) select x.id, a, upper(x.a) as b from x",
        "with x as (select id, ai_gen(body) as a from t) select u.id, a from x join u on x.k = u.k",
        "with x as (select id, ai_gen(body) as a from t) select id, max(a) as a from x group by id",
        "with x as (select id, ai_gen(body) as a from t) select * from x union all select * from x",
        "with x as (select id, ai_gen(body) as a from t) select id, a, row_number() over (order by a) as n from x",
        "select id, (select max(ai_gen(body)) from u) as a from t",
    ],
)
def test_asked_about_every_row(sql: str) -> None:
    assert {call.kept_column for call in planned(sql).calls} == {""}
