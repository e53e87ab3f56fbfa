"""What the AI calls' reading of a text takes from its tree: blocks, clauses, items and where subqueries hang."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.blocks import TextError, TokenBlock
from spark_mv.query.ai_calls.text import TokenText


def _blocks(sql: str) -> list[tuple[str, str, dict[str, str]]]:
    text = TokenText(sql)
    return [
        (text.text(b.span), text.text(b.list_span), {name: text.text(span) for name, span in b.clauses.items()})
        for b in text.blocks
    ]


def test_clauses_are_without_their_keywords_and_go_together_where_they_are_looked_at_together() -> None:
    sql = (
        "select /*+ broadcast(u) */ distinct a, b /* from */ from t lateral view explode(xs) as x -- where\n"
        "where a > 1 group by all having count(*) > 1 sort by a limit 3 offset 2"
    )
    [(whole, listed, clauses)] = _blocks(sql)
    assert whole == sql and listed == "a, b"
    assert clauses == {
        "FROM": "t lateral view explode(xs) as x",
        "WHERE": "a > 1",
        "GROUP BY": "all",
        "HAVING": "count(*) > 1",
        "ORDER BY": "a",
        "LIMIT": "3 offset 2",
    }
    assert TokenText(sql).blocks[0].distinct


def test_items_have_the_names_that_the_text_gives_them() -> None:
    sql = "select id, t.v, s.a.b, *, t.* except (id), v + 1, v as w, v `x y`, f(v), (v), x.f(v), current_date from t"
    text = TokenText(sql)
    items = text.blocks[0].items
    assert [i.name for i in items] == ["id", "v", "b", "", "", "", "w", "x y", "", "", "", ""]
    assert [text.text(i.span) for i in items if i.star] == ["*", "t.* except (id)"]
    assert [text.text(i.expression) for i in items if i.expression != i.span] == ["v", "v"]


def test_subqueries_hang_below_the_select_that_they_stand_in() -> None:
    sql = (
        "with recursive c (n) as (select 1 union all select n + 1 from c where n < (select max(m) from u)), "
        "d as ((select a from t) union select b from u order by (select min(z) from w)) "
        "select (select 2), x.* from (select * from c) x join ((select q from d)) y on exists (select 3 from v)"
    )
    text = TokenText(sql)

    def below(block: TokenBlock) -> list[str]:
        return [text.text(b.span) for query in block.children for b in query.blocks]

    tree = {text.text(b.span): below(b) for b in text.blocks}
    assert tree["select n + 1 from c where n < (select max(m) from u)"] == ["select max(m) from u"]
    assert tree["select b from u"] == ["select min(z) from w"]
    last = text.blocks[-1].query
    while last.parent is not None or last.outer is not None:
        last = last.parent.query if last.parent is not None else last.outer  # type: ignore[assignment]
    assert [c.name for c in last.ctes] == ["c", "d"] and last.ctes[0].recursive
    assert [text.text(c.span)[-8:] for c in last.ctes] == ["from u))", "from w))"]
    assert below(last.blocks[0]) == ["select 2", "select * from c", "select q from d", "select 3 from v"]


@pytest.mark.parametrize(
    "sql", ["from t select a", "select a from", "select a from t; select b from t", "delete from t"]
)
def test_what_is_not_one_select_is_not_taken_apart(sql: str) -> None:
    with pytest.raises(TextError):
        TokenText(sql)
