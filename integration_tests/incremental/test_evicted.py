"""Rows that leave by the clock are called evicted, whatever strategy takes them and whatever their keys are made of."""

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


def test_above_a_view_they_are_counted_as_above_its_table(pool: Pool) -> None:
    session = pool.first
    session.query(
        f"create table {SCHEMA}.b using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
        "select id, id as x, timestamp'2026-01-05 00:00:00' + make_interval(0, 0, 0, 0, id) as ts from range(240)"
    )
    session.query(f"create view {SCHEMA}.shown as select id, x, ts from {SCHEMA}.b")
    windows = ("ts > current_timestamp() - interval 3 days", "cast(ts as date) > current_date() - interval 3 days")
    models = [
        Model(SCHEMA, f"{read}{k}", f"select id, x, ts from {SCHEMA}.{read} where {window}", {"unique_key": "id"})
        for k, window in enumerate(windows)
        for read in ("b", "shown")
    ]
    for model in models:
        model.run(session, "2026-01-12 12:00:00")
    session.query(f"update {SCHEMA}.b set x = x + 1 where id % 9 = 0")
    session.query(f"delete from {SCHEMA}.b where id % 17 = 3")
    runs = [model.run_incrementally(session, "2026-01-13 12:00:00") for model in models]
    told = [run.response()._message for run in runs]
    assert {run.plan.strategy for run in runs} == {"ROW_BASED"}
    assert told[0] == told[1] and told[2] == told[3] and all("evicted" in text for text in told), told
    for model in models:
        at_once = model.sql.replace("current_timestamp()", "timestamp'2026-01-13 12:00:00'")
        at_once = at_once.replace("current_date()", "date'2026-01-13'")
        assert session.bag(f"select * from {model.table}") == session.bag(at_once), model.name
