"""Evicted rows are counted by keys that the query computes: aggregates, window functions, what is made of an alias."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from direct import Model, Pool

SCHEMA = "evicted_keys"
#: name → a query with a condition on the clock that is not solved, and its unique_key, of which a part is no column of the table
KEYS = {
    "least": ("select k, min(x) as f, count(*) as n from {t} where {window} group by k", ["k", "f"]),
    "numbered": (
        "select k, row_number() over (partition by k order by x) as rn, x from {t} where {window}",
        ["k", "rn"],
    ),
    "by_alias": ("select k * 2 as double, double + 1 as more, x from {t} where {window}", ["double", "more", "x"]),
}


@pytest.fixture(scope="module")
def pool(spark: Any) -> Iterator[Pool]:
    found = Pool(spark, 1)
    found.first.query(f"drop schema if exists {SCHEMA} cascade")
    found.first.query(f"create schema {SCHEMA}")
    yield found
    found.first.query(f"drop schema if exists {SCHEMA} cascade")


def test_evicted_rows_are_counted_by_keys_that_the_query_computes(pool: Pool) -> None:
    session = pool.first
    session.query(
        f"create table {SCHEMA}.h using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
        "select id % 3 as k, id as x, timestamp'2026-01-10 00:00:00' + make_interval(0, 0, 0, 0, id) as ts from range(6)"
    )
    window = "hour(ts) + 1 > hour(current_timestamp())"
    texts = {name: (sql.format(t=f"{SCHEMA}.h", window=window), key) for name, (sql, key) in KEYS.items()}
    models = [Model(SCHEMA, name, sql, {"unique_key": key}) for name, (sql, key) in texts.items()]
    for model in models:
        model.run(session, "2026-01-10 00:30:00")
    session.query(f"delete from {SCHEMA}.h where x = 5")
    for model in models:  # of k = 0, 1, 2 the first hour leaves; the last of 2 is deleted
        run = model.run_incrementally(session, "2026-01-10 03:30:00")
        assert run.plan.strategy != "COMPLETE_RECOMPUTE", run.plan.candidates
        at_once = model.sql.replace("current_timestamp()", "timestamp'2026-01-10 03:30:00'")
        assert session.bag(f"select * from {model.table}") == session.bag(at_once), model.name
        assert "evicted)" in run.response()._message, (model.name, run.response())
