"""One parser for all: what the analysis reads, the rewrites of a run read too, however deep it is nested."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.restrict import NotIncremental, kept_spans, read_tree
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.rewrite.pin import Pins, clock_spans, pin
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_blocks import select_blocks

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2] / "adapter" / "spark_mv"
PINS = Pins(datetime(2026, 1, 31, tzinfo=timezone.utc))
SCHEMAS = {
    name: dict.fromkeys(("id", "k", "day", "month", "year", "hours"), "bigint")
    | {"ts": "timestamp", "payload": "variant", "s": "string"}
    for name in ("t", "u")
}
CLOCK = "ts > current_timestamp() - interval 30 days"


def planned(sql: str) -> str:
    """Everything that a run reads of a model. '' where a strategy can follow it, else the code of the reason."""
    analysis = analyze(sql, unique_key="id", schemas=SCHEMAS)
    assert analysis.errors == ()
    pin(sql, PINS)
    split = split_clock(sql, SCHEMAS, "UTC", kept=kept_spans(sql, analysis))
    try:
        read_tree(analysis, split, clock_spans(sql))
    except NotIncremental as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "sql",
    [
        f"select window(ts, '1 hour').start as id, count(*) as n from t where {CLOCK} group by window(ts, '1 hour')",
        f"select id, payload:a.b as b from t where {CLOCK}",
        f"select id, k >>> 2 as k from t where {CLOCK}",
        f"select id from t where {CLOCK} and k !> 3",
        f"select id, k from t where {CLOCK} union by name select k, id from u",
        f"select id, day, month + year as m from t where {CLOCK} and day > 3 and hours < 5 and ts > current_date() - interval 3 day",
        f"select id, interval 1 day as i from t where {CLOCK} and month = 2",
        f"with c as (select id, ts from t where {CLOCK}), d as (select * from c) select * from d",
    ],
)
def test_what_the_analysis_reads_a_run_reads(sql: str) -> None:
    assert planned(sql) == ""


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"from t |> where {CLOCK} |> select id", "OPAQUE"),
        (f"with recursive c as (select id, ts from t where {CLOCK} union all select id + 1, ts from c) select * from c", "RECURSIVE"),
    ],
)  # fmt: skip
def test_what_no_strategy_follows_is_said(sql: str, code: str) -> None:
    assert planned(sql) in (code, "STRUCTURE", "OPAQUE")
    split = split_clock(sql, SCHEMAS, "UTC")
    assert split.clock_elsewhere and not split.all_solved and split.reason


def test_an_unnamed_column_of_a_pipe_gets_its_name() -> None:
    assert pin("from t |> select id, now()", PINS).sql.endswith(" AS `now()`")
    assert pin("from t |> select id, now() + interval 1 day", PINS).unnamed == ("now() + interval 1 day",)


DEEP = {
    "calls": f"select id, {'coalesce(' * 200}k{', 0)' * 200} as k from t where {CLOCK}",
    "parentheses": f"select id, {'(' * 200}k{')' * 200} as k from t where {CLOCK}",
    "cases": f"select id, {'case when k > 1 then ' * 150}k{' end' * 150} as k from t where {CLOCK}",
    "terms": f"select id from t where {CLOCK} and ({' or '.join(f'k = {i}' for i in range(2000))})",
    "ctes": "with c0 as (select id, ts from t), "
    + ", ".join(f"c{i} as (select id, ts from c{i - 1})" for i in range(1, 500))
    + f" select id from c499 where {CLOCK}",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_queries_are_read(name: str) -> None:
    limit = sys.getrecursionlimit()
    assert planned(DEEP[name]) == ""
    assert sys.getrecursionlimit() == limit


def test_a_ctes_reads_are_counted_before_they_explode() -> None:
    parts = ["c0 as (select id, ts from t)"]
    parts += [f"c{i} as (select a.id, b.ts from c{i - 1} a join c{i - 1} b on a.id = b.id)" for i in range(1, 60)]
    assert planned(f"with {', '.join(parts)} select id from c59 where {CLOCK}") == "TOO_MANY_READS"


@pytest.mark.parametrize(
    "sql", ["select * from a...b", "select x from lateral.", "select " + "(" * 30_000, "select (", ""]
)
def test_what_cannot_be_read_is_an_error_and_no_traceback(sql: str) -> None:
    found = parse(sql)
    assert isinstance(found, QueryError) and found.code in ("PARSE_ERROR", "EMPTY_QUERY")
    assert analyze(sql, unique_key="id").errors


def test_the_places_are_those_of_the_text() -> None:
    sql = "select a.id, (b.k + 1) as k from t a join (select id, k from u where k = 2) b on (a.id = b.id and b.k > 1)\nwhere  a.k = 1 AND\n(a.day = 2 or a.day = 3) order by 1"
    outer, inner = select_blocks(sql)
    assert [item.span.of(sql) for item in outer.items] == ["a.id", "(b.k + 1) as k"]
    assert [span.of(sql) for span in outer.conjuncts] == ["a.k = 1", "a.day = 2 or a.day = 3"]
    assert [span.of(sql) for join in outer.joins for span in join.on] == ["a.id = b.id", "b.k > 1"]
    assert inner.span.of(sql) == "select id, k from u where k = 2" and inner.name == "b" and inner.parent == 0


def test_only_the_syntax_room_calls_a_parser() -> None:
    calls = re.compile(r"parse_one|sqlglot\.parse|Spark\(\)\.|\.parser\(\)|maybe_parse|(Spark|Databricks)Parser")
    room = ROOT / "query" / "syntax"
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted(ROOT.rglob("*.py"))
        if room not in file.parents
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if calls.search(line)
    ]
    assert found == []
