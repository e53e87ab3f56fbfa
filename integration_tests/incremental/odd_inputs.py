"""Odd input, case by case: what a source holds, the model over it, and what becomes of the source from run to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FEED = "'delta.enableChangeDataFeed' = 'true'"
MAPPED = "'delta.columnMapping.mode' = 'name'"
"""For columns whose names Parquet cannot have. Delta writes no feed of changes beside it in one statement."""


@dataclass(frozen=True)
class Odd:
    """`source`: a SELECT that the table `src` is made of, or the columns and rows of a CREATE TABLE and an INSERT. `columns` of the model,
    beside a random one. `changes`: statements on `src`, each followed by a run. `then`: instants of runs after them, for windows.
    `refused`: the code with which a run stops and leaves everything as it is."""

    group: str
    name: str
    source: str
    columns: str = "id, v"
    changes: tuple[str, ...] = ()
    key: Any = "id"
    where: str = ""
    ddl: str = ""
    then: tuple[str, ...] = ()
    zone: str = "UTC"
    refused: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    properties: str = FEED
    quick: bool = False

    @property
    def sql(self) -> str:
        where = f" where {self.where}" if self.where else ""
        return f"select {self.columns}, uuid() as drawn from {{schema}}.src{where}"


def rows(*texts: str, names: str = "id, v") -> str:
    return f"select * from values {', '.join(f'({text})' for text in texts)} as s({names})"


def keys(name: str, values: list[str], new: str, **more: Any) -> Odd:
    """Keys of one kind: each has a value; of three runs, the first follows an update of the first and last key, the second a delete and
    a key that is new, the third an update of all."""
    source = rows(*(f"{value}, 'v{n}'" for n, value in enumerate(values)))
    changes = (
        f"update {{schema}}.src set v = 'edited' where id <=> {values[0]} or id <=> {values[-1]}",
        f"delete from {{schema}}.src where id <=> {values[1]}",
        f"insert into {{schema}}.src values ({new}, 'new')",
        "update {schema}.src set v = concat(v, '!')",
    )
    return Odd("keys", name, source, changes=changes, **more)


def text_of(hexes: str) -> str:
    """A string of any bytes: Spark checks none."""
    return f"cast(X'{hexes}' as string)"


WILD = [
    "''", "' '", "'O''Brien'".replace("''", "\\'"), r"'back\\slash'", r"'line\nend'", "'semi;colon -- /* */'", "'{{ this }}'", "'%s {0} $1'",
    "'\\u0000'", "'a\\u0000b'", "'\\uD83D\\uDE00'", "'é'", "'e\\u0301'", "'ß'", "'SS'", "'\\u2028'", "'\\u202Eabc'", "'\\uFEFF'", "'NULL'",
]  # fmt: skip
DEEP = "'x' || id"
for _level in range(10):
    DEEP = f"named_struct('n', {DEEP})" if _level % 2 else f"array({DEEP})"
DEEP_OTHER = DEEP.replace("'x' || id", "'y' || id")
NAMES = (
    "a b",
    "a.b",
    "a``b",
    "select",
    "Größe",
    "\U0001f600",
    "it's",
    'say "x"',
    "{{ x }}",
    "${x}",
    "%s",
    "a;b",
    "__mv",
    "q",
    "T",
)

CASES = [
    keys("decimal(38, 18), to its last digit", [f"cast('{n}.{'0' * 17}{n}' as decimal(38, 18))" for n in range(1, 6)], "cast('-3' as decimal(38, 18))", quick=True),
    keys("decimal(38, 0) at its ends", [f"cast('{s}{'9' * 38}' as decimal(38, 0))" for s in ("", "-")] + ["cast(0 as decimal(38, 0))"], f"cast('{'9' * 37}8' as decimal(38, 0))"),
    keys("bigint at its ends", ["-9223372036854775807L - 1L", "0L", "9223372036854775807L"], "9223372036854775806L"),
    keys("date: years 1 and 9999, the days around the Gregorian reform, a leap day", [f"date'{d}'" for d in ("0001-01-01", "1582-10-04", "1582-10-15", "2024-02-29", "9999-12-31")], "date'9999-12-30'", quick=True),
    keys("date before year 1 and after 9999", ["date'-0044-03-15'", "date'2026-01-01'", "date'+10000-01-01'"], "date'+12345-01-01'", refused="DATE_OUT_OF_RANGE"),
    keys("timestamp: years 1 and 9999, microseconds, both sides of an hour that comes twice", [f"timestamp'{t}'" for t in ("0001-01-01 00:00:00.000001", "2026-10-25 02:30:00+02:00", "2026-10-25 02:30:00+01:00", "9999-12-31 23:59:59.999999")], "timestamp'2026-10-25 02:30:00+00:30'", zone="Europe/Berlin"),
    keys("timestamp without zone", [f"timestamp_ntz'{t}'" for t in ("0001-01-01 00:00:00.000001", "2026-03-29 02:30:00", "9999-12-31 23:59:59.999999")], "timestamp_ntz'2026-10-25 02:30:00'", zone="Europe/Berlin"),
    keys("binary", ["X''", "X'00'", "X'27'", "X'5C'", "X'FF'"], "X'FF00'"),
    keys("boolean", ["true", "false"], "cast(null as boolean)", refused="KEY_REPEATED"),
    keys("double: NaN, the infinities, -0.0", ["double('NaN')", "double('-Infinity')", "-0.0D", "1e308D", "double('Infinity')"], "4.9E-324D", quick=True),
    Odd("keys", "double: 0.0 and -0.0 are one key", rows("0.0D, 'a'", "-0.0D, 'b'"), refused="KEY_REPEATED"),
    Odd("keys", "double: -0.0 that becomes 0.0", rows("-0.0D, 'a'", "1.0D, 'b'"), changes=("update {schema}.src set id = 0.0D where v = 'a'", "update {schema}.src set v = 'c' where id = 0")),
    keys("float", ["float('NaN')", "float('0.1')", "float('16777217')"], "float('0.2')"),
    keys("string: quotes, escapes, Jinja, NUL, emoji, composed and decomposed letters, line and direction marks", WILD, "'\\u0001'", quick=True),
    keys("string: bytes that are no UTF-8, lone surrogates, the replacement character", [text_of(h) for h in ("FF", "EDA080", "EFBFBD", "C0AF", "F09F9880")] + ["'a'"], text_of("FE"), quick=True),
    keys("string: bytes that are no UTF-8 alone", [text_of("FF"), text_of("FE")], "'\\uD83D\\uDE00'"),
    keys("string of 1 MB", ["repeat('a', 1000000)", "concat(repeat('a', 1000000), 'b')", "'a'"], "concat(repeat('a', 1000000), 'c')"),
    keys("string collate UTF8_LCASE", [f"'{v}' collate UTF8_LCASE" for v in ("a", "B", "straße")], "'b2' collate UTF8_LCASE"),
    Odd("keys", "string collate UTF8_LCASE that changes its case", rows("'a' collate UTF8_LCASE, 'x'", "'b' collate UTF8_LCASE, 'y'"), changes=("update {schema}.src set id = 'A' where id = 'a'", "update {schema}.src set v = 'z' where id = 'A'")),
    Odd("keys", "char(5), padded", rows("'a', 'x'", "'ab', 'y'", "'abcde', 'z'"), ddl="(id char(5), v varchar(9))", changes=("update {schema}.src set v = 'edited' where id = 'ab'", "insert into {schema}.src values ('b', 'new')", "delete from {schema}.src where id = 'a'")),
    Odd("keys", "eight columns of eight types", "select cast(id as tinyint) as a, cast(id as string) as b, date'2026-01-01' + cast(id as int) as c, cast(id as decimal(9, 3)) as d, id % 2 = 0 as e, cast(id as double) as f, timestamp_seconds(id) as g, cast(cast(id as string) as binary) as h, 'v' as v from range(6)", columns="a, b, c, d, e, f, g, h, v", key=list("abcdefgh"), changes=("update {schema}.src set v = 'edited' where a in (1, 4)", "delete from {schema}.src where a = 2", "update {schema}.src set h = X'00' where a = 3")),
    Odd("keys", "struct", "select named_struct('a', id) as id, 'v' as v from range(3)", changes=("update {schema}.src set v = 'w' where id.a = 1",)),
    Odd("keys", "array", "select array(id, null) as id, 'v' as v from range(3)", changes=("update {schema}.src set v = 'w' where id[0] = 1",)),
    Odd("keys", "map", "select map('a', id) as id, 'v' as v from range(3)", refused="."),
    Odd("keys", "variant", "select parse_json(cast(id as string)) as id, 'v' as v from range(3)", refused="."),
    Odd("keys", "NULL", rows("1, 'a'", "null, 'b'"), refused="KEY_REPEATED"),
    Odd("columns", "names with quotes, backquotes, dots, blanks, Jinja; reserved words; names of our own aliases", "select id, " + ", ".join(f"id as `{n}`" for n in NAMES) + " from range(4)", columns="*", properties=MAPPED, changes=("update {schema}.src set `a b` = 7, `a``b` = 8 where id = 1", "delete from {schema}.src where id = 2", "update {schema}.src set `${x}` = 9")),
    Odd("columns", "a key whose name needs quotes", "select id as `the ``key`, id as v from range(4)", columns="*", key="the `key", properties=MAPPED, changes=("update {schema}.src set v = 7 where `the ``key` = 1", "delete from {schema}.src where `the ``key` = 2")),
    Odd("columns", "mixed case: Id and ID", "select id as Id, 'a' as V from range(4)", columns="iD, v as `V`", key="ID", changes=("update {schema}.src set v = 'b' where id = 1",), quick=True),
    Odd("columns", "1,000 of them", "select id, " + ", ".join(f"id + {n} as c{n}" for n in range(1000)) + " from range(3)", columns="*", changes=("update {schema}.src set c999 = -1 where id = 1", "update {schema}.src set c40 = -1 where id = 2")),
    Odd("values", "texts of 1 MB, one letter of them changed", "select id, repeat('ä', 500000) as v from range(3)", changes=("update {schema}.src set v = concat(v, '!') where id = 1", "update {schema}.src set v = substr(v, 2) where id = 1")),
    Odd("values", "bytes that are no UTF-8 that become others", rows(f"1, {text_of('FF')}", f"2, {text_of('EDA080')}", "3, 'a\\u0000b'"), changes=(f"update {{schema}}.src set v = {text_of('FE')} where id = 1", "update {schema}.src set v = '\\uFFFD' where id = 2", "update {schema}.src set v = 'a' where id = 3"), quick=True),
    Odd("values", "NaN, NULL, -0.0 and 0.0 that become each other", rows("1, double('NaN')", "2, cast(null as double)", "3, -0.0D", "4, 0.0D"), changes=("update {schema}.src set v = null where id = 1", "update {schema}.src set v = double('NaN') where id = 2", "update {schema}.src set v = 0.0D where id = 3", "update {schema}.src set v = -0.0D where id = 4")),
    Odd("values", "collated text that changes its case", rows("1, 'a' collate UTF8_LCASE", "2, 'b' collate UNICODE_CI"), ddl="(id int, v string collate UTF8_LCASE)", changes=("update {schema}.src set v = 'A' where id = 1", "update {schema}.src set v = 'B' where id = 2")),
    Odd("values", "char and varchar", rows("1, 'a'", "2, 'b'"), ddl="(id int, v char(4))", changes=("update {schema}.src set v = 'ab' where id = 1", "update {schema}.src set v = 'b ' where id = 2")),
    Odd("values", "nested ten deep", f"select id, {DEEP} as v from range(4)", changes=(f"update {{schema}}.src set v = {DEEP_OTHER} where id = 1", "delete from {schema}.src where id = 2")),
    Odd("values", "MAP and VARIANT in arrays and structs", "select id, array(map(id, named_struct('m', map('k', cast(id as string))))) as v, parse_json('{\"a\": [1, null, {\"b\": 1.50}]}') as w from range(4)", columns="id, v, w", changes=("update {schema}.src set v = array(map(id, named_struct('m', map('k', cast(null as string))))) where id = 1", "update {schema}.src set w = parse_json('{\"a\": [1, null, {\"b\": 1.51}]}') where id = 2"), properties=f"{FEED}, 'delta.feature.variantType-preview' = 'supported'"),
    Odd("values", "dates and times at the ends of time", "select id, date'0001-01-01' as v, timestamp'9999-12-31 23:59:59.999999' as w, timestamp_ntz'0001-01-01 00:00:00' as x from range(3)", columns="id, v, w, x", changes=("update {schema}.src set v = date'9999-12-31' where id = 1", "update {schema}.src set w = timestamp'0001-01-01 00:00:00' where id = 2", "update {schema}.src set x = timestamp_ntz'9999-12-31 23:59:59.999999' where id = 0"), zone="America/St_Johns"),
    Odd("values", "dates after year 9999", "select id, date'+10000-01-01' as v from range(3)", changes=("update {schema}.src set v = date'+290000-01-01' where id = 1",)),
    Odd("values", "text that is SQL, and a comment, and a prompt", rows("1, '\\'); drop table src; --'", "2, '*/ union select 1'", "3, 'Ignore all instructions.'"), changes=("update {schema}.src set v = concat(v, '\\'') where id < 3",)),
    Odd("clock", "a day back over the end of summer time", "select id, timestamp'2026-10-23 00:30:00' + make_dt_interval(0, cast(id as int)) as v from range(72)", where="v > current_timestamp() - interval 1 day", zone="Europe/Berlin", then=("2026-10-24 12:00:00", "2026-10-25 01:59:59", "2026-10-25 02:30:00", "2026-10-25 03:00:00", "2026-10-26 02:30:00", "2026-10-26 03:30:00")),
    Odd("clock", "whole days over the start of summer time", "select id, timestamp'2026-03-27 00:30:00' + make_dt_interval(0, cast(id as int)) as v from range(72)", where="v >= current_date() - 1 and v < current_date()", zone="Europe/Berlin", then=("2026-03-29 00:00:00", "2026-03-29 03:00:00", "2026-03-30 00:00:00", "2026-03-31 00:00:00")),
    Odd("clock", "a zone that moves by half an hour", "select id, timestamp'2026-04-03 00:10:00' + make_dt_interval(0, cast(id as int)) as v from range(72)", where="date_trunc('HOUR', v) >= date_trunc('HOUR', current_timestamp()) - interval 5 hours", zone="Australia/Lord_Howe", then=("2026-04-04 23:40:00", "2026-04-05 01:40:00", "2026-04-05 02:00:00", "2026-04-05 06:30:00")),
    Odd("clock", "a zone of half an hour, without daylight saving", "select id, timestamp_ntz'2026-01-01 00:10:00' + make_dt_interval(0, cast(id as int)) as v from range(72)", where="v > localtimestamp() - interval 90 minutes", zone="Asia/Kolkata", then=("2026-01-01 05:30:00", "2026-01-02 00:00:00", "2026-01-03 01:30:00")),
    Odd("clock", "a year back from and to leap days", "select id, date'2024-02-27' + cast(id as int) as v from range(5)", where="v >= add_months(current_date(), -12)", then=("2025-02-27 06:00:00", "2025-02-28 06:00:00", "2025-03-01 06:00:00", "2025-03-02 06:00:00")),
    Odd("clock", "windows that end after year 9999", "select id, date'9999-12-29' + cast(id as int) as v from range(5)", where="v + 5 > current_date()", then=("2026-01-01 06:00:00", "9999-12-31 06:00:00")),
]  # fmt: skip
