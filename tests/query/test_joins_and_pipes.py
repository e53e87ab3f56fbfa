"""FROM items in parentheses and operators of the pipe syntax are read as Spark reads them: which tables, which columns, and what they draw."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.columns import plan_columns
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level

pytestmark = pytest.mark.unit

TABLES = {
    "t": {"a": "int", "k": "int"},
    "u": {"k": "int", "b": "int"},
    "w": {"c": "int", "k": "int"},
    "n": {"s": "struct<a:int,k:int>"},
}


@pytest.mark.parametrize(
    ("sql", "columns", "tables"),
    [
        ("select * from ((select a from t) s join u i on a = b) j", "a k b", "t u"),
        ("select j.a from ((select a from t) s cross join u i) j, w", "a", "t u w"),
        ("select * from ((t join u using (k)) join w using (k)) j", "k a b c", "t u w"),
        ("select * from ((select a from t) s, u) j", "a k b", "t u"),
        ("select * from ((select a from t) s lateral view explode(array(1)) e as z) j", "a z", "t"),
        ("select * from ((select a from t) s) j", "a", "t"),
        ("select a, k, b from t join u using (k) |> pivot (max(a) for k in (1, 2))", "b 1 2", "t u"),
        ("from t |> where a > 1 |> join u using (k) |> pivot (max(a) for k in (1, 2))", "b 1 2", "t u"),
        ("select * from t, lateral (select t.*, u.b from u)", "a k a k b", "t u"),
        ("select s.* except (k), 1 as x from n", "a x", "n"),
        ("from t |> join u using (k) |> unpivot (v for n in (a, b))", "k n v", "t u"),
    ],
)
def test_all_that_is_read(sql: str, columns: str, tables: str) -> None:
    found = analyze(sql, unique_key="k", schemas=TABLES)
    assert not [e for e in found.errors if e.code not in ("UNKNOWN_UNIQUE_KEY", "DUPLICATE_COLUMN")]
    assert [c.name for c in found.columns] == columns.split()
    assert [t.name for t in found.tables] == tables.split()


@pytest.mark.parametrize(
    ("operator", "rows", "error"),
    [
        ("where k > 0.5", Level.NONDETERMINISTIC, None),
        ("extend k * 2 as r2 |> where r2 > 1", Level.NONDETERMINISTIC, None),
        ("extend k * 2 as r2", Level.DETERMINISTIC, None),
        ("join u using (k)", Level.NONDETERMINISTIC, "PER_ROW_IN_JOIN"),
        ("aggregate count(*) as n group by k", Level.NONDETERMINISTIC, "PER_ROW_IN_GROUP_BY"),
        ("aggregate count(*) as n group by 1", None, "PARSE_ERROR"),
        ("aggregate count(*) as n group by 2 as g", None, "PARSE_ERROR"),
        ("order by k |> limit 2", Level.NONDETERMINISTIC, "PER_ROW_IN_LIMIT"),
    ],
)
@pytest.mark.parametrize("ahead", ["select a as id, rand() as k from t", "(select a as id, rand() as k from t)"])
def test_operators_see_what_the_select_ahead_gives(ahead: str, operator: str, rows: Level, error: str | None) -> None:
    """`k` is the draw, not the column of the table."""
    found = analyze(f"{ahead} |> {operator}", unique_key="id", schemas=TABLES)
    codes = {e.code for e in found.errors} - {"UNKNOWN_UNIQUE_KEY"}
    assert codes == ({error} if error else set())
    assert rows is None or found.rows_level is rows


def test_the_order_of_operators_is_part_of_the_query() -> None:
    first, last = (
        analyze(f"from t |> {steps} |> select a, k", unique_key="a", schemas=TABLES)
        for steps in ("limit 3 |> order by a", "order by a |> limit 3")
    )
    assert first.fingerprint != last.fingerprint


def test_a_query_that_gives_other_columns_than_were_read() -> None:
    """A column called `all` behind SELECT is taken for the word."""
    found = analyze("select all, k from (select a as all, k from t)", unique_key="k", schemas=TABLES)
    config = ModelConfig(unique_key=("k",))
    given = (Column("all", "int"), Column("k", "int"))
    plan = plan_columns(found, given, TargetFacts(), config, None)
    assert any("it gives (all, k), and was read as (k)" in problem for problem in plan.problems)
    assert not plan_columns(found, given[1:], TargetFacts(), config, None).problems
