"""Conditions on the clock that are not solved are asked at two instants; a row that comes and leaves within one run is never there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import pytest
from direct import Direct, Model, Pool

from spark_mv.query.rewrite.pin import Pins, pin

SCHEMA = "two_instants"
T, U = f"{SCHEMA}.t", f"{SCHEMA}.u"
#: name → query, unique_key, and the strategy when the clock alone moves
MODELS = {
    "hours": (f"select id, x, rand() as r from {T} where hour(ts) <= hour(now())", "id", "ROW_BASED"),
    "text_of_a_day": (f"select id from {T} where date_format(ts, 'yyyy-MM-dd HH') >= date_format(now() - interval 3 hours, 'yyyy-MM-dd HH')",
                      "id", "ROW_BASED"),
    "months": (f"select id, u.y from {T} t left join {U} u on u.k = t.k and months_between(now(), t.ts) * 744 <= u.y", "id", "ROW_BASED"),
    "groups": (f"select k, count(*) as n, count_if(ts > now() - interval 2 hours) as recent from {T} group by k", "k", "GROUP_AGGREGATE"),
    "last_seen": (f"select k, max(ts) as m from {T} group by k having max(ts) > now() - interval 3 hours", "k", "GROUP_AGGREGATE"),
    "carried": (f"with a as (select *, timestampdiff(MINUTE, ts, now()) as age from {T}) "
                "select id, k, age < 120 as young from (select *, row_number() over (partition by k order by ts desc, id) as rn from a) "
                "where rn = 1 and age <= 200", "id", "WINDOW_FUNCTION"),
    "carried_union": (f"with a as (select id, timestampdiff(MINUTE, ts, now()) as age from {T} where id > 2 "
                      f"union all select k + 100, y * 30 from {U}) select id from a where age <= 200", "id", "ROW_BASED"),
    "without_partner": (f"select t.id, t.x from {T} t left join {U} u on u.k = t.k and hour(t.ts) > hour(now()) where u.k is null", "id",
                        "ROW_BASED"),
    "params": (f"with p as (select date_trunc('hour', now()) - interval 2 hours as since) select t.id from {T} t cross join p "
               "where t.ts >= p.since", "id", "ROW_BASED"),
    "hours_while_open": (f"select id, timestampdiff(HOUR, ts, if(x > 2, ts, now())) as hours, rand() as r from {T}", "id", "ROW_BASED"),
    "texts_and_parts": (f"with a as (select *, named_struct('h', timestampdiff(HOUR, ts, now())) as age from {T}) "
                        f"select a.*, u.y, concat('at ', date_format(now(), 'HH')) as at, rand() as r from a left join {U} u on u.k = a.k",
                        "id", "ROW_BASED"),
    "hours_of_groups": (f"select k, sum(timestampdiff(HOUR, ts, now())) as hours, max(ts) as m from {T} group by k", "k", "GROUP_AGGREGATE"),
    "beside_a_map": (f"with a as (select *, map('a', x) as m, timestampdiff(HOUR, ts, now()) as age from {T}) select * from a", "id", "ROW_BASED"),
    "hours_of_partitions": (f"select id, k, x, sum(timestampdiff(HOUR, ts, now())) over (partition by k) as hours from {T}", "id",
                            "WINDOW_FUNCTION"),
}  # fmt: skip
#: a row of `t` is there for an hour
PASSING = {
    "rows": (f"select id, x from {T} where ts <= now() and ts > now() - interval 1 hour", "id"),
    "grouped": (f"select k, count(*) as n, sum(x) as s from {T} where ts between now() - interval 1 hour and now() group by k", "k"),
    "without_partner": (f"select u.k, u.y from {U} u left join {T} t on t.k = u.k and t.ts <= now() and t.ts > now() - interval 1 hour "
                        "where t.id is null", "k"),
    "without": (f"select u.k, u.y from {U} u left anti join {T} t on t.k = u.k and t.ts <= now() and t.ts > now() - interval 1 hour", "k"),
}  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Direct]:
    pool = Pool(spark, 1)
    pool.first.query(f"drop schema if exists {SCHEMA} cascade")
    pool.first.query(f"create schema {SCHEMA}")
    yield pool.first
    pool.first.query(f"drop schema if exists {SCHEMA} cascade")


def _fill(session: Direct) -> None:
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    session.query(
        f"create or replace table {T} {feed} as select id, id % 4 as k, id * 3 % 5 as x, "
        "timestamp'2026-01-10 00:00:00' + make_interval(0, 0, 0, 0, 0, id * 20) as ts from range(30)"
    )
    session.query(f"create or replace table {U} {feed} as select id as k, id * 2 as y from range(5)")


def _check(session: Direct, model: Model, as_of: str, *hidden: str) -> None:
    """The table is what the whole query gives at the instant; draws aside."""
    at = datetime.fromisoformat(as_of).replace(tzinfo=timezone.utc)
    except_ = f" except ({', '.join(hidden)})" if hidden else ""
    wanted = session.bag(f"select *{except_} from ({pin(model.sql, Pins(at)).sql})")
    assert session.bag(f"select *{except_} from {model.table}") == wanted, (model.name, as_of, session.statements)


def _models(queries: Mapping[str, tuple[str, ...]]) -> dict[str, Model]:
    return {name: Model(SCHEMA, name, sql, {"unique_key": key}) for name, (sql, key, *_) in queries.items()}


def drawn(model: Model) -> list[str]:
    return ["r"] if "rand()" in model.sql else []


def test_what_the_clock_decides_is_followed(session: Direct) -> None:
    _fill(session)
    models = _models(MODELS)
    for model in models.values():
        model.run(session, "2026-01-10 04:10:00")
    for name, model in models.items():  # the clock alone
        run = model.run_incrementally(session, "2026-01-10 05:30:00")
        assert run.plan.strategy == MODELS[name][2], run.plan.candidates
        assert not session.warnings
        _check(session, model, "2026-01-10 05:30:00", *drawn(model))
    session.query(f"update {T} set ts = ts + interval 3 hours, x = 9 where id in (2, 7, 15)")
    session.query(
        f"insert into {T} values (40, 1, 1, timestamp'2026-01-10 05:45:00'), (41, 9, 1, timestamp'2026-01-10 06:45:00')"
    )
    session.query(f"delete from {T} where id in (1, 22)")
    session.query(f"update {U} set y = y + 3 where k = 1")
    for name, model in models.items():  # sources and clock
        run = model.run_incrementally(session, "2026-01-11 03:20:00")
        assert run.plan.strategy in (MODELS[name][2], "COMPLETE_RECOMPUTE"), run.plan.candidates
        assert not session.warnings
        _check(session, model, "2026-01-11 03:20:00", *drawn(model))


def test_whether_the_clocks_own_value_is_followed_is_learned(session: Direct) -> None:
    """Of 3,000 rows all change, or two: the text does not tell, the run before does."""
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    table = f"{SCHEMA}.many"
    days = ("2026-01-10 06:00:00", "2026-01-11 04:00:00", "2026-01-12 04:00:00", "2026-01-13 04:00:00")
    went: dict[str, list[tuple[str, int]]] = {"age": [], "open": []}
    models = _models(
        {
            "age": (f"select id, datediff(current_date(), d) as age from {table}", "id"),
            "open": (
                f"select id, rand() as r, datediff(coalesce(ended, current_date()), d) as days from {table}",
                "id",
            ),
        }
    )
    session.query(
        f"create or replace table {table} {feed} as select id, if(id < 2, null, date'2026-01-05') as ended, "
        "date'2026-01-01' as d from range(3000)"
    )
    for model in models.values():
        model.run(session, "2026-01-10 04:10:00")
    draws = session.bag(f"select id, r from {models['open'].table}")
    for number, as_of in enumerate(days):
        session.query(f"insert into {table} values ({3000 + number}, null, date'2026-01-01')")
        for name, model in models.items():
            run = model.run(session, as_of)
            went[name].append((run.plan.strategy, run.staged.updated))
            _check(session, model, as_of, *drawn(model))
    # within a day the clock stands still; then nothing is known at first, and all rows could be others
    assert went["age"] == [("APPEND_ONLY", 0), *(("COMPLETE_RECOMPUTE", 3000 + n) for n in (1, 2, 3))]
    assert [strategy for strategy, _ in went["open"]] == ["APPEND_ONLY", "COMPLETE_RECOMPUTE", "ROW_BASED", "ROW_BASED"]
    assert [updated for _, updated in went["open"]] == [0, 3, 4, 5]
    assert draws <= session.bag(f"select id, r from {models['open'].table}")


def test_a_row_that_comes_and_leaves_between_two_runs_is_never_there(session: Direct) -> None:
    _fill(session)
    models = _models(PASSING)
    for model in models.values():
        model.run(session, "2026-01-10 04:10:00")
    # its window opened and closed between the two runs; another row of the same key and group goes on
    session.query(
        f"insert into {T} values (40, 1, 7, timestamp'2026-01-10 05:00:00'), (41, 3, 7, timestamp'2026-01-10 06:45:00')"
    )
    for model in models.values():
        run = model.run_incrementally(session, "2026-01-10 07:10:00")
        assert run.plan.strategy in ("ROW_BASED", "GROUP_AGGREGATE", "APPEND_ONLY"), run.plan.candidates
        assert not session.warnings
        _check(session, model, "2026-01-10 07:10:00")
