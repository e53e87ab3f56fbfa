"""Clock, user and session functions become literals; nothing else in the text changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from spark_mv.maintenance.rewrite import unclear
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.rewrite.clock_scope_types import schema_columns
from spark_mv.query.rewrite.pin import Pins, pin

INSTANT = datetime(2026, 1, 31, 3, 0, 0, 123456, tzinfo=timezone.utc)
PINS = Pins(INSTANT, "America/New_York", user="ann", session_user="bob", catalog="c", schema="s", version="4.1")
NOW = "TIMESTAMP'2026-01-30 22:00:00.123456-05:00'"


@pytest.mark.parametrize(
    ("sql", "pinned"),
    [
        ("select a from t where d > current_date - 3", "select a from t where d > DATE'2026-01-30' - 3"),
        ("select CURRENT_DATE( ) - 3 as d", "select DATE'2026-01-30' - 3 as d"),
        ("select curdate() d", "select DATE'2026-01-30' d"),
        ("select now() as a, getdate() as b", f"select {NOW} as a, {NOW} as b"),
        ("select current_timestamp as a", f"select {NOW} as a"),
        ("select localtimestamp() as a", "select TIMESTAMP_NTZ'2026-01-30 22:00:00.123456' as a"),
        (
            "select unix_timestamp() as a, unix_timestamp(x) as b",
            "select CAST(1769828400 AS BIGINT) as a, unix_timestamp(x) as b",
        ),
        (
            "select current_time() a, current_time(3) b",
            "select TIME'22:00:00.123456' a, CAST(TIME'22:00:00.123456' AS TIME(3)) b",
        ),
        ("select current_timezone() as a", "select 'America/New_York' as a"),
        ("select user() as a, current_user as b, session_user() as c", "select 'ann' as a, 'ann' as b, 'bob' as c"),
        (
            "select current_catalog() as a, current_database() as b, current_schema() as c, version() as d",
            "select 'c' as a, 's' as b, 's' as c, '4.1' as d",
        ),
        ("select DATE'today' as a, date 'Tomorrow' as b", "select DATE'2026-01-30' as a, DATE'2026-01-31' as b"),
        ("select cast('now' as timestamp) as a", f"select {NOW} as a"),
        ("select 'yesterday'::date as a", "select DATE'2026-01-29' as a"),
        ("select to_date('today') as a", "select to_date(DATE'2026-01-30') as a"),
    ],
)
def test_functions_become_literals_of_the_same_type(sql: str, pinned: str) -> None:
    result = pin(sql, PINS)
    assert (result.sql, result.unnamed, result.ambiguous) == (pinned, (), ())


@pytest.mark.parametrize(
    "sql",
    [
        "select t.user, `user`, t.current_date, `current_date` from t",
        "select 'now()', \"current_date\" /* now() */ from t -- current_date",
        "select date_add(d, 3), 'today' from t",
        "select user.name from t",
        "select x as user from t",
        "select x user, `x` current_date from t",
        "select my.now() from t",
        "select transform(a, user -> user + 1) from t",
    ],
)
def test_names_and_texts_are_left_alone(sql: str) -> None:
    result = pin(sql, PINS)
    assert result.sql == sql and not result.used


def test_bare_user_is_a_column_when_a_table_has_one() -> None:
    assert pin("select user from t", PINS).ambiguous == ("user",)
    assert pin("select user as u from t", replace(PINS, columns=frozenset({"User"}))).sql == "select user as u from t"
    assert pin("select user as u from t", replace(PINS, columns=frozenset({"id"}))).sql == "select 'ann' as u from t"
    inner = "select user from (select 1 as user)"
    assert pin(inner, replace(PINS, columns=frozenset({"id"}))).sql == inner


@pytest.mark.parametrize(
    ("sql", "pinned"),
    [
        ("select current_date, a from t", "select DATE'2026-01-30' AS `current_date()`, a from t"),
        ("select NOW()", f"select {NOW} AS `now()`"),
        ("select current_user", "select 'ann' AS `current_user()`"),
        ("select user()", "select 'ann' AS `user()`"),
        (
            "with c as (select current_date from t) select * from c",
            "with c as (select DATE'2026-01-30' AS `current_date()` from t) select * from c",
        ),
        ("select a union all select current_user", "select a union all select 'ann'"),
        ("select a from t where b in (select current_user)", "select a from t where b in (select 'ann')"),
    ],
)
def test_output_columns_keep_their_names(sql: str, pinned: str) -> None:
    result = pin(sql, PINS)
    assert (result.sql, result.unnamed) == (pinned, ())


def test_names_that_cannot_be_known_are_returned() -> None:
    result = pin("select current_date - 3, a from t", PINS)
    assert result.unnamed == ("current_date - 3",)
    named = pin("select current_date - 3, a from t", PINS, names=["date_sub(current_date(), 3)", "a"])
    assert named.sql == "select DATE'2026-01-30' - 3 AS `date_sub(current_date(), 3)`, a from t" and not named.unnamed


@pytest.mark.parametrize(
    ("sql", "unnamed"),
    [
        ("select * from (select id, current_date - 3 from s) t(id, n)", ()),
        ("select * from ((select id, current_date - 3 from s) union all select 1, 2) t(id, n)", ()),
        ("with t(id, n) as (select id, current_date - 3 from s) select * from t", ()),
        ("select * from (select id, current_date - 3 from s) t", ("current_date - 3",)),
        ("select * from (select * from (select id, current_date - 3 from s)) t(id, n)", ("current_date - 3",)),
    ],
)
def test_a_list_behind_the_alias_names_the_columns(sql: str, unnamed: tuple[str, ...]) -> None:
    result = pin(sql, PINS)
    assert result.sql == sql.replace("current_date", "DATE'2026-01-30'") and result.unnamed == unnamed


@pytest.mark.parametrize(
    "sql",
    [
        "select id, current_date as c from t where w = 'current_date is'",
        "select id, ai_gen(concat('as of current_date the weather ', w)) as a, current_date as c from t",
        "select id, current_date as c from t where s is null",
    ],
)
def test_words_in_texts_and_fields_that_stay_fields_are_no_columns(sql: str) -> None:
    schemas = {"t": {"id": "int", "w": "string", "s": "struct<current_date:date>"}}
    analysis = analyze(sql, unique_key="id", schemas=schemas)
    pinned = pin(sql, replace(PINS, columns=schema_columns(schemas) | frozenset(analysis.word_columns)))
    assert "DATE'2026-01-30' as c" in pinned.sql and not unclear(pinned, analysis)


def test_each_set_operation_has_a_first_select() -> None:
    sql = "select * from (select now() union all select ts from t), (select current_date() union all select d from t)"
    assert [f" AS `{name}()`" in pin(sql, PINS).sql for name in ("now", "current_date")] == [True, True]


@pytest.mark.parametrize(
    "sql",
    [
        "select id, user from (select id, s.* from t) q",
        "select id, user as who from t lateral view inline(arr) v",
        "select id from (select id, s.* from t) q where current_date < date'2026-01-01'",
        "select id, user from (select id, named_struct('user', w).* from t) q",
        "select id, user from (select id, j.* from (select id, from_json(w, 'user string, n int') as j from t) a) b",
    ],
)
def test_a_field_that_has_the_name_of_a_function_is_no_function(sql: str) -> None:
    """Made a column by a star or a generator; where the analysis cannot tell, nothing is pinned and the word is said to be ambiguous."""
    schemas = {
        "t": {
            "id": "int",
            "w": "string",
            "s": "struct<user:string,current_date:date>",
            "arr": "array<struct<user:string,n:int>>",
        }
    }
    analysis = analyze(sql, unique_key="id", schemas=schemas)
    columns = schema_columns(schemas) | frozenset(analysis.word_columns)
    pinned = pin(sql, replace(PINS, columns=columns))
    assert pinned.sql == sql and not analysis.errors
    assert [e.code for e in unclear(pinned, analysis)] == (["AMBIGUOUS_WORD"] if "from_json" in sql else [])


def test_a_generator_names_its_columns_itself() -> None:
    found = pin(
        "select id, posexplode(array(current_date())) as (pos, day), inline(array(struct(now() as n))) from t", PINS
    )
    assert len(found.unnamed) == 1 and found.unnamed[0].startswith("inline(")


def test_user_names_are_escaped() -> None:
    assert pin("select user() as a", Pins(INSTANT, user="o'br\\ien")).sql == "select 'o\\'br\\\\ien' as a"


def test_multi_byte_text_does_not_shift_the_edit() -> None:
    assert pin("select '😀é' as `ü`, now() as n", PINS).sql == f"select '😀é' as `ü`, {NOW} as n"


def test_the_hour_that_comes_twice_where_clocks_are_set_back() -> None:
    """To datetime, both are one: 01:10 in New York."""
    first, second = (
        replace(PINS, as_of=datetime(2026, 11, 1, 1, 10, tzinfo=ZoneInfo("America/New_York"), fold=fold))
        for fold in (0, 1)
    )
    assert first != second
    assert "01:10:00.000000-04:00" in pin("select now() as a", first).sql
    assert "01:10:00.000000-05:00" in pin("select now() as a", second).sql


def test_zones_by_offset_and_refused_zones() -> None:
    assert (
        pin("select now() as a", Pins(INSTANT, "+05:30")).sql
        == "select TIMESTAMP'2026-01-31 08:30:00.123456+05:30' as a"
    )
    with pytest.raises(ValueError, match="Mars/Base"):
        pin("select now() as a", Pins(INSTANT, "Mars/Base"))
    with pytest.raises(ValueError, match="time zone"):
        Pins(datetime(2026, 1, 1))
    odd = Pins(INSTANT, "+01:00:30")
    assert pin("select now() as a", odd).sql == "select TIMESTAMP'2026-01-31 03:00:00.123456+00:00' as a"
    assert Pins(INSTANT.astimezone(timezone(timedelta(hours=3)))).as_of == INSTANT
