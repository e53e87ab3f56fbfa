"""Draws in filters, taken out and read back from the state table; the rest is refused with place and cure."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.kept_rows import split_rows
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.filter_draws import split_filter_draws, text_print


@pytest.mark.parametrize(
    ("sql", "key", "draw_sql", "filtered_sql"),
    [
        (
            "select id, x -- ü\nfrom t where rand() < 0.1 and x > 3",
            ["id"],
            "SELECT id AS `id`, rand() AS __mv_draw_0 -- ü\nfrom t where 1 = 1 and x > 3",
            "select id, x -- ü\nfrom t, (SELECT `id` AS __mv_key_0, __mv_draw_0 FROM s.m__state) AS __mv_state "
            "where (__mv_state.__mv_draw_0 < 0.1 and x > 3) AND (id) <=> __mv_state.__mv_key_0",
        ),
        (
            "select * from t where rand() < 0.1 or x > 3",
            ["id"],
            "SELECT `id` AS `id`, rand() AS __mv_draw_0 from t where 1 = 1",
            "select * EXCEPT (__mv_key_0, __mv_draw_0) from t, (SELECT `id` AS __mv_key_0, __mv_draw_0 "
            "FROM s.m__state) AS __mv_state where (__mv_state.__mv_draw_0 < 0.1 or x > 3) "
            "AND (`id`) <=> __mv_state.__mv_key_0",
        ),
        (
            "with a as (select * from t) select o.id as `k 1`, b.n from a o left join b on b.i = o.id "
            "where x > 2 and floor(rand(3) * 10) in (1, 2) and uuid() > 'b' order by 1",
            ["k 1", "n"],
            "WITH a as (select * from t) SELECT o.id AS `k 1`, b.n AS `n`, rand(3) AS __mv_draw_0, "
            "uuid() AS __mv_draw_1 from a o left join b on b.i = o.id where x > 2 and 1 = 1 and 1 = 1",
            "with a as (select * from t) select o.id as `k 1`, b.n from a o left join b on b.i = o.id, "
            "(SELECT `k 1` AS __mv_key_0, `n` AS __mv_key_1, __mv_draw_0, __mv_draw_1 FROM s.m__state) AS __mv_state "
            "where (x > 2 and floor(__mv_state.__mv_draw_0 * 10) in (1, 2) and __mv_state.__mv_draw_1 > 'b') "
            "AND (o.id) <=> __mv_state.__mv_key_0 AND (b.n) <=> __mv_state.__mv_key_1 order by 1",
        ),
        (
            "select a as k, count(*) n from t, u group by 1 having rand() < n / 9 and sum(x) > 2 order by 2",
            ["k"],
            "SELECT `k`, rand() AS __mv_draw_0 FROM (select a as k, count(*) n from t, u group by 1 "
            "having 1 = 1 and sum(x) > 2) AS __mv_groups",
            "select a as k, count(*) n from t, u, (SELECT `k` AS __mv_key_0, __mv_draw_0 FROM s.m__state) AS __mv_state "
            "WHERE (a) <=> __mv_state.__mv_key_0 group by 1 having max(__mv_state.__mv_draw_0) < n / 9 and sum(x) > 2 "
            "order by 2",
        ),
    ],
)
def test_draws_are_taken_out(sql: str, key: list[str], draw_sql: str, filtered_sql: str) -> None:
    found = split_filter_draws(sql, key, "s.m__state")
    assert found is not None and found.reason == ""
    assert found.draw_sql == draw_sql
    assert found.filtered_sql == filtered_sql


_STATE = "(SELECT `id` AS __mv_key_0, __mv_draw_0 FROM s.m__state) AS __mv_state"


@pytest.mark.parametrize(
    ("sql", "draw_sql", "filter_", "whole"),
    [
        (
            "with a as (select * from o), q as (select k as i, x from a where rand() < 1 and x > 2), f as (select i as id, x from q) "
            "select * from f",
            "WITH a as (select * from o) SELECT k AS `id`, rand() AS __mv_draw_0 from a where 1 = 1 and x > 2",
            f"from a, {_STATE} where (__mv_state.__mv_draw_0 < 1 and x > 2) AND (k) <=> __mv_state.__mv_key_0), f as",
            True,
        ),
        (
            "with q as (select * from o where rand() < 1) select q.id, u.w from q left join u on u.k = q.k order by 1",
            "SELECT `id` AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            f"(select * EXCEPT (__mv_key_0, __mv_draw_0) from o, {_STATE} where (__mv_state.__mv_draw_0 < 1) AND",
            True,
        ),
        (
            "select * from (select id, x from o where rand() < 1) d where x > 2",
            "SELECT id AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            f"from o, {_STATE} where (__mv_state.__mv_draw_0 < 1) AND (id) <=> __mv_state.__mv_key_0) d where x > 2",
            False,
        ),
        (
            "with q as (select id from o where rand() < 1) select q.id from q join u on u.k = q.id",
            "SELECT id AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            "",
            False,
        ),
        (
            "with q as (select id, k from o where rand() < 1) select id, count(*) over (partition by k) as n from q",
            "SELECT id AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            "",
            False,
        ),
        (
            "with q as (select id, a from o where rand() < 1) select id, explode(a) from q",
            "SELECT id AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            "",
            False,
        ),
        (
            "with q as (select id from o where rand() < 1) select p.id from u left join q as p on u.k = p.id",
            "SELECT id AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            "",
            False,
        ),
        (
            "with a as (select * from o), g as (select k, count(*) as n from a group by k having rand() < 1) select k as id, n from g",
            "SELECT `k` AS `id`, rand() AS __mv_draw_0 FROM (WITH a as (select * from o) select k, count(*) as n from a "
            "group by k having 1 = 1) AS __mv_groups",
            f"from a, {_STATE} WHERE (k) <=> __mv_state.__mv_key_0 group by k having max(__mv_state.__mv_draw_0) < 1)",
            False,
        ),
        (
            "select x, id from u union all select y, k from o where rand() < 1",
            "SELECT k AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            f"union all select y, k from o, {_STATE} where (__mv_state.__mv_draw_0 < 1) AND (k) <=> __mv_state.__mv_key_0",
            False,
        ),
        (
            "with q as (select id from o where rand() < 1 union all select 1), r as (select x, id from u union all by name "
            "(select id, y as x from q)) select * from r",
            "SELECT id AS `id`, rand() AS __mv_draw_0 from o where 1 = 1",
            f"from o, {_STATE} where (__mv_state.__mv_draw_0 < 1) AND (id) <=> __mv_state.__mv_key_0 union all select 1)",
            False,
        ),
    ],
)
def test_draws_below_are_kept_by_the_key_that_is_passed_on(sql: str, draw_sql: str, filter_: str, whole: bool) -> None:
    found = split_filter_draws(sql, ["id"], "s.m__state")
    assert found is not None and found.reason == "" and found.filtered_sql is not None
    assert found.draw_sql == draw_sql
    assert filter_ in found.filtered_sql
    assert (found.followed is not None) == whole


@pytest.mark.parametrize(
    "sql",
    [
        "with a as (select *, rand() as r from t), q as (select * from a where r < 1) select * from q",
        "with a as (select *, rand() as r from t), q as (select id, x, r from a where r < 1) select id, x, r from q where x > 1",
        "select * from (select * from (select *, rand() as r from t) where r < 1) order by x",
    ],
)
def test_a_drawn_column_that_filters_below(sql: str) -> None:
    def read(text: str) -> Analysis:
        return analyze(text, unique_key=["id"], schemas={"t": {"id": "int", "x": "int"}})

    kept = split_rows(sql, read, ["id"], {}, "s.m__state")
    assert kept.draw_sql.endswith("AS __mv_draw_0, r AS __mv_draw_1 " + kept.draw_sql.partition("__mv_draw_1 ")[2])
    assert "(__mv_state.__mv_draw_1 < 1)" in kept.filtered_sql and "__mv_state.__mv_draw_0 AS `r`" in kept.filtered_sql


@pytest.mark.parametrize(
    ("items", "seen"),
    [
        ("id, * except (id, `a b`)", "id, * except (id, `a b`, {kept})"),
        ("* except (x)", "* except (x, {kept})"),
        ("*, to_json(struct(*)) as j", "* EXCEPT ({kept}), to_json(struct(* EXCEPT ({kept}))) as j"),
        ("id, hash(* except (x)) as h", "id, hash(* except (x, {kept})) as h"),
        ("t.* except (x), count(*) over () as n", "t.* except (x), count(*) over () as n"),
        ("id, (select max(a) from (select * from u)) as m", "id, (select max(a) from (select * from u)) as m"),
    ],
)
def test_no_star_takes_in_the_kept_draws(items: str, seen: str) -> None:
    found = split_filter_draws(
        f"with t as (select * from o) select {items} from t where rand() < 1", ["id"], "s.m__state"
    )
    assert found is not None and found.filtered_sql is not None, found
    kept = seen.format(kept="__mv_key_0, __mv_draw_0")
    assert found.filtered_sql.startswith(
        f"with t as (select * from o) select {kept} from t, (SELECT `id` AS __mv_key_0,"
    )


@pytest.mark.parametrize("items", ["id, * except (id, x)", "id, a.* except (id)", "id, hash(*) as h", "*, x + 1 as y"])
def test_a_star_beside_a_filter_by_a_drawn_column_is_another_draw(items: str) -> None:
    sql = f"with a as (select id, x, rand() as r from t) select {items} from a where r < 1"
    reads = analyze(sql, unique_key=["id"], schemas={"t": {"id": "int", "x": "int"}}).drawn_reads
    found = split_filter_draws(sql, ["id"], "s.m__state", reads=reads)
    assert found is not None and "which would be another draw; name the columns" in found.reason


def test_draws_in_the_select_list_are_not_filters() -> None:
    assert split_filter_draws("select id, rand() as r from t where x > 1", ["id"], "s") is None
    assert split_filter_draws("values (1), (2)", ["col1"], "s") is None
    assert split_filter_draws("select id from t where upper(x) in ('a') and not (y)", ["id"], "s") is None


@pytest.mark.parametrize("call", ["s.my_udf(x)", "c.s.my_udf(x)", "`a b`.`my udf`(x + rand())"])
def test_a_function_is_called_with_its_schema(call: str) -> None:
    found = split_filter_draws(f"select id from t where {call} > 1", ["id"], "s.m__state")
    assert found is not None and found.draws == (call,)
    assert found.draw_sql == f"SELECT id AS `id`, {call} AS __mv_draw_0 from t where 1 = 1"
    assert found.filtered_sql is not None and "(__mv_state.__mv_draw_0 > 1)" in found.filtered_sql
    inside = split_filter_draws(f"select id from t where exists(a, v -> {call} > v)", ["id"], "s.m__state")
    assert inside is not None and "stands in a lambda" in inside.reason


def test_unknown_functions_draw_until_declared() -> None:
    sql = "select id from t where my_udf(x) > 1"
    found = split_filter_draws(sql, ["id"], "s")
    assert found is not None and found.draws == ("my_udf(x)",)
    assert split_filter_draws(sql, ["id"], "s", {"my_udf": Level.DETERMINISTIC}) is None


@pytest.mark.parametrize(
    ("sql", "place", "words"),
    [
        ("select id from t\nwhere x in (select y from z where rand() < 1)", (2, 35), "a subquery"),
        ("with a as (select id from t where rand() < 1) select id + 1 as id from a", (1, 35), "the CTE a, from which"),
        ("select max(id) as id from (select id from t where rand() < 1) a", (1, 51), "a subquery, from which"),
        (
            "with a as (select * from t where rand() < 1) select id, w from a join u on u.k = a.k",
            (1, 34),
            "where others",
        ),
        ("with a as (select id from t where rand() < 1) select * except (ID) from a", (1, 35), "the CTE a, from which"),
        (
            "select 1 as id union all select id + 1 from t where rand() < 1",
            (1, 53),
            "a term of a set operation, from which the unique_key id",
        ),
        ("select id from t where rand() < 1 union all select id from t where rand() < 1", (1, 68), "in another SELECT"),
        ("select * from u union all select id from t where rand() < 1", (1, 50), "from which"),
        ("select id from u union all select 'x' from t where rand() < 1", (1, 52), "from which"),
        ("select id, x from u union all select *, 1 from t where rand() < 1", (1, 56), "from which"),
        (
            "select id from (select * from a where uuid() > '5') b where rand() < 1",
            (1, 61),
            "in another SELECT than uuid()",
        ),
        ("select t.id from t, lateral (select id from u where rand() < 1) as l", (1, 53), "a subquery, where"),
        ("with a as (select id from t where rand() < 1 union select 1) select id from a", (1, 35), "but UNION ALL"),
        ("with a as (select id from t where rand() < 1) select distinct id from a", (1, 35), "from which"),
        (
            "with a as (select id from t where rand() < 1) select id, count(*) from a group by id",
            (1, 35),
            "no GROUP BY",
        ),
        ("with a as (select id from t where rand() < 1) select id from u left anti join a", (1, 35), "from which"),
        ("with a as (select distinct id from t where rand() < 1) select * from a", (1, 44), "DISTINCT"),
        ("with a as (select id from t where rand() < 1) select * from a tablesample (5 rows)", (1, 35), "from which"),
        ("select count(*) as id from t having rand() > 0", (1, 37), "HAVING without GROUP BY"),
        ("select id, count(*) from t group by rollup(id) having rand() > 0", (1, 55), "several grouping sets"),
        ("select id, count(*) from t group by id with cube having rand() > 0", (1, 57), "several grouping sets"),
        ("select id, b from t group by id, b grouping sets ((id), (b)) having rand() > 0", (1, 69), "grouping sets"),
        ("select id, sum(x) from t group by id having sum(rand()) > 0", (1, 49), "an aggregate of HAVING"),
        ("select id, sum(x) from t group by id having sum(x) filter (where rand() > 0) > 0", (1, 66), "an aggregate"),
        ("select id, count(*) as n from t group by id having rand(n) > 0", (1, 52), "reads columns"),
        ("select id, count(*) from t group by id having rand() > 0 limit 3", (1, 47), "beside LIMIT"),
        ("select *, count(*) from t group by all having rand() > 0", (1, 47), "with a *"),
        ("select max(x) as id from t group by y having rand() > 0", (1, 46), "not computed from a row"),
        ("select id from t where rand() > 0 group by id having rand() > 0", (1, 54), "stands in HAVING"),
        (
            "select id from t group by id having id in (select y from u group by y having rand() > 0)",
            (1, 78),
            "subquery",
        ),
        ("select id from a join b on rand() < 1", (1, 28), "JOIN ON"),
        ("select x as id, count(*) as c from t where rand() < 1 group by x", (1, 44), "GROUP BY"),
        ("select distinct id from t where rand() < 1", (1, 33), "DISTINCT"),
        ("select max(x) as id from t where rand() < 1", (1, 34), "an aggregate"),
        ("select kll_sketch_agg_bigint(x) as id from t where rand() < 1", (1, 52), "an aggregate"),
        ("select x from t where rand() < 1", (1, 23), "unique_key column id is not found"),
        ("select * except (ID) from t where rand() < 1", (1, 35), "unique_key column id is not found"),
        ("select id from t where hash(*) > 1 and rand() < 1", (1, 40), "beside a * in WHERE"),
        ("select a.*, b.* from a join b on a.i = b.i where rand() < 1", (1, 50), "unique_key column id is not found"),
        ("select uuid() as id from t where rand() < 1", (1, 34), "itself drawn"),
        ("select row_number() over (order by x) as id from t where rand() < 1", (1, 58), "not computed from a row"),
        ("select upper(a) as b, b || 'x' as id from t where rand() < 1", (1, 51), "output column b"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(sql: str, place: tuple[int, int], words: str) -> None:
    found = split_filter_draws(sql, ["id"], "s.m__state")
    assert found is not None
    assert (found.draw_sql, found.filtered_sql) == (None, None)
    assert words in found.reason and (found.line, found.column) == place


def test_two_ctes_of_one_name_keep_their_meaning() -> None:
    sql = "with a as (select * from t) select * from (with a as (select * from a) select id from a where rand() < 1) b"
    found = split_filter_draws(sql, ["id"], "st", {})
    assert found is not None and found.draw_sql is not None
    assert found.draw_sql.startswith("WITH a as (select * from t) SELECT * FROM (WITH a as (select * from a) SELECT id")


def test_what_stands_in_a_string_is_part_of_the_draw() -> None:
    assert text_print("shuffle(split(s, r'[A]'))") != text_print("shuffle(split(s, r'[a]'))")


@pytest.mark.parametrize("written", ["uniform(0,1)", "UNIFORM( 0, 1 )", "uniform(0, /* to */ 1)"])
def test_a_draw_written_in_another_way_is_the_same(written: str) -> None:
    prints = []
    for call in ("uniform(0, 1)", written):
        found = split_filter_draws(f"select id from t where {call} < 0.5", ["id"], "st", {})
        assert found is not None
        prints.append(found.fingerprints)
    assert prints[0] == prints[1]
