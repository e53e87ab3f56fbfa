"""Odd input, a model each: what it is, what its source holds and becomes, and what must come of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from integration_tests.under_format import FORMAT

from spark_mv.query.syntax.table_name import quoted

EDIT = (
    "update {t} set v = 'edited' where n = 1",
    "delete from {t} where n = 2",
    "insert into {t} select * from {late}",
)
MAPPED = "'delta.columnMapping.mode' = 'name'"
COLLATIONS = "set spark.databricks.delta.schema.typeCheck.enabled = false"
"""Delta's open releases hold collated text only without their check of types."""


@dataclass(frozen=True)
class Odd:
    """`rows` is a query; its rows with `n` = 9 come with the changes, all others are there from the start. `sql` is the model's SELECT over `{t}`, with
    `{kept}` where what is kept stands. `key` as in the config block. `shown`: what of the table and of the query is compared, `key_shown`: what tells its keys.
    `columns`: those of the source, where a query does not make them. `refused`: what the refusal of the first run has to say; `{t}` may stand in none of it. `delta_only`: why it is none on other formats. `feed`: whether the source has a change feed. `variants`: whether tables hold some.
    `quick`: part of each test run."""

    name: str
    what: str
    rows: str
    sql: str = "select *{kept} from {t}"
    key: Any = "id"
    config: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[str, ...] = EDIT
    shown: str = "*"
    key_shown: str = ""
    refused: str = ""
    header: str = ""
    properties: str = ""
    columns: str = ""
    feed: bool = True
    variants: bool = False
    delta_only: str = ""
    quick: bool = False


@dataclass
class Outcome:
    """What came of a case. `says`: of each run its strategy; `refused`: the message that a run was refused with; `wrong`: what must not be."""

    group: str
    name: str
    what: str
    says: list[str] = field(default_factory=list)
    refused: str = ""
    wrong: list[str] = field(default_factory=list)


def note(outcomes: Iterable[Outcome]) -> None:
    """Written down for the page, where somebody asks for it."""
    if file := os.environ.get("ODD_COUNTED"):
        with Path(file).open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)


def keyed(name: str, what: str, values: tuple[str, str, str, str], **more: Any) -> Odd:
    """A key of some type: its values in three rows of the start and one that comes."""
    rows = ", ".join(f"({value}, {n}, 'v{n}')" for value, n in zip(values, (1, 2, 3, 9), strict=True))
    return Odd(name, what, f"select * from values {rows} as r(id, n, v)", **more)


def valued(name: str, what: str, expression: str, **more: Any) -> Odd:
    """A value `c` of some type in four rows: `n` is the row's number."""
    rows = f"select n as id, n, concat('v', n) as v, {expression} as c from values (1), (2), (3), (9) as r(n)"
    return Odd(name, what, rows, **more)


def named(name: str, what: str, key: str, column: str, **more: Any) -> Odd:
    """Columns with odd names, as key and as value."""
    quoted_key, quoted_column = quoted(key), quoted(column)
    rows = f"select n as {quoted_key}, n, concat('v', n) as v, n * 2 as {quoted_column} from values (1), (2), (3), (9) as r(n)"
    feed = "`" not in key + column  # Delta's UPDATE cannot write one beside a backtick in a name
    columns = f"({quoted_key} int, n int, v string, {quoted_column} int)"
    return Odd(name, what, rows, key=[key], properties=MAPPED, columns=columns, feed=feed, **more)


def timed(name: str, what: str, zone: str, condition: str, **more: Any) -> Odd:
    """Rows around an instant that a zone's clock makes odd; `at` every 30 minutes of ten days, `t` the same without a zone."""
    rows = (
        "select cast(n as int) as id, if(n = 7, 1, if(n = 11, 2, if(n % 50 = 13, 9, 0))) as n, concat('v', n) as v, at, "
        "cast(at as timestamp_ntz) as t, cast(at as date) as d from (select id as n, timestamp'2026-03-25 23:15:00+00:00' + "
        "make_dt_interval(0, 0, cast(id as int) * 30) as at from range(600))"
    )
    return Odd(
        name, what, rows, f"select *{{kept}} from {{t}} where {condition}", header=f"set time zone '{zone}'", **more
    )


DEEP = "named_struct('a', " * 9 + "array(map('k', n))" + ")" * 9

GROUPS: dict[str, tuple[Odd, ...]] = {
    "Names": (
        named("name_quotes", "columns with quotes and backticks", "it's `the` \"key\"", "a`b'c\"d", quick=True),
        named("name_dots", "dots and spaces, also in front and behind", "a.b", " c d. "),
        named("name_unicode", "other scripts and an emoji", "größe", "键😀", quick=True),
        named("name_reserved", "reserved words", "select", "null"),
        named("name_clock", "a column called as a clock function", "current_date", "current_timestamp"),
        named("name_user", "columns called `user` and `timestamp`", "user", "timestamp"),
        named("name_punctuation", "comment openers, semicolons, braces, `${…}`", "a--b;", "/*{${x}}*/=,()", quick=True),
        named("name_long", "a name of 300 characters", "k" * 300, "c" * 300),
        named("name_line_end", "a line end and a tab in a name", "a\nb", "c\td"),
        named("name_backslash", "a backslash in a name", "a\\b", "c\\'d"),
        Odd(
            "name_case", "mixed case, written otherwise in the config", "select n as Id, n, concat('v', n) as v, n as CamelCase "
            "from values (1), (2), (3), (9) as r(n)", key="ID", config={"on_row_update": {"DRAWN": "keep"}},
        ),
        Odd("name_twice", "two columns whose names differ in case alone", "select n as id, n, 'v' as v from values (1), (9) as r(n)",
            "select id, n, v, v as V{kept} from {t}", refused="."),
        Odd("name_expression", "a column without an alias", "select n as id, n, concat('v', n) as v from values (1), (2), (3), (9) as r(n)",
            "select id, upper(v), n + 1{kept} from {t}"),
        *(
            named(f"name_own_{k}", f"columns called `{key}` and `{column}`, as the engine's own", key, column)
            for k, (key, column) in enumerate(
                [("valid_from", "valid_to"), ("target", "source"), ("_metadata", "_file"), ("t", "s"), ("__key", "__row")]
            )
        ),
        named("name_own_mv", "a column called `__mv_op`, as the engine's own", "__mv_op", "v2", refused="an alias without __mv_"),
        Odd("name_feed", "columns called as those of Delta's change feed", "select n as id, n, concat('v', n) as v from values (1), (2), (3), (9) as r(n)",
            "select id, n, v as `_change_type`, n * 2 as `_commit_version`{kept} from {t}"),
        *(
            Odd(f"alias_{k}", f"a model with the alias `{alias}`", "select n as id, n, concat('v', n) as v from values (1), (2), (3), (9) as r(n)",
                config={"alias": alias}, refused=refused)
            for k, (alias, refused) in enumerate(
                [("Select", ""), ("MixedCase", ""), ("AI_results", "OWN_NAME"), ("mv_runs", "OWN_NAME"), ("Select__state", ""), ("Select__mv_stage_feed", ""),
                 ("with space", "an `alias`"), ("dot.ted", "an `alias`"), ("it's", "an `alias`"), ("größe", "an `alias`")]
            )
        ),
    ),
    "Keys": (
        keyed("key_decimal", "DECIMAL(38, 18)", ("-0.000000000000000001BD", "0.000000000000000001BD", "12345678901234567890.123456789012345678BD", "1BD")),
        keyed("key_date", "DATE, years 1 and 9999", ("date'0001-01-01'", "date'9999-12-31'", "date'2024-02-29'", "date'1582-10-04'"), quick=True),
        keyed("key_timestamp", "TIMESTAMP, by a microsecond", ("timestamp'0001-01-01 00:00:00'", "timestamp'9999-12-31 23:59:59.999999'",
              "timestamp'2026-01-01 00:00:00.000001'", "timestamp'2026-01-01 00:00:00.000002'")),
        keyed("key_ntz", "TIMESTAMP_NTZ in the hour that a clock skips", ("timestamp_ntz'2026-03-29 02:30:00'", "timestamp_ntz'0001-01-01 00:00:00'",
              "timestamp_ntz'9999-12-31 23:59:59.999999'", "timestamp_ntz'2026-03-29 01:30:00'"), header="set time zone 'Europe/Berlin'"),
        keyed("key_fold", "TIMESTAMP in the hour that a clock repeats", ("timestamp'2026-10-25 00:30:00+00:00'", "timestamp'2026-10-25 01:30:00+00:00'",
              "timestamp'2026-10-25 02:30:00+00:00'", "timestamp'2026-10-24 23:30:00+00:00'"), header="set time zone 'Europe/Berlin'"),
        keyed("key_binary", "BINARY: empty, zeros, 255", ("X''", "X'00'", "X'00FF'", "X'FF'"), quick=True),
        keyed("key_double", "DOUBLE: NaN, -0.0, infinite", ("double('NaN')", "-0.0D", "double('Infinity')", "double('-Infinity')"), quick=True),
        keyed("key_double_small", "DOUBLE: the smallest, and one that prints long", ("4.9E-324D", "0.1D + 0.2D", "1.7976931348623157E308D", "0.3D")),
        keyed("key_float", "FLOAT: NaN, -0.0 and 0.1", ("float('NaN')", "float('-0.0')", "float('0.1')", "float('3.4028235E38')")),
        keyed("key_zeros", "DOUBLE: 0.0 and -0.0 are one key", ("0.0D", "-0.0D", "1.0D", "2.0D"), refused="KEY"),
        keyed("key_nans", "DOUBLE: NaN twice", ("double('NaN')", "double('NaN')", "1.0D", "2.0D"), refused="KEY"),
        keyed("key_boolean", "BOOLEAN and a number together", ("true", "false", "true", "false"), key=["id", "n"]),
        keyed("key_tinyint", "TINYINT at its bounds", ("-128Y", "127Y", "0Y", "1Y")),
        keyed("key_bigint", "BIGINT at its bounds", ("-9223372036854775808L", "9223372036854775807L", "9007199254740993L", "9007199254740992L")),
        keyed("key_spaces", "STRING: empty, spaces in front and behind", ("''", "' '", "'a '", "'a'"), quick=True),
        keyed("key_quotes", "STRING: quotes, backslashes, line ends", ("'it\\'s'", "'\"'", "'\\\\n\\n'", "'%_\\\\'"), quick=True),
        keyed("key_nul", "STRING with NUL bytes", ("'a\\u0000'", "'a'", "'\\u0000'", "'a\\u0000b'"), quick=True),
        keyed("key_surrogate", "STRING that is no valid UTF-8 (a lone surrogate)", ("cast(X'EDA080' as string)", "cast(X'EDA081' as string)",
              "cast(X'FF' as string)", "cast(X'FE' as string)"), key_shown="hex(id)", shown="hex(id), n, v"),
        keyed("key_emoji", "STRING: emoji, and é in two forms", ("'😀'", "'é'", "'e\\u0301'", "'👩‍👩‍👧'")),
        keyed("key_megabyte", "STRING of 1 MB", ("repeat('a', 1048576)", "concat(repeat('a', 1048575), 'b')", "'a'", "repeat('😀', 262144)"), shown="id, n, v"),
        Odd("key_char", "CHAR(5), padded", "values ('a', 1, 'v1'), ('b', 2, 'v2'), (' b', 3, 'v3')", columns="(id char(5), n int, v string)",
            changes=(*EDIT[:2], "insert into {t} values ('a b', 9, 'v9')")),
        valued("key_interval", "INTERVAL DAY TO SECOND, which Delta does not hold", "n", sql="select make_dt_interval(n) as id, v{kept} from {t}", refused="."),
        valued("key_time", "TIME, which Delta does not hold", "n", sql="select make_time(n, 0, 0) as id, v{kept} from {t}", refused="."),
        keyed("key_array", "ARRAY", ("array(1)", "array(2)", "array(1, 2)", "array(cast(null as int))")),
        keyed("key_struct", "STRUCT", ("named_struct('a', 1)", "named_struct('a', 2)", "named_struct('a', 3)", "named_struct('a', 9)"), refused="Take its fields"),
        keyed("key_map", "MAP", ("map(1, 1)", "map(2, 2)", "map(3, 3)", "map(9, 9)"), refused="."),
        keyed("key_variant", "VARIANT", ("parse_json('1')", "parse_json('2')", "parse_json('3')", "parse_json('9')"), variants=True, refused="."),
        keyed("key_null", "NULL", ("null", "1", "2", "3"), refused="KEY"),
        Odd("key_eight", "eight columns, whose values joined are alike", "select n as a, if(n = 1, 'b', 'bc') as b, if(n = 1, 'cd', 'd') as c, n % 2 = 0 as d, "
            "date'2026-01-01' as e, 1.50BD as f, X'00' as g, -0.0D as h, n, concat('v', n) as v from values (1), (2), (3), (9) as r(n)",
            key=["a", "b", "c", "d", "e", "f", "g", "h"], quick=True),
        Odd("key_alike", "two texts that joined are the same", "select * from values ('a', 'bc', 1, 'v1'), ('ab', 'c', 2, 'v2'), ('a,b', 'c', 3, 'v3'), ('a', 'b,c', 9, "
            "'v9') as r(id, id2, n, v)", key=["id", "id2"]),
        Odd("key_collated", "STRING COLLATE UTF8_LCASE, where Delta's check of types lets it in", "select id collate UTF8_LCASE as id, n, v from values ('a', 1, 'v1'), ('B', 2, 'v2'), ('c', 3, 'v3'), "
            "('D', 9, 'v9') as r(id, n, v)", header=COLLATIONS, delta_only="collations"),
    ),
    "Values": (
        valued("wide", "1,000 columns", "n", sql="select *, {wide}{kept} from {t}"),
        valued("text_megabyte", "texts of 1 MB", "repeat(cast(n as string), 1048576)", shown="* except (c), sha2(c, 256)"),
        valued("text_nul", "NUL bytes in a text", "concat('a\\u0000', n, '\\u0000')", quick=True),
        valued("text_surrogate", "a text that is no valid UTF-8", "cast(unhex(concat('EDA08', n)) as string)", shown="id, n, v, hex(c)"),
        valued("text_emoji", "emoji, joined ones and marks that change direction", "concat('👩‍👩‍👧\\u202e\\u200b', n)"),
        valued("date_far", "years 1 and 9999", "if(n = 1, date'0001-01-01', date'9999-12-31')", quick=True),
        valued("timestamp_far", "instants of the years 1 and 9999", "if(n = 1, timestamp'0001-01-01 00:00:00', timestamp'9999-12-31 23:59:59.999999')"),
        valued("ntz", "TIMESTAMP_NTZ", "timestamp_ntz'2026-03-29 02:30:00' + make_dt_interval(n)", header="set time zone 'Europe/Berlin'"),
        valued("double", "NaN, -0.0, infinite", "case n when 1 then double('NaN') when 2 then -0.0D when 3 then double('-Infinity') else 0.0D end",
               shown="id, n, v, cast(c as string)"),
        valued("decimal", "DECIMAL(38, 38)", "cast(n / 70 as decimal(38, 38))"),
        valued("map", "MAP", "map(n, named_struct('a', v), n + 1, null)", shown="id, n, v, to_json(c)", quick=True),
        valued("map_surrogate", "a MAP with a text that is no valid UTF-8 and becomes another one", "map('a', cast(X'EDA080' as string))",
               changes=(*EDIT, "update {t} set c = map('a', cast(X'EDA081' as string)) where n = 3"), shown="id, n, v, hex(c['a'])"),
        valued("variant", "VARIANT", "parse_json(concat('{\"a\": [', n, ', null, 1.50]}'))", shown="id, n, v, to_json(c)", variants=True, quick=True),
        valued("nested", "nested 10 deep", DEEP, shown="id, n, v, to_json(c)", quick=True),
        valued("void", "a column that is NULL alone", "cast(null as string)", sql="select *, null as nothing{kept} from {t}",
               refused={"iceberg": "columns of NULL alone"}.get(FORMAT, "")),
        valued("interval", "INTERVAL, which Delta does not hold", "n", sql="select id, make_dt_interval(n) as i{kept} from {t}", refused="."),
        valued("binary", "BINARY", "cast(concat('\\u0000', n) as binary)"),
        valued("collated", "a collated text that changes its case alone", "concat('A', n) collate UNICODE_CI", shown="id, n, v, c collate UTF8_BINARY", header=COLLATIONS, delta_only="collations",
               changes=(*EDIT, "update {t} set c = lower(c) where n = 3")),
        Odd("char", "CHAR(5) and VARCHAR(5)", "values (1, 1, 'v1', 'a', 'a '), (2, 2, 'v2', 'b', ''), (3, 3, 'v3', ' b', 'b')",
            columns="(id int, n int, v string, c char(5), w varchar(5))", changes=(*EDIT[:2], "update {t} set c = 'b', w = 'b ' where n = 3",
            "insert into {t} values (9, 9, 'v9', null, null)")),
        valued("empty_strings", "empty text, NULL and a space", "case n when 1 then '' when 2 then null else ' ' end"),
        valued("big_sql", "a model of 2 MB", "n", sql="select *{kept} from {t} where n not in ({numbers})"),
        valued("long_literal", "a literal of 1 MB", "n", sql="select *, '{letters}' as l{kept} from {t}"),
        valued("many_cases", "an expression of 500 levels", "n", sql="select *, {levels} as l{kept} from {t}"),
    ),
    "Time": (
        timed("dst_spring", "a window of 7 days over the hour that Berlin skips", "Europe/Berlin", "at > current_timestamp() - interval 7 days", quick=True),
        timed("dst_autumn", "a window of 7 days over the half hour that Lord Howe repeats", "Australia/Lord_Howe", "at > current_timestamp() - interval 7 days"),
        timed("dst_hours", "a window of 168 hours over the same", "Australia/Lord_Howe", "at > current_timestamp() - interval 168 hours"),
        timed("dst_skipped", "a time without a zone, compared with the clock's", "Europe/Berlin", "t > localtimestamp() - interval 6 days 2 hours"),
        timed("dst_days", "whole days of a zone that changes its clock", "America/New_York", "d >= current_date() - 5 and d <= current_date() + 1"),
        timed("dst_trunc", "the day that an instant is part of", "Australia/Lord_Howe", "date_trunc('day', at) >= current_timestamp() - interval 5 days"),
        timed("half_hour", "a zone of half an hour (Kolkata)", "Asia/Kolkata", "date_trunc('day', at) > current_date() - interval 4 days", quick=True),
        timed("quarter_hour", "a zone of three quarters (Kathmandu)", "Asia/Kathmandu", "cast(at as date) > current_date() - 4"),
        timed("offset", "a zone that is an offset", "-03:30", "at > date_trunc('day', current_timestamp()) - interval 3 days"),
        timed("unix", "seconds since 1970", "Europe/Berlin", "unix_timestamp(at) > unix_timestamp() - 500000"),
        Odd("leap_day", "29 February and a window of years", "select n as id, n, concat('v', n) as v, date'2024-02-29' + make_dt_interval(n * 7) as d from "
            "values (1), (2), (3), (9) as r(n)", "select *{kept} from {t} where add_months(d, 25) > current_date()"),
        Odd("leap_year", "a year after 29 February", "select n as id, n, concat('v', n) as v, timestamp'2024-02-27 12:00:00' + make_dt_interval(n) as d from "
            "values (1), (2), (3), (9) as r(n)", "select *{kept} from {t} where d + interval 2 years > current_timestamp() - interval 36 days"),
        Odd("far_bounds", "bounds beyond the year 9999", "select n as id, n, concat('v', n) as v, if(n = 1, date'9999-12-31', date'0001-01-01') as d from "
            "values (1), (2), (3), (9) as r(n)", "select *{kept} from {t} where d + interval 2 years > current_date()", quick=True),
    ),
}  # fmt: skip
CASES = tuple(case for cases in GROUPS.values() for case in cases)
