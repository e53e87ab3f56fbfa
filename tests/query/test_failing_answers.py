"""on_ai_error: keep_old: which rows show failing answers, or why that cannot be told."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.ai_plan import plan_ai

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select id, ai_gen(body) as answer from src", ("answer",)),
        ("select *, ai_gen(body) as answer from src", ("answer",)),
        ("select id, upper(ai_gen(body)) as a, x, lower(a) as b from src where x > 2", ("a", "b")),
        ("select id, ai_gen(ai_gen(body)) as twice from src", ("twice",)),
        (
            "with b as (select * from src) select b.id, coalesce(ai_gen(b.body), 'none') as a from b join d on d.id = b.id",
            ("a",),
        ),
        ("select id, case when x > 1 then ai_gen(body) end as c, ai_similarity(a, b) as s from src", ("c", "s")),
    ],
)
def test_columns_that_may_keep_their_old_value(sql: str, columns: tuple[str, ...]) -> None:
    found = plan_ai(sql, results_table="r", identity={"model": "m"}, failing_keys=("id",))
    assert not found.errors and found.failing is not None
    assert found.failing.columns == columns
    assert found.failing.sql.startswith(f"SELECT `id`, {', '.join(f'`{name}`' for name in columns)} FROM (")
    assert found.sql == plan_ai(sql, results_table="r", identity={"model": "m"}).sql


@pytest.mark.parametrize(
    "sql",
    [
        "select id, ai_gen(body) as answer from src order by id limit 5",
        "select id, max(ai_gen(body)) as answer from src group by id",
        "select id, row_number() over (order by ai_gen(body)) as n from src",
        "select distinct id, ai_gen(body) as answer from src",
        "select id from src where ai_gen(body) = 'x'",
        "with a as (select id, ai_gen(body) as g from src) select id, g from a",
        "select id, ai_gen(body) as g from src union all select id, 'x' from src",
        "select id, ai_gen(body) from src",
        "select ai_gen(body) as id from src",
    ],
)
def test_what_is_refused(sql: str) -> None:
    (error,) = plan_ai(sql, results_table="r", identity={"model": "m"}, failing_keys=("id",)).errors
    assert error.code == "AI_KEEP_OLD" and "on_ai_error: null" in error.message


def test_a_branch_that_is_not_taken_is_not_failing() -> None:
    sql = "select id, case when x > 1 then ai_gen(body) else 'none' end as c from src"
    found = plan_ai(sql, results_table="r", identity={"model": "m"}, failing_keys=("id",)).failing
    assert found is not None and "coalesce(CASE WHEN x > 1 THEN (SELECT" in found.sql


def test_an_error_that_the_query_asks_for_is_no_failing_answer() -> None:
    sql = "select id, ai_query('m', body, failOnError => false) as a from src"
    found = plan_ai(sql, results_table="r", identity={"model": "m"}, failing_keys=("id",)).failing
    assert found is not None and "ai_results" not in found.sql and "SELECT false" in found.sql


def test_a_call_that_nobody_reads_keeps_nothing_from_being_told() -> None:
    sql = "with d as (select ai_gen(s) as g from t) select id, ai_gen(body) as a from t"
    plan = plan_ai(sql, results_table="r", identity={"model": "m"}, failing_keys=["id"])
    assert not plan.errors and plan.failing is not None and plan.failing.columns == ("a",)
