"""The windows of a query said of its own output columns."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.output_windows import OutputWindows, compared_with, output_windows
from spark_mv.query.delta.restrict import read_tree
from spark_mv.query.rewrite.clock_split import split_clock

SCHEMAS = {
    "t": {"id": "int", "k": "int", "ts": "timestamp", "d": "date", "st": "struct<ts:timestamp>"},
    "u": {"k": "int", "ts": "timestamp", "w": "int"},
}
COLUMNS = {name: tuple(columns) for name, columns in SCHEMAS.items()}


def said(sql: str, usable: tuple[str, ...] = ("id", "ts", "d", "seen", "day")) -> OutputWindows | None:
    split = split_clock(sql, SCHEMAS, "UTC")
    assert split.predicates and split.all_solved, sql
    tree = read_tree(analyze(sql, unique_key=("id",), schemas=SCHEMAS), split, ())
    return output_windows(tree.node, tree.windows, COLUMNS, usable)


RECENT = "ts >= current_timestamp() - interval 1 day"


@pytest.mark.parametrize(
    ("sql", "condition", "column"),
    [
        (f"select id, ts from t where {RECENT}", "`ts` >= current_timestamp() - interval 1 day", "ts"),
        (f"select id, ts as seen from t where k > 1 and {RECENT}",
         "`seen` >= current_timestamp() - interval 1 day", "seen"),
        (f"select * from t where {RECENT}", "`ts` >= current_timestamp() - interval 1 day", "ts"),
        ("select a.id, a.ts as seen, u.w as ts from t a join u on a.k = u.k where a.ts > current_timestamp()",
         "`seen` > current_timestamp()", "seen"),
        ("select u.w, t.* except (k) from t left join u on t.k = u.k where t.`d` > current_date() - 3",
         "`d` > current_date() - 3", "d"),
        ("select id, d as day from t where d between current_date() - 3 and current_date()",
         "`day` between current_date() - 3 and current_date()", "day"),
        (f"select id, s.ts from (select id, ts from t where k > 0) s where s.{RECENT}",
         "`ts` >= current_timestamp() - interval 1 day", "ts"),
        (f"with r as (select id, ts as at, k from t where {RECENT}), s as (select * from r where k > 1) "
         "select s.id, s.at as seen, u.w from s left join u on u.k = s.k",
         "`seen` >= current_timestamp() - interval 1 day", "seen"),
        (f"select distinct id, ts from t where {RECENT}", "`ts` >= current_timestamp() - interval 1 day", "ts"),
    ],
)  # fmt: skip
def test_columns_that_are_passed_on(sql: str, condition: str, column: str) -> None:
    found = said(sql)
    assert found is not None and (found.conditions, found.columns) == ((condition,), frozenset({column}))


@pytest.mark.parametrize(
    ("where", "ends"),
    [
        ("ts >= current_timestamp() - interval 1 day", "timestampadd(MICROSECOND, 86400000001, `ts`)"),
        ("ts > current_timestamp() and current_date() < ts", None),
        ("ts <= current_timestamp()", None),  # a row that is not there yet
        ("ts between current_timestamp() - interval 1 day and current_timestamp()", None),
    ],
)
def test_when_rows_leave(where: str, ends: str | None) -> None:
    found = said(f"select id, ts from t where {where}")
    assert found is not None
    if where.startswith("ts > current_timestamp()"):
        assert found.ends is not None and found.ends.startswith("least(`ts`, ") and found.ends.count("`ts`") == 2
    else:
        assert found.ends == ends


def test_two_columns() -> None:
    found = said("select id, ts, d from t where ts <= current_timestamp() and d >= current_date() - 2")
    bounds = ("`ts`", "CAST(date_add(`d`, 3) AS TIMESTAMP)")
    conditions = ("`ts` <= current_timestamp()", "`d` >= current_date() - 2")
    assert found == OutputWindows(conditions, frozenset({"ts", "d"}), bounds=bounds)


@pytest.mark.parametrize(
    "sql",
    [
        f"select id, k from t where {RECENT}",  # the column is not there
        f"select id, ts + interval 1 hour as ts from t where {RECENT}",  # nor is it, though its name is
        f"select id, cast(ts as date) as ts from t where {RECENT}",
        "select t.id, u.ts from t join u on t.k = u.k where t.ts > current_timestamp()",  # the other table's
        f"select id, ts, count(*) as n from t where {RECENT} group by id, ts",  # the clock decides what is counted
        f"select id, ts, row_number() over (order by id) as n from t where {RECENT}",
        f"select id, ts from t where {RECENT} union all select k, ts from u",  # not the outermost WHERE
        f"select id, ts from t where {RECENT} union all select id, ts from t where {RECENT}",
        f"select id, max(ts) as ts from (select id, ts from t where {RECENT}) s group by id",  # groups change
        f"select u.w as id, s.ts from u left join (select k, ts from t where {RECENT}) s on s.k = u.k",  # NULL comes
        f"select id, d as ts from (select id, ts, d from t where {RECENT}) s",
        f"select id, ts, d from t where {RECENT} or d > current_date()",  # no comparison
        "select id, st.ts as ts from t where st.ts > current_timestamp()",  # the field of a struct
    ],
)
def test_what_cannot_be_said(sql: str) -> None:
    assert said(sql) is None


def test_a_column_that_the_table_has_otherwise() -> None:
    """`usable` are the columns that the table holds as the query gives them: not frozen, not cast."""
    assert said(f"select id, ts from t where {RECENT}", usable=("id",)) is None


@pytest.mark.parametrize(
    ("condition", "sides"),
    [
        ("`ts` >= TIMESTAMP'2026-01-01' - interval 1 day", [("ts", "CAST('2026-01-01' AS TIMESTAMP) - INTERVAL '1' DAY")]),
        ("date_sub(DATE'2026-01-01', 2) < `d`", [("d", "DATE_ADD(CAST('2026-01-01' AS DATE), 2 * -1)")]),
        ("(`d` between DATE'2026-01-01' and DATE'2026-01-02') and `k` = 1",
         [("d", "CAST('2026-01-01' AS DATE)"), ("d", "CAST('2026-01-02' AS DATE)"), ("k", "1")]),
        ("datediff(DATE'2026-01-01', `d`) <= 1", None),
        ("`ts` + interval 6 hours >= TIMESTAMP'2026-01-01'", None),
        ("cast(`ts` as date) = DATE'2026-01-01'", None),
        ("`ts` > `at`", None),
        ("TIMESTAMP'2026-01-01' between `ts` and `at`", None),
        ("`d` > DATE'2026-01-01' or `k` = 1", None),
    ],
)  # fmt: skip
def test_columns_against_constants(condition: str, sides: list[tuple[str, str]] | None) -> None:
    """What Spark translates for REPLACE WHERE; of the others it silently drops parts."""
    assert compared_with(condition) == (None if sides is None else tuple(sides))
