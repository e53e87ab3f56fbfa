"""Rows that leave by the clock are called evicted, whatever strategy takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from direct import Model, Pool

SCHEMA = "evicted"
WINDOW = "ts > current_timestamp() - interval 1 day"
#: name → the query, and the strategy by which its groups leave
MODELS = {
    "adjusted": (f"select k, count(*) as n, sum(x) as s from {SCHEMA}.t where {WINDOW} group by k", "GROUP_AGGREGATE"),
    "touched": (f"select k, avg(x) as a from {SCHEMA}.t where {WINDOW} group by k", "GROUP_AGGREGATE"),
    "recomputed": (
        f"select k, n from (select k, count(*) as n, row_number() over (order by k) as rn from {SCHEMA}.t where {WINDOW} "
        "group by k) where rn > 0",
        "COMPLETE_RECOMPUTE",
    ),
}


@pytest.fixture(scope="module")
def pool(spark: Any) -> Iterator[Pool]:
    found = Pool(spark, 1)
    found.first.query(f"drop schema if exists {SCHEMA} cascade")
    found.first.query(f"create schema {SCHEMA}")
    yield found
    found.first.query(f"drop schema if exists {SCHEMA} cascade")


def test_groups_that_leave_are_evicted(pool: Pool) -> None:
    session = pool.first
    session.query(
        f"create table {SCHEMA}.t using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
        "select id as k, id as x, timestamp'2026-01-10 00:00:00' + make_interval(0, 0, 0, 0, id) as ts from range(6)"
    )
    models = {name: Model(SCHEMA, name, sql, {"unique_key": "k"}) for name, (sql, _) in MODELS.items()}
    for model in models.values():
        model.run(session, "2026-01-10 12:30:00")
    for name, model in models.items():  # the hours 0 and 1 leave
        run = model.run_incrementally(session, "2026-01-11 01:30:00")
        assert run.plan.strategy == MODELS[name][1], run.plan.candidates
        assert "-2 (2 evicted)" in run.response()._message, (name, run.response())
    session.query(f"delete from {SCHEMA}.t where k = 5")
    for name, model in models.items():  # one goes by the clock, one is deleted
        run = model.run_incrementally(session, "2026-01-11 02:30:00")
        told = "-2" if name == "recomputed" else "-2 (1 evicted)"
        assert told in run.response()._message, (name, run.response())
        assert name != "recomputed" or "evicted" not in run.response()._message
