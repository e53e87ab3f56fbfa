"""Orders that look total and are not: rows that something multiplied, and rows of a group that share its key."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level

SCHEMAS = {
    "t": {"id": "int", "g": "string", "k": "int", "x": "int", "ts": "timestamp", "tags": "array<string>"},
    "u": {"id": "int", "y": "int"},
}
NUMBERED = "(select *, row_number() over (partition by g order by id) as rn from d) where rn = 1"


def depends_on_order(sql: str, key: str = "id") -> bool:
    analysis = analyze(sql, unique_key=key, schemas=SCHEMAS)
    assert not analysis.errors, analysis.errors
    return any(level is Level.ORDER_DEPENDENT for name, level, _, _ in analysis.functions if name != "collect_set")


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        (f"with d as (select t.id, t.g from t join u on u.id = t.k) select id, g from {NUMBERED}", "id"),
        (f"with d as (select id, g from t union all select id, g from t) select id, g from {NUMBERED}", "id"),
        (f"with d as (select id, g, explode(tags) as tag from t) select id, g from {NUMBERED}", "id"),
        (
            f"with d as (select id, g, tag from t lateral view explode(tags) v as tag) select id, g from {NUMBERED}",
            "id",
        ),
        (f"with d as (select id, g, x, count(*) as n from t group by id, g, x) select id, g from {NUMBERED}", "id"),
        (
            "with a as (select g, collect_set(x) as xs from t group by g), b as (select g, explode(xs) as x from a) "
            "select g, x from (select *, row_number() over (order by g) as rn from b) where rn < 5",
            "g",
        ),
        ("select k, max_by(x, k) as m from t group by k", "k"),
        ("select k, min_by(x, struct(k, ts)) as m from t group by k", "k"),
        ("select k, max_by(x, id) as m from (select distinct id, k, x from t) group by k", "k"),
        ("select k, listagg(g, ',') within group (order by k) as m from t group by k", "k"),
        ("select t.id, u.y from t join u on u.id = t.id order by t.id limit 3", "id"),
        ("select id, row_number() over (order by date_trunc('day', ts)) as rn from t", "id"),
        # of a total, the keys are NULL as they may be of a group
        ("select k, g, row_number() over (order by k, g) as rn from t group by rollup(k, g)", "rn"),
        ("select k, g, row_number() over (order by k, g) as rn from t group by k, g with rollup", "rn"),
        ("select k, g, row_number() over (order by k, g) as rn from t group by grouping sets ((k, g), (k))", "rn"),
        ("select k, g, sum(x) as n from t group by k, cube(g) order by k, g limit 3", "k"),
        # a pipe's LIMIT comes before the order behind it
        ("from t |> limit 3 |> order by id |> select id, x", "id"),
        ("from t |> order by id |> limit 5 offset 2 |> limit 5 offset 1 |> select id, x", "id"),
        ("from t |> order by id |> limit 5 |> limit 5 offset 1 |> select id, x", "id"),
    ],
)
def test_not_total(sql: str, key: str) -> None:
    assert depends_on_order(sql, key)


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("select id, row_number() over (partition by g order by ts, id) as rn from t", "id"),
        (
            "select id from (select *, row_number() over (partition by g order by ts, id) as rn from t) where rn = 1",
            "id",
        ),
        ("select t.id, row_number() over (order by t.id) as rn from t join u on t.id = u.id", "id"),
        ("select k, max_by(x, id) as m from (select id, k, max(x) as x from t group by id, k) group by k", "k"),
        ("select id, x from t order by id limit 3", "id"),
        ("from t |> order by id |> limit 3 |> select id, x", "id"),
        ("from t |> order by id |> limit 5 |> limit 3 |> select id, x", "id"),
        ("select k, max_by(n, g) as m from (select k, g, count(*) as n from t group by k, g) group by k", "k"),
    ],
)
def test_total(sql: str, key: str) -> None:
    assert not depends_on_order(sql, key)
