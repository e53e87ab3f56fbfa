"""Views that Spark reads otherwise than this session would read their text: never put in place of their name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.run.execute import MvRun

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
HOURS = "select id, hour(at) as n from {schema}.moments"


@pytest.fixture
def moments(engine: Any) -> Iterator[Any]:
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    engine.query(
        f"create or replace table {{schema}}.moments {feed} as select id, timestamp'2026-01-31 12:00:00Z' as at, "
        "'x' as word from range(3)"
    )
    yield engine
    engine.query("drop view if exists {schema}.sealed")


def made_with(engine: Any, settings: dict[str, str], sql: str) -> None:
    """The view, made in a session with these settings."""
    conf = engine.mv_spark().conf
    before = {name: conf.get(name, None) for name in settings}
    for name, value in settings.items():
        conf.set(name, value)
    try:
        engine.query(sql)
    finally:
        for name, value in before.items():
            conf.unset(name) if value is None else conf.set(name, value)


def more(engine: Any, number: int) -> MvRun:
    engine.query(f"insert into {{schema}}.moments values ({number}, timestamp'2026-01-31 20:00:00Z', 'x')")
    run = engine.run()
    assert engine.rows_of("select id, n from {schema}.mv order by id") == engine.rows_of(
        "select id, n from {schema}.sealed order by id"
    )
    return run  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({ZONE: "Asia/Tokyo"}, "select id, date(at) as n from {schema}.moments where hour(at) > 3"),
        ({ANSI: "true"}, "select id, concat('5' + cast(id as int), '') as n from {schema}.moments"),
    ],
)
def test_settings_of_the_session_that_made_it(moments: Any, settings: dict[str, str], text: str) -> None:
    engine = moments
    made_with(engine, {}, f"create or replace view {{schema}}.sealed as {text}")
    engine.model("select id, n, rand() as drawn from {schema}.sealed")
    engine.run()
    assert more(engine, 3).plan.strategy != "COMPLETE_RECOMPUTE"
    made_with(engine, settings, f"create or replace view {{schema}}.sealed as {text}")
    for number in (4, 5):
        run = more(engine, number)
        assert run.plan.strategy == "COMPLETE_RECOMPUTE"
    assert any("where the view was made" in reason.sentence for c in run.plan.candidates for reason in c.reasons)
    # as this session again
    made_with(engine, {}, f"create or replace view {{schema}}.sealed as {text}")
    engine.run()
    assert more(engine, 6).plan.strategy != "COMPLETE_RECOMPUTE"


def test_the_same_text_made_again_elsewhere(moments: Any) -> None:
    engine = moments
    engine.query(f"create or replace view {{schema}}.sealed as {HOURS}")
    engine.model("select id, n, rand() as drawn from {schema}.sealed")
    engine.run()
    for zone in ("Asia/Tokyo", "Pacific/Kiritimati"):
        made_with(engine, {ZONE: zone}, f"create or replace view {{schema}}.sealed as {HOURS}")
        engine.run()
        found, wanted = (
            engine.rows_of(f"select id, n from {{schema}}.{table} order by id") for table in ("mv", "sealed")
        )
        assert found == wanted


@pytest.mark.parametrize("hidden", ["rand()", "current_date()"])
def test_what_it_hides_is_refused(moments: Any, hidden: str) -> None:
    engine = moments
    made_with(
        engine,
        {ZONE: "Asia/Tokyo"},
        f"create or replace view {{schema}}.below as select id, {hidden} as n from {{schema}}.moments",
    )
    made_with(engine, {}, "create or replace view {schema}.sealed as select id, n from {schema}.below")
    made_with(engine, {ANSI: "true"}, "create or replace view {schema}.above as select * from {schema}.sealed")
    for name in ("below", "sealed", "above"):
        engine.model(f"select id, n from {{schema}}.{name}")
        with pytest.raises(RefusedError, match=r"SEALED_VIEW.*which is (nondeterministic|command)"):
            engine.run()


def test_what_stands_on_other_views(moments: Any) -> None:
    """The verdict is on the sealed view with all that it stands on: a table beside it, a view below, the model's own table."""
    engine = moments
    tokyo = {ZONE: "Asia/Tokyo"}
    made_with(engine, {}, "create or replace view {schema}.plain as select * from {schema}.moments")
    made_with(
        engine, tokyo, "create or replace view {schema}.sealed as select id, current_date() as n from {schema}.plain"
    )
    engine.model("select id, n from {schema}.sealed")
    with pytest.raises(RefusedError, match=r"SEALED_VIEW.*current_date"):
        engine.run()
    made_with(engine, tokyo, "create or replace view {schema}.sealed as select id, hour(at) as n from {schema}.plain")
    engine.model("select s.id, s.n, m.word, rand() as r from {schema}.sealed s join {schema}.moments m on m.id = s.id")
    engine.run()
    assert more(engine, 10).plan.strategy == "COMPLETE_RECOMPUTE"
    made_with(engine, tokyo, "create or replace view {schema}.itself as select id, n from {schema}.mv")
    engine.model("select id, 1 as n from {schema}.moments")
    engine.run()
    engine.sql = engine.sql + f" union all select id + 100, n from {engine.schema}.itself"
    with pytest.raises(RefusedError, match="READS_ITSELF"):
        engine.run()
    engine.query("drop view {schema}.itself")


def test_names_of_one_zone(moments: Any) -> None:
    engine = moments
    here = engine.mv_spark().conf.get(ZONE)
    other = "Etc/UTC" if here == "UTC" else "UTC"
    if here not in ("UTC", "Etc/UTC"):
        pytest.skip(f"the session is in {here}")
    made_with(engine, {ZONE: other}, f"create or replace view {{schema}}.sealed as {HOURS}")
    engine.model("select id, n, rand() as r from {schema}.sealed")
    engine.run()
    assert more(engine, 11).plan.strategy != "COMPLETE_RECOMPUTE"
    made_with(
        engine,
        {ZONE: other},
        "create or replace view {schema}.sealed as select id, date_format(at, 'VV') as n from {schema}.moments",
    )
    engine.run()
    assert more(engine, 12).plan.strategy == "COMPLETE_RECOMPUTE"


def test_columns_that_their_order_alone_tells_apart(moments: Any) -> None:
    engine = moments
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    engine.query(f"create or replace table {{schema}}.twice {feed} as select id, id * 10 as v from range(3)")
    engine.query("create or replace view {schema}.sealed (id, v, n, m) as select *, * from {schema}.twice")
    engine.model("select id, n, v, m, rand() as r from {schema}.sealed")
    engine.run()
    engine.query(f"create or replace table {{schema}}.twice {feed} as select id * 10 as v, id from range(3)")
    for number in (3, 4):
        engine.run()
        found, wanted = (
            engine.rows_of(f"select id, v, n, m from {{schema}}.{t} order by id") for t in ("mv", "sealed")
        )
        assert found == wanted
        engine.query(f"insert into {{schema}}.twice values ({number * 10}, {number})")


def test_a_temporary_view_on_another_one_keeps_its_draws(moments: Any) -> None:
    engine = moments
    engine.query("create or replace temporary view drawn_here as select id, rand() as r from {schema}.moments")
    engine.query("create or replace temporary view drawn_above as select id, r from drawn_here where id < 100")
    engine.model("select id, r from drawn_above")
    engine.run()
    before = engine.rows_of("select id, r from {schema}.mv order by id")
    engine.query("insert into {schema}.moments values (13, timestamp'2026-01-31 20:00:00Z', 'x')")
    engine.run()
    assert engine.rows_of("select id, r from {schema}.mv where id < 13 order by id") == before


def test_a_temporary_view(moments: Any) -> None:
    engine = moments
    made_with(engine, {ZONE: "Asia/Tokyo"}, f"create or replace temporary view sealed_here as {HOURS}")
    engine.query(
        "create or replace view {schema}.sealed as select id, hour(at + interval 9 hours) as n from {schema}.moments"
    )
    engine.model("select id, n, rand() as drawn from sealed_here")
    engine.run()
    assert more(engine, 7).plan.strategy == "COMPLETE_RECOMPUTE"


def test_types_that_changed_below(moments: Any) -> None:
    """Spark casts the columns to the types that they had when the view was made."""
    engine = moments
    engine.query(
        "create or replace table {schema}.priced using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as select id, 1.50D as price from range(3)"
    )
    engine.query("create or replace view {schema}.sealed as select id, price from {schema}.priced")
    engine.model("select id, concat(price, ' EUR') as text, rand() as drawn from {schema}.sealed")
    engine.run()
    engine.query(
        "create or replace table {schema}.priced using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as select id, '1.50' as price from range(3)"
    )
    for number in (3, 4):
        assert engine.run().plan.strategy == "COMPLETE_RECOMPUTE"
        assert engine.rows_of("select distinct text from {schema}.mv") == [("1.5 EUR",)]
        engine.query(f"insert into {{schema}}.priced values ({number}, '1.50')")


@delta_only("functions in SQL, which Iceberg's extensions cannot read")
def test_functions_of_another_schema(moments: Any) -> None:
    engine = moments
    engine.query("create or replace function shifted(x bigint) returns bigint return x + 1000")
    engine.query("create or replace function {schema}.shifted(x bigint) returns bigint return x + 1")
    here = engine.rows_of("select current_schema()")[0][0]
    engine.query(f"use {engine.schema}")
    try:
        engine.query("create or replace view {schema}.sealed as select id, shifted(id) as n from {schema}.moments")
    finally:
        engine.query(f"use {here}")
    engine.profile = {**engine.profile, "functions": {"shifted": {"determinism": "deterministic"}}}
    engine.model("select id, n, rand() as drawn from {schema}.sealed")
    engine.run()
    assert more(engine, 8).plan.strategy == "COMPLETE_RECOMPUTE"
    engine.query("drop function shifted")


def test_spark_can_be_told_to_read_all_views_by_the_settings_of_the_session(moments: Any) -> None:
    engine = moments
    made_with(engine, {ZONE: "Asia/Tokyo"}, f"create or replace view {{schema}}.sealed as {HOURS}")
    engine.model("select id, n, rand() as drawn from {schema}.sealed")
    conf = engine.mv_spark().conf
    conf.set("spark.sql.legacy.useCurrentConfigsForView", "true")
    try:
        engine.run()
        assert more(engine, 9).plan.strategy != "COMPLETE_RECOMPUTE"
    finally:
        conf.unset("spark.sql.legacy.useCurrentConfigsForView")
