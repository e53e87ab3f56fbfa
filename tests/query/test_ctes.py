"""What the name of a CTE means, and a SELECT taken out of its query with the CTEs that it sees."""

from __future__ import annotations

import pytest
from sqlglot import exp

from spark_mv.explain.supposed import supposed_columns
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.model_tree import model_tree
from spark_mv.query.delta.texts import table_refs
from spark_mv.query.syntax.ctes import CteNames, tables
from spark_mv.query.syntax.parse import read_query
from spark_mv.query.syntax.source_blocks import alone, select_blocks

pytestmark = pytest.mark.unit


def test_a_table_in_a_recursive_cte_means_that_one() -> None:
    sql = "with recursive a as (select 1 as n union all select n + 1 from a where n < 5) select * from a"
    names, tree = CteNames(), read_query(sql)
    assert {names.of(table) for table in tree.find_all(exp.Table)} == {tree.find(exp.CTE)}
    assert supposed_columns(sql, {}, ["n"]) == {}


def test_in_one_that_is_not_recursive_it_means_what_stands_around() -> None:
    tree = read_query("with a as (select 1 as n) select * from (with a as (select * from a) select * from a) q")
    outer, inner = sorted(tree.find_all(exp.CTE), key=lambda cte: cte.meta["span"])
    names = CteNames()
    found = {table.parent_select.parent: names.of(table) for table in tree.find_all(exp.Table)}
    assert found[inner] is outer
    assert [cte for place, cte in found.items() if place is not inner] == [inner]


def test_a_table_in_a_hint_is_not_read() -> None:
    tree = read_query("select /*+ broadcast(u), merge(t) */ t.id from t join u on t.k = u.k")
    assert [table.name for table in tables(tree)] == ["t", "u"]


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("with a as (select 1 /* ) */ ) select id from a", "with a as (select 1 /* ) */ ) SELECT x"),
        ("with a(n) as ((select 1) -- all (old)\n), b as (select 2) select id from a", "with a(n) as ((select 1) -- all (old)\n), b as (select 2) SELECT x"),
        ("select id from t", "SELECT x"),
        (
            "with a as (select 1), b as (select 2) select * from (with a as (select * from a) select id from a) q",
            "WITH a as (select 1) SELECT * FROM (WITH b as (select 2), a as (select * from a) SELECT x)",
        ),
    ],
)  # fmt: skip
def test_a_select_alone(sql: str, wanted: str) -> None:
    block = select_blocks(sql)[-1]
    assert alone(sql, block, "SELECT x").lower() == wanted.lower()


@pytest.mark.parametrize("hint", ["", "/*+ broadcast(u) */ ", "/*+ merge(t, u), coalesce(2) */ "])
def test_a_hint_does_not_keep_a_query_from_being_followed(hint: str) -> None:
    schemas = {"t": {"id": "int", "k": "int"}, "u": {"k": "int", "y": "int"}}
    sql = f"select {hint}t.id, u.y from t join u on t.k = u.k"
    model_tree(analyze(sql, unique_key="id", schemas=schemas, model="m"), schemas, "UTC")
    assert [ref.name for ref in table_refs(sql)] == ["t", "u"]


@pytest.mark.parametrize("call", ["datediff(x)", "datediff(distinct x)", "datediff(*)", "hour()"])
def test_a_call_with_too_few_arguments_is_left_to_spark(call: str) -> None:
    analyze(f"select id, {call} as v from t", unique_key="id", schemas={"t": {"id": "int", "x": "date"}})


def test_braces_in_a_string_are_no_jinja() -> None:
    assert not analyze("select id, replace(s, '{{', '{%') as v from t", unique_key="id").errors
    (error,) = analyze("select id from {{ ref('t') }}", unique_key="id").errors
    assert "Jinja" in error.message
