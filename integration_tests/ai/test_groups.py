"""ai_agg and ai_summarize_agg: one question for a group, asked again only where its members changed, counted at the endpoint."""

from __future__ import annotations

from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Endpoint

from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.query.ai_calls.given import with_given

SQL = """SELECT g, count(*) AS n, ai_agg(body, 'What is asked for?') AS said, upper(ai_summarize_agg(DISTINCT body)) AS short
FROM {s}.notes GROUP BY g"""


def test_a_group_is_asked_about_once_in_whatever_order(bench: Bench) -> None:
    columns = "g STRING, body STRING"
    bench.table("notes", columns, "('a', 'y')", "('a', 'x \"q\"')", "('b', NULL)", "('c', 'z')", "('a', 'x \"q\"')")
    with Endpoint() as endpoint:
        settings = bench.openai(endpoint.url)

        def asked() -> int:
            return sum(endpoint.seen.asked.values())

        outcome, rows = bench.run(SQL, settings)
        found = {row[0]: row[1:] for row in rows}
        assert found == {
            "a": (3, 'answer to ["x \\"q\\"","x \\"q\\"","y"]', 'ANSWER TO ["X \\"Q\\"","Y"]'),
            "b": (1, None, None),
            "c": (1, 'answer to ["z"]', 'ANSWER TO ["Z"]'),
        }
        assert (outcome.calls, asked()) == (4, 4)

        bench.sql(f"DROP TABLE {bench.schema}.notes")
        bench.table("notes", columns, "('a', 'x \"q\"')", "('c', 'z')", "('a', 'x \"q\"')", "('b', NULL)", "('a', 'y')")
        again, same = bench.run(SQL, settings)
        assert (again.calls, sorted(same), asked()) == (0, sorted(rows), 4)
        bench.sql(f"INSERT INTO {bench.schema}.notes VALUES ('c', 'z'), ('b', 'new')")
        later, rows = bench.run(SQL, settings)
        assert (
            later.calls == 3
        )  # c: the list, its distinct values are the same; b: both, and they are different questions
        assert asked() == 7

        # over and below other clauses, with CASE for FILTER, and of answers of other calls
        plain = (
            "SELECT count(*) FROM {s}.notes WHERE body = 'y' GROUP BY g HAVING ai_agg(body, 'is it?') LIKE '%[\"y\"]'"
        )
        assert bench.run(plain, settings)[1] == [(1,)]
        nested = (
            "WITH c AS (SELECT g, ai_agg(CASE WHEN g <> 'c' THEN ai_gen(body) END, 'w') AS k FROM {s}.notes GROUP BY g) "
            "SELECT g FROM c WHERE k IS NULL"
        )
        assert bench.run(nested, settings)[1] == [("c",)]
        whole = "SELECT ai_agg(g, 'all') FROM {s}.notes WHERE g = 'b'"
        assert bench.run(whole, settings)[1] == [('answer to ["b","b"]',)]


def test_having_under_keys_that_the_select_list_tells(bench: Bench) -> None:
    bench.table("notes", "g STRING, body STRING", "('a', 'y')", "('a', 'x')", "(NULL, 'y')", "('c', 'z')", "('c', 'z')")
    settings = bench.settings()
    call, key = "ai_agg(body, 'w')", "coalesce(g, '-')"
    found = bench.run(f"SELECT {call} AS k FROM {{s}}.notes GROUP BY {key}", settings)[1]
    assert len({k for (k,) in found}) == 3 and (None,) not in found
    one = found[0][0].replace("'", "''")
    for keys in ("1", "gg", "all", key):
        sql = f"SELECT {key} AS gg, count(*) AS n FROM {{s}}.notes GROUP BY {keys} HAVING {call} <> '{one}' AND n > 0"
        bench.rows("DELETE FROM {results}")
        outcome, rows = bench.run(sql, settings)
        assert (outcome.calls, len(rows)) == (3, 2), keys
        sql = f"SELECT {key} AS gg, {call} AS k FROM {{s}}.notes GROUP BY {keys} HAVING {call} <> '{one}' OR max(body) > 'zz'"
        assert sorted(k for _, k in bench.run(sql, settings)[1]) == sorted(k for (k,) in found[1:]), keys
        sql = f"SELECT {key} AS gg FROM {{s}}.notes GROUP BY {keys} HAVING max(ai_gen(body)) > ''"
        outcome, rows = bench.run(sql, settings)
        assert (outcome.requested, len(rows)) == (3, 3), keys


def test_where_it_may_not_stand_and_what_a_unit_test_gives() -> None:
    for sql, why in (
        ("SELECT ai_agg(t, 'w') OVER (PARTITION BY u) FROM x", "stands before OVER"),
        ("SELECT ai_agg(t, 'w') FILTER (WHERE u > 1) FROM x", "CASE WHEN"),
        ("SELECT ai_agg(t, u) FROM x GROUP BY u", "needs what to do with the group's values written out"),
        ("SELECT ai_agg(t) FROM x", "lacks instruction"),
        ("SELECT ai_agg(ai_agg(t, 'a'), 'b') FROM x", "compute that in a CTE"),
        ("SELECT u FROM x GROUP BY u ORDER BY ai_agg(t, 'w')", "order by that in an outer SELECT"),
        ("SELECT u FROM x GROUP BY 1 ORDER BY ai_gen(u)", "order by that in an outer SELECT"),
    ):
        (error,) = plan_ai(sql, results_table="r", identity={"model": "m"}).errors
        assert why in error.message
    given = with_given("SELECT u, ai_agg(t, 'w') AS k FROM x GROUP BY u", {"ai_agg": "all well"}, {})
    assert given == "SELECT u, ('all well') AS k FROM x GROUP BY u"
