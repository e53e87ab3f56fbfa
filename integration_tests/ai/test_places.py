"""Every place where an AI call may stand, on real Spark: the rewritten query against the query over a plain function.

The scripted provider answers `ai_gen: <prompt>`, which plain SQL can say, too: `concat('ai_gen: ', x)`. So each query
has an oracle: itself with the calls replaced by that expression.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration_tests.ai.conftest import Bench

# ai_gen(x) and nothing else; GEN(x) marks the call in the queries below. The number is that of the calls to make.
QUERIES = [
    ("SELECT *, GEN(t) AS k FROM {s}.src", 2),
    ("SELECT id FROM {s}.src WHERE GEN(t) = 'ai_gen: a' AND id > 1", 2),
    ("SELECT CASE WHEN id > 2 THEN GEN(t) ELSE u END AS k FROM {s}.src", 1),
    ("SELECT GEN(t) AS k, count(*) AS n FROM {s}.src GROUP BY GEN(t)", 2),
    ("SELECT GEN(t) AS k, count(*) AS n FROM {s}.src GROUP BY k HAVING count(*) > 1", 2),
    ("SELECT GEN(t) AS k, count(*) AS n FROM {s}.src GROUP BY ALL", 2),
    ("SELECT count(*) AS n FROM {s}.src GROUP BY GEN(t)", 2),
    ("SELECT count(DISTINCT GEN(t)) AS n, max(GEN(u)) AS m FROM {s}.src", 6),
    ("SELECT u, GEN(array_join(sort_array(collect_list(t)), ' ')) AS k, count(*) AS n FROM {s}.src GROUP BY u", 3),
    ("SELECT coalesce(GEN(max(t)), '-') || u || count(*) AS k FROM {s}.src GROUP BY u", 2),
    ("SELECT u FROM {s}.src GROUP BY u HAVING GEN(max(t)) = 'ai_gen: a'", 2),
    ("SELECT *, GEN(lag(t) OVER (ORDER BY id)) AS p FROM {s}.src", 2),
    ("SELECT id, sum(id) OVER (PARTITION BY GEN(t)) AS p FROM {s}.src", 2),
    ("SELECT id, upper(t) AS tt, GEN(tt) AS k, k || '!' AS l FROM {s}.src", 2),
    ("SELECT id, upper(t) AS tt, GEN(tt) AS k, GEN(k) AS l FROM {s}.src", 4),
    ("SELECT *, upper(t) AS tt, GEN(tt) AS k, GEN(concat(k, u)) AS l, concat(l, '!') AS m FROM {s}.src", 5),
    ("SELECT u, max(t) AS tt, GEN(tt) AS k, GEN(concat(k, count(*))) AS l, length(l) AS n FROM {s}.src GROUP BY u", 4),
    (
        "SELECT id, concat(t, '-') AS tt, GEN(tt) AS k, concat(k, 'y') AS k2, GEN(k2) AS l, row_number() OVER (PARTITION BY u ORDER BY id) AS n FROM {s}.src",
        4,
    ),
    ("SELECT id, GEN(GEN(t)) AS k FROM {s}.src", 4),
    ("SELECT id, GEN(t) AS k FROM {s}.src ORDER BY id LIMIT 1", 1),
    ("SELECT id, GEN(u) AS k FROM {s}.src ORDER BY t NULLS LAST, 1 LIMIT 1 OFFSET 1", 2),
    ("WITH c AS (SELECT *, GEN(u) AS k FROM {s}.src) SELECT id, k FROM c WHERE id > 1 ORDER BY id DESC LIMIT 2", 2),
    ("SELECT id, GEN(t) AS k, upper(k) AS l FROM {s}.src ORDER BY l DESC LIMIT 1", 2),
    ("SELECT id, GEN(u) AS k FROM {s}.src WHERE GEN(t) = 'ai_gen: a' ORDER BY id DESC LIMIT 1", 3),
    ("SELECT a.id, b.id AS other FROM {s}.src a JOIN {s}.src b ON GEN(a.t) = GEN(b.t)", 2),
    ("SELECT * FROM {s}.src a LEFT JOIN {s}.src b ON GEN(a.t) = concat('ai_gen: ', b.t)", 2),
    (
        "SELECT a.id, b.id AS other FROM {s}.src a JOIN {s}.src b ON GEN(concat(a.t, b.u)) > 'ai_gen: ay' AND a.id < 3",
        8,
    ),
    ("WITH c AS (SELECT id, t, GEN(t) AS k FROM {s}.src) SELECT id, k FROM c WHERE id > 2", 1),
    ("WITH c AS (SELECT id, u, GEN(t) AS k FROM {s}.src) SELECT GEN(u) AS v FROM c WHERE k = 'ai_gen: b'", 3),
    ("WITH c AS (SELECT *, GEN(t) AS k FROM {s}.src) SELECT a.k, b.id FROM c a JOIN c b USING (id) WHERE a.id > 3", 2),
    ("SELECT q.k FROM (SELECT id, GEN(t) AS k FROM {s}.src) q JOIN {s}.src r USING (id) WHERE r.u = 'x'", 1),
    ("SELECT GEN(t) AS k FROM {s}.src WHERE id < 3 UNION ALL SELECT GEN(u) FROM {s}.src WHERE id = 1", 3),
    ("SELECT id FROM {s}.src o WHERE EXISTS (SELECT 1 FROM {s}.src i WHERE i.id = o.id AND GEN(i.t) = 'ai_gen: a')", 2),
    ("SELECT id FROM {s}.src WHERE id IN (SELECT id FROM {s}.src WHERE GEN(t) = 'ai_gen: a' AND id < 3)", 2),
    ("SELECT id, e FROM {s}.src LATERAL VIEW explode(split(GEN(t), ' ')) x AS e", 2),
    ("SELECT DISTINCT GEN(t) AS k FROM {s}.src ORDER BY k LIMIT 2", 2),
    ("SELECT status, GEN(value) AS k FROM (SELECT t AS value, u AS status FROM {s}.src)", 2),
    # arguments from a subquery, or from another answer, and filters on what came of it
    ("SELECT id, GEN((SELECT max(u) FROM {s}.src i WHERE i.id = o.id)) AS k FROM {s}.src o", 4),
    (
        "SELECT id, GEN((SELECT 'c')) AS k, GEN(GEN((SELECT max(t) FROM {s}.src i WHERE i.id = o.id))) AS l FROM {s}.src o",
        5,
    ),
    (
        "SELECT * FROM (SELECT id, GEN((SELECT max(t) FROM {s}.src i WHERE i.id = o.id)) AS k FROM {s}.src o) WHERE k LIKE '%a'",
        2,
    ),
    (
        "SELECT *, GEN(CASE WHEN EXISTS (SELECT 1 FROM {s}.src i WHERE i.t = o.u) THEN t ELSE u END) AS k FROM {s}.src o",
        4,
    ),
    ("SELECT id FROM {s}.src WHERE GEN((SELECT max(t) FROM {s}.src)) = 'ai_gen: b'", 1),
    (
        "WITH c AS (SELECT id, (SELECT max(t) FROM {s}.src i WHERE i.id = o.id) AS v FROM {s}.src o), d AS (SELECT *, GEN(v) AS k FROM c) "
        "SELECT * FROM d WHERE k = 'ai_gen: a'",
        2,
    ),
    (
        "WITH c AS (SELECT id, GEN(t) AS k FROM {s}.src), d AS (SELECT *, GEN(k) AS l FROM c) SELECT * FROM d WHERE l = 'ai_gen: ai_gen: a'",
        4,
    ),
    (
        "WITH c AS (SELECT id, GEN(t) AS k FROM {s}.src), d AS (SELECT *, GEN(k) AS l FROM c), e AS (SELECT *, GEN(l) AS m FROM d) "
        "SELECT id, m, GEN(m) AS n FROM e WHERE m LIKE '%a' AND GEN(l) = m",
        7,
    ),
    (
        "WITH c AS (SELECT id, GEN(t) AS k FROM {s}.src) SELECT id, l, r.u FROM (SELECT c.id, GEN(k) AS l FROM c LEFT JOIN {s}.src q USING (id)) d "
        "FULL JOIN {s}.src r USING (id) WHERE l <> 'x' OR l IS NULL",
        4,
    ),
    (
        "SELECT l FROM (SELECT GEN(k) AS l FROM (SELECT id, GEN(t) AS k FROM {s}.src), (SELECT 1 AS one)) WHERE l LIKE '%a'",
        4,
    ),
    (
        "SELECT l, count(*) AS m FROM (SELECT GEN(k) AS l FROM (SELECT GEN(t) AS k FROM {s}.src)) GROUP BY l HAVING l > 'a'",
        4,
    ),
    (
        "WITH c AS (SELECT id, GEN(t) AS k FROM {s}.src) SELECT * FROM (SELECT id, GEN(k) AS l FROM c UNION ALL SELECT id, GEN(k) FROM c "
        "WHERE k LIKE '%b') WHERE l LIKE '%b'",
        4,
    ),
    # in subqueries of an expression
    ("SELECT id, (SELECT max(GEN(i.t)) FROM {s}.src i WHERE i.id = o.id) AS k FROM {s}.src o", 2),
    ("SELECT id, (SELECT count(*) FROM {s}.src i WHERE i.t = o.t AND GEN(i.u) > 'ai_gen: x') AS m FROM {s}.src o", 4),
    ("SELECT id FROM {s}.src WHERE GEN(t) = (SELECT max(GEN(b.t)) FROM {s}.src b WHERE b.id = src.id)", 2),
    ("SELECT id, GEN(u) = (SELECT min(GEN(i.u)) FROM {s}.src i WHERE i.t = o.t) AS k FROM {s}.src o WHERE id < 4", 4),
    ("SELECT id, (SELECT max(GEN(t)) FROM {s}.src) AS k FROM {s}.src WHERE u NOT IN (SELECT GEN(u) FROM {s}.src)", 6),
    # over the first rows, of which Spark takes any where a subquery looks the answers up
    ("SELECT id, GEN(t) AS k FROM (SELECT * FROM {s}.src ORDER BY id DESC LIMIT 2)", 1),
    ("WITH c AS (SELECT * FROM {s}.src ORDER BY id DESC LIMIT 2 OFFSET 1) SELECT id, GEN(u) AS k FROM c", 2),
    ("SELECT GEN(u) AS k, count(*) AS m FROM (SELECT * FROM {s}.src ORDER BY id DESC OFFSET 3) GROUP BY 1", 1),
    # keys of groups
    ("SELECT t, GEN(t) AS k, count(*) AS m FROM {s}.src GROUP BY t", 2),
    (
        "SELECT coalesce(t, '-') AS g, concat(GEN(t), count(*)) AS k, 1 + count(*) AS m FROM {s}.src GROUP BY 1, t ORDER BY 1",
        2,
    ),
    ("SELECT u, GEN(t) AS k, sum(id) AS m FROM {s}.src GROUP BY ROLLUP (t, u)", 2),
    ("SELECT t, GEN(t) AS k, max(GEN(u)) AS l FROM {s}.src GROUP BY t HAVING GEN(t) = 'ai_gen: a'", 6),
    ("SELECT GEN(t) AS k, count(*) AS m FROM {s}.src GROUP BY 1 HAVING GEN(max(u)) > 'ai_gen: y'", 5),
    (
        "WITH c AS (SELECT id, GEN(t) AS k FROM {s}.src), d AS (SELECT k, GEN(k) AS l, count(*) AS m FROM c GROUP BY k) SELECT * FROM d "
        "WHERE l LIKE '%a' AND m > 1",
        3,
    ),
    # behind a LATERAL VIEW
    ("SELECT id, GEN(GEN(e)) AS k FROM {s}.src LATERAL VIEW explode(array(t, u)) x AS e WHERE id < 3", 8),
    (
        "SELECT * FROM (SELECT id, GEN(e) AS k FROM (SELECT id, GEN(t) AS v FROM {s}.src) LATERAL VIEW explode(array(v)) x AS e) WHERE k LIKE '%a'",
        4,
    ),
    # a flag alone in WHERE, which Spark reads in one pair of brackets as the name of a table's only column
    ("SELECT id, GEN(t) AS k FROM (SELECT id, t, id < 2 AS flag FROM {s}.src) WHERE flag", 1),
    ("SELECT GEN(t) AS k FROM (SELECT t, id < 2 AS flag FROM {s}.src) q WHERE flag AND true", 1),
    (
        "WITH flags AS (SELECT id < 2 AS flag FROM {s}.src) SELECT GEN(cast(flag AS string)) AS k FROM flags WHERE flag",
        1,
    ),
    ("SELECT k FROM (SELECT GEN(t) AS k, id < 2 AS flag FROM {s}.src) q WHERE flag", 1),
    ("SELECT GEN('it''s; \"x\" \\\\ ü') AS k -- GEN(u) in a comment", 1),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asked")


@pytest.mark.parametrize(("sql", "calls"), QUERIES)
def test_the_answers_stand_where_the_calls_stood(bench: Bench, sql: str, calls: int) -> None:
    bench.table(
        "src", "id INT, t STRING, u STRING", "(1, 'a', 'x')", "(2, 'b', 'y')", "(3, 'a', 'z')", "(4, NULL, 'w')"
    )
    outcome, rows = bench.run(sql.replace("GEN(", "ai_gen("), bench.settings())
    plain = sql
    while (found := re.search(r"GEN\(", plain)) is not None:
        plain = plain[: found.start()] + "concat('ai_gen: ', " + plain[found.end() :]
    expected = bench.rows(plain)
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
    assert (outcome.calls, outcome.errors) == (calls, 0)
    columns = bench.sql(bench.plan(sql.replace("GEN(", "ai_gen("), bench.settings()).sql).columns
    if "AS n FROM" not in sql:
        assert columns == bench.sql(plain.replace("{s}", bench.schema)).columns
