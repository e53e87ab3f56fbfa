"""AI calls anywhere in generated queries are asked about the rows that show their answers, and each answer is at its row."""

from __future__ import annotations

import os

import pytest
from answers import wrong_answers
from engine import Database
from grammar import Drawn, draw_query
from volatile import Said

pytestmark = pytest.mark.unit

QUERIES = int(os.environ.get("ORACLE_ANSWERS", 60))

FOUND = {
    "LIMIT counts what DISTINCT has left": "select distinct k, ai_gen(min(k)) as g from t where k is not null group by k, x order by k limit 2",
    "ORDER BY and LIMIT behind the last term are those of the union": "select id as k, s as a from t union all select k, ai_gen(max(w)) from u "
    "group by k order by k limit 2",
    "and name its columns": "select id as n, s as a from t union all select k, ai_gen(max(w)) from u group by k order by n",
    "a key of GROUP BY that is written out in both places, with a call inside a call": "select ai_gen(ai_fix_grammar(s)) as g, count(*) as n "
    "from t group by ai_gen(ai_fix_grammar(s))",
    "the right side of a semi join has no columns": "with e2 as (select id, ai_gen(s) as g from t) select u.k from u left semi join e2 on e2.id = u.k "
    "where u.y > 1",
    "a derived table that renames its columns": "select q.b from (select id, ai_gen(s) as g from t) as q(a, b) where q.a > 2",
    "two CTEs of one name": "with z as (select id from t) select * from (with z as (select id, ai_gen(s) as g from t where id in (select id from z)) "
    "select id, g from z where id > 1) q",
    "joins in parentheses": "select q.g, u.y from ((select id, k, ai_gen(s) as g from t) q join u on u.k = q.k) where u.y > 0",
    "a window over answers, in a branch of CASE": "select id, case when x > 1 then max(ai_gen(s)) over (partition by k) end as a from t",
    "an aggregate of answers, in a branch that another one decides": "select k, case when count(*) > 1 then max(ai_gen(s)) end as a from t "
    "where k is not null group by k",
    "a branch that a column of the same list decides": "select id, x + 1 as y2, case when y2 > 1 then ai_gen(s) end as a from t",
    "a text and a column of one name": "select id, ai_fix_grammar(ai_gen('s')) as a, ai_fix_grammar(ai_gen(s)) as b from t",
    "a branch that decides for all rows of a group": "select k, case when k = 1 then max(ai_gen(s)) end as m from t where k is not null group by k",
    "and of a partition": "select id, case when k > 1 then max(ai_gen(s)) over (partition by k) end as m from t",
    "a branch that an alias and a query decide": "select id, x + 1 as y2, case when y2 > 1 and x in (select y from u) then ai_gen(s) else 'n' end as a "
    "from t",
    "a window over answers, in a branch that an alias decides": "select id, x + 1 as y2, case when y2 > 1 then max(ai_gen(s)) over (partition by k) end "
    "as a from t",
    "the right side of a join in parentheses": "select t.id, q.a from (t join (select k, ai_gen(w) as a from u) q on q.k = t.k) where t.x > 0",
    "a star beside a semi join whose condition asks about its right side": "select * from t left semi join u on u.k = t.k and ai_gen(u.w) <> 'G:x'",
    "rows that a LATERAL VIEW makes of answers": "select id, e, ai_fix_grammar(s) as a from t lateral view explode(split(ai_gen(s), ',')) v as e",
    "a call in a CTE that nobody reads": "with d as (select ai_gen(s) as g from t), e as (select id, ai_fix_grammar(s) as h from t) select id, h from e",
    "a hint names the CTE": "with q as (select k, ai_gen(s) as g from t) select /*+ broadcast(q) */ u.k, q.g from u join q on q.k = u.k where u.y > 0",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_right_now(name: str) -> None:
    said = Said()
    wrong = wrong_answers(Database(), Drawn(FOUND[name], ("k",)), said)
    assert not wrong, wrong
    assert said.queries.total() == 1 and not said.untranslated


def test_answers_are_those_of_their_rows() -> None:
    database, said = Database(), Said()
    for seed in range(QUERIES):
        drawn = draw_query(seed, ai=0.5)
        wrong = wrong_answers(database, drawn, said)
        assert not wrong, f"seed {seed}: {wrong}\n{drawn.sql}"
    print(said)
    assert sum(said.queries[f"{n} rounds"] for n in range(1, 9)) > QUERIES / 5
    assert said.untranslated.total() < QUERIES * 0.1
