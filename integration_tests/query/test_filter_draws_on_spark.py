"""A random filter whose draws are kept: the sample stays, and is what the draws say."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.query.rewrite.filter_draws import split_filter_draws

pytestmark = pytest.mark.spark

QUERIES = (
    ("select id, x from candidates where rand() < 0.3 and x > 3", ["id"]),
    ("select * from candidates where rand() < 0.3 or x = 5", ["id"]),
    (
        "with a as (select * from candidates) select o.id as key, l.v from a o left join labels l on l.i = o.x "
        "lateral view explode(array(o.x)) e as y where floor(rand() * 3) in (1, 2) and uuid() > '4' and y >= 0 "
        "order by 1",
        ["key"],
    ),
    ("select o.*, l.v from labels l right join candidates o on l.i = o.x where randn() > 0", ["id"]),
    ("select id, * except (id), struct(*) as s, struct(* except (id)) as p from candidates where rand() < 0.5", ["id"]),
    (
        "select id % 40 as id, count(*) as n, collect_set(y) as s from candidates lateral view explode(array(x, 1)) e as y "
        "where x <> 3 group by 1 having n > 1 and (rand() < n / 20 or uuid() > 'c') order by n",
        ["id"],
    ),
    ("select o.id + 1 as id, count(*) over (partition by x) as c from candidates o where rand() < 0.5", ["id"]),
)


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = spark.newSession()
    own.sql("CREATE OR REPLACE TEMP VIEW candidates AS SELECT id, CAST(id % 10 AS INT) AS x FROM range(200)")
    own.sql("CREATE OR REPLACE TEMP VIEW labels AS SELECT id AS i, concat('v', id) AS v FROM range(5)")
    return own


@pytest.mark.parametrize(("sql", "key"), QUERIES)
def test_the_sample_stays(session: Any, sql: str, key: list[str]) -> None:
    found = split_filter_draws(sql, key, "state")
    assert found is not None and found.draw_sql and found.filtered_sql, found
    drawn = session.sql(found.draw_sql).collect()
    session.createDataFrame(drawn, session.sql(found.draw_sql).schema).createOrReplaceTempView("state")
    assert len({row[0] for row in drawn}) == len(drawn)
    first, second = (sorted(session.sql(found.filtered_sql).collect(), key=str) for _ in range(2))
    assert first == second and 0 < len(first) < len(drawn)
    assert session.sql(found.filtered_sql).schema == session.sql(sql).schema


def test_the_draw_decides(session: Any) -> None:
    sql = "select id from candidates where rand() < 0.5 and x > 3"
    found = split_filter_draws(sql, ["id"], "state")
    assert found is not None and found.filtered_sql
    session.sql(
        "CREATE OR REPLACE TEMP VIEW state AS SELECT id, IF(id % 2 = 0, 0.1, 0.9) AS __mv_draw_0 FROM range(150)"
    )
    rows = {row.id for row in session.sql(found.filtered_sql).collect()}
    assert rows == {i for i in range(150) if i % 2 == 0 and i % 10 > 3}
