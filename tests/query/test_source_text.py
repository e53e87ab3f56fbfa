"""Spans and edits on the user's text: nothing outside the edited spots may move."""

from __future__ import annotations

import pytest

from spark_mv.query.syntax.source_blocks import Context, select_blocks
from spark_mv.query.syntax.source_text import Edit, SourceTextError, apply_edits, line_and_column, tokenize
from spark_mv.query.syntax.written_out import written_out


def test_edits_apply_in_any_order_and_refuse_overlap() -> None:
    assert apply_edits("abcdef", [Edit(4, 6, "X"), Edit(0, 1, "YY"), Edit(2, 2, "-")]) == "YYb-cdX"
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abcdef", [Edit(0, 3, ""), Edit(2, 4, "")])
    with pytest.raises(ValueError, match="outside"):
        apply_edits("abc", [Edit(2, 9, "")])


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("select 'größe 😀', now() /* é ( */", ["select", "'größe 😀'", ",", "now", "(", ")"]),
        ("select `a``b (`, 5L, x::date", ["select", "`a``b (`", ",", "5L", ",", "x", "::", "date"]),
        ("select 'it\\'s (', 1 -- 😀 (\n, 2", ["select", "'it\\'s ('", ",", "1", ",", "2"]),
    ],
)
def test_tokens_carry_character_offsets(sql: str, texts: list[str]) -> None:
    tokens = tokenize(sql)
    assert [t.text for t in tokens] == texts
    assert [sql[t.start : t.end] for t in tokens] == texts


def test_line_and_column_are_one_based() -> None:
    assert line_and_column("a\nbc", 3) == (2, 2)


def test_blocks_of_a_nested_query() -> None:
    sql = """with a as (select x, now() as t from s where x between 1 and 2 and (y > 3 and z < 4))
        select /*+ BROADCAST(a) */ distinct a.x, case when x and y then 1 end c
        from a left outer join (select 2 j from q where i = 1) d on a.x = d.j and a.t > now()
        where x is not distinct from y and exists (select 1 from z where z.i = a.i)
        group  by 1 order by 2 limit 10"""
    cte, outer, derived, exists = select_blocks(sql)
    assert (cte.context, cte.name) == (Context.CTE, "a")
    assert [c.of(sql) for c in cte.conjuncts] == ["x between 1 and 2", "y > 3", "z < 4"]
    assert [i.alias for i in outer.items] == ["", "c"]
    assert outer.distinct and outer.clauses == {"FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT"}
    assert [(j.kind, [c.of(sql) for c in j.on]) for j in outer.joins] == [("LEFT", ["a.x = d.j", "a.t > now()"])]
    assert (derived.context, derived.name, derived.parent) == (Context.DERIVED, "d", 1)
    assert (exists.context, exists.parent) == (Context.EXPRESSION, 1)
    assert [c.of(sql) for c in outer.conjuncts][1].startswith("exists (")


def test_or_and_not_stay_one_conjunct() -> None:
    sql = "select 1 from t where (a or b and c) and not d and (e)"
    (block,) = select_blocks(sql)
    assert [c.of(sql) for c in block.conjuncts] == ["a or b and c", "not d", "e"]


def test_set_operations_give_operands() -> None:
    sql = "(select 1 from a where x) union all select 2 from b order by 1"
    blocks = select_blocks(sql)
    assert [b.set_operand for b in blocks] == [True, True]


@pytest.mark.parametrize("sql", ["select 1; select 2", "from t select a", "select (1", "insert into t select 1", ""])
def test_unknown_structure_is_refused(sql: str) -> None:
    with pytest.raises(SourceTextError):
        select_blocks(sql)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select 1;", "select 1"),
        ("select ';' ; ; -- end;\n", "select ';'   -- end;\n"),
        ("TABLE `s`.t", "SELECT * FROM `s`.t"),
        ("with a as (table t) select * from a", "with a as (SELECT * FROM t) select * from a"),
        (
            "select 1 where 1 in (table t) union all\ntable t;",
            "select 1 where 1 in (SELECT * FROM t) union all\nSELECT * FROM t",
        ),
        ("select * from f(table t), g(table => table(t))", "select * from f(table t), g(table => table(t))"),
        ("select table from t table", "select table from t table"),
        ("-- rows\nvalues (1, 2) as t(a, b);", "-- rows\nSELECT * FROM values (1, 2) as t(a, b)"),
        ("", ""),
        ("select 'unclosed", "select 'unclosed"),
    ],
)
def test_what_only_a_statement_may_say_is_written_out(sql: str, told: str) -> None:
    assert written_out(sql) == told
