"""What a change is found again by, and what it cannot be: texts and reasons, without data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import sqlglot
from test_incremental import DuckTables

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.column_types import ColumnTypes
from spark_mv.query.delta.distributive import parts
from spark_mv.query.delta.names import expand
from spark_mv.query.delta.restrict import AffectedQuery, NotIncremental, QueryTree, read_tree
from spark_mv.query.delta.texts import table_refs
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.syntax.select_tree import SelectNode
from spark_mv.query.syntax.tree_builder import build

T = {"id": "int", "k": "int", "x": "int", "ts": "timestamp"}
SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "t": T, "u": {"k": "int", "y": "int"}, "e": {"id": "int", "z": "int"},
}  # fmt: skip


def tree_of(sql: str) -> QueryTree:
    analysis = analyze(sql, unique_key="id", schemas=SCHEMAS)
    return read_tree(analysis, None, ())


def anchors(sql: str, *changed: str) -> tuple[str, ...]:
    names = [c.name.lower() for c in analyze(sql, schemas=SCHEMAS).columns]
    return tree_of(sql).affected(DuckTables(frozenset(changed or ("t",))), ("id",), frozenset(names)).anchors


def reason(sql: str, *changed: str) -> str:
    with pytest.raises(NotIncremental) as refused:
        anchors(sql, *changed)
    return refused.value.code


@pytest.mark.parametrize(
    "key",
    [
        "sha2(to_json(struct(*)), 256)",
        "hash(*)",
        "xxhash64(q.*)",
        "to_json(struct(q.*))",
        "concat(id, md5(to_json(struct(*))))",
    ],
)
def test_a_function_of_all_columns_is_no_anchor(key: str) -> None:
    found = anchors(f"select {key} as h, q.* from (select k as id, count(*) as c from t group by k) q")
    assert found == ("id",)
    assert reason(f"select {key} as h from (select k as id, count(*) as c from t group by k) q") == "NO_ANCHOR"


def test_a_filter_on_all_columns_is_left_out() -> None:
    sql = "select id, c from (select k as id, count(*) as c from t group by k) q where hash(*) % 2 = 0 and id > 1"
    found = tree_of(sql).affected(DuckTables(frozenset({"t"})), ("id",), frozenset({"id", "c"}))
    assert "hash" not in found.sql and "id > 1" in found.sql


def test_an_anchor_that_only_the_select_list_can_say_is_looked_at_above_the_query() -> None:
    sql = "select id, explode(array(x, k)) as item from t join u using (k)"
    tree = tree_of(sql)
    found = tree.affected(DuckTables(frozenset({"u"})), ("id", "item"), frozenset({"id", "item"}))
    text = tree.restricted("affected", found)
    assert "LEFT SEMI JOIN affected" in text and "<=> (id)" in text and "<=> (explode" not in text


@pytest.mark.parametrize(
    ("sql", "unsaid"),
    [
        ("select k, min(x) as id, count(*) as n from t where x > 0 group by k", "<=> (min(x))"),
        ("select k, row_number() over (partition by k order by x) as id from t", "<=> (row_number"),
        ("select k, x * 2 as double, double + 1 as id from t", "<=> (double + 1)"),
        ("select k, x * 2 as double, abs(t.k + Double) as id from t", "<=> (abs"),
    ],
)
def test_a_key_of_more_than_a_row_of_the_tables_is_looked_at_above_the_query(sql: str, unsaid: str) -> None:
    text = tree_of(sql).among("gone", AffectedQuery("", ("k", "id")))
    assert "LEFT SEMI JOIN gone" in text and unsaid not in text
    assert ("<=> (k)" in text) == ("over (" not in text)


def test_rows_of_a_partition_are_looked_for_among_all_of_it_where_it_matters() -> None:
    numbered = "select id, k, row_number() over (partition by k order by x) as n from t"
    by_id = AffectedQuery("", ("id",))
    assert "<=> (id)" in tree_of(numbered).among("gone", by_id)
    assert "<=> (id)" not in tree_of(f"{numbered} qualify n = 1").among("gone", by_id)


def test_a_session_is_found_again_by_what_else_it_is_grouped_by() -> None:
    window = "session_window(ts, '10 minutes')"
    assert anchors(f"select k, {window}.start as id, count(*) as n from t group by k, {window}") == ("k",)
    assert reason(f"select {window}.start as id, count(*) as n from t group by {window}") == "NO_ANCHOR"
    below = f"select k, {window}.start as s, count(*) as n from t group by k, {window}"
    assert anchors(f"select s as id, k, n from ({below}) where n > 1") == ("k",)


def test_sessions_are_not_adjusted_by_changed_rows() -> None:
    sql = "select k, session_window(ts, '1 hour') as s, count(*) as n from t group by k, session_window(ts, '1 hour')"
    with pytest.raises(NotIncremental) as refused:
        parts(tree_of(sql).node, {"k": "int", "s": "timestamp", "n": "bigint"}, {"t": tuple(T)})
    assert refused.value.code == "SESSION_WINDOW"


def test_a_side_below_which_the_clock_stands_is_read_with_it() -> None:
    sql = "with r as (select id from t where ts <= now()) select e.id from e left anti join r on r.id = e.id"
    analysis = analyze(sql, unique_key="id", schemas=SCHEMAS)
    tree = read_tree(analysis, split_clock(sql, SCHEMAS, "UTC"), ())
    assert tree.windows and any(level is Level.COMMAND for _, level, _, _ in analysis.functions)
    found = tree.affected(DuckTables(frozenset({"e"})), ("id",), frozenset({"id"}))
    assert "ANTI JOIN" in found.sql and "ts <= now()" in found.sql
    changed = tree.affected(DuckTables(frozenset({"e", "t"})), ("id",), frozenset({"id"}))
    assert "ANTI JOIN" not in changed.sql


def test_a_side_that_cannot_be_matched_any_more_is_left_out() -> None:
    sql = (
        "select d.id from (select *, row_number() over (partition by id order by x, k, ts) as rn from t) d "
        "left join u on u.k = d.k where d.rn = 1 and u.k is null"
    )
    found = tree_of(sql).affected(DuckTables(frozenset({"t"})), ("id",), frozenset({"id"}))
    assert "JOIN" not in found.sql and "IS NULL" not in found.sql.upper()


def test_a_star_over_using_has_the_order_that_spark_gives_it() -> None:
    def order(sql: str) -> list[str]:
        node = build(sql)
        assert isinstance(node, SelectNode)
        return [column for _, column in expand(node, node.items[0], {"t": tuple(T), "u": ("y", "k"), "e": ("z", "id")})]

    assert order("select * from t join u using (k)") == ["k", "id", "x", "ts", "y"]
    assert order("select * from t right join u using (k)") == ["k", "id", "x", "ts", "y"]
    assert order("select u.* from t join u using (k)") == ["k", "y"]
    assert order("select * from t left semi join u using (k)") == ["k", "id", "x", "ts"]


def test_rows_without_a_partner_are_looked_for_where_their_columns_are_asked_for() -> None:
    sql = "select t.id from t left join u on u.k = t.k join e on e.id = coalesce(u.y, 1)"

    def followed(*changed: str) -> AffectedQuery:
        return tree_of(sql).affected(DuckTables(frozenset(changed)), ("id",), frozenset({"id"}))

    optional, both = followed("u"), followed("t", "u", "e")
    assert optional.anchors == both.anchors == ("id",)
    assert (
        "LEFT SEMI JOIN" in optional.sql and "absent" not in optional.sql
    )  # an order with its customer, and one that had one
    assert (
        "NOT `__mv_absent_1`.absent" in both.sql
    )  # the other table changed as well: each row with its partners, and without
    assert "SEMI" not in followed("t").sql and "absent" not in followed("t").sql
    plain = tree_of("select t.id, u.y from t left join u on u.k = t.k").affected(
        DuckTables(frozenset({"u"})), ("id",), frozenset({"id"})
    )
    assert "SEMI" not in plain.sql  # nothing is asked of u


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select t.id, e.z from t, u right join e on e.id = u.y", "JOIN_KIND"),
        ("with a as (select * from t) select id from (with a as (select id from a) select id from a)", "CTE_NAME"),
        ("select t.id from t full join u using (k)", "FULL_OUTER_JOIN"),
        ("select t.id from u right join t on u.k = t.k join e on e.id = coalesce(u.y, 1)", "NO_JOIN_CONDITION"),
    ],
)
def test_what_is_refused(sql: str, code: str) -> None:
    assert reason(sql, "t", "u", "e") == code


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("with t as (select id from t where k = 1) select id from t", ["t"]),
        ("with a as (select id from b), b as (select id from u) select id from a join b using (id)", ["b", "u"]),
        ("with a as (select id from t), b as (select id from a) select id from b", ["t"]),
        ("select id from (with a as (select id from t) select id from a) q join a using (id)", ["t", "a"]),
    ],
)
def test_a_cte_is_no_table_where_it_is_seen(sql: str, tables: list[str]) -> None:
    assert [ref.name for ref in table_refs(sql)] == tables


def test_what_is_written_for_changes_can_be_parsed() -> None:
    sql = "select t.id, e.z from t left join u on u.k = t.k left join e on e.id = u.y where u.y > 1 or e.z is null"
    for changed in (("t",), ("u",), ("e",), ("t", "u", "e")):
        found = tree_of(sql).affected(DuckTables(frozenset(changed)), ("id",), frozenset({"id", "z"}))
        sqlglot.parse_one(found.sql, dialect="spark")


@pytest.mark.parametrize(
    ("sql", "changed", "joins"),
    [
        ("select t.k as id, count(*) as n from t join u on u.k = t.x group by t.k", "t", 0),
        ("select t.k as id, count(*) as n from u join t on u.k = t.x group by t.k", "t", 0),
        ("select t.k as id, count(*) as n from t join u on u.k = t.x group by t.k", "u", 1),
        # what is asked of it: a column, a condition, a subquery
        ("select t.k as id, u.y, count(*) as n from t join u on u.k = t.x group by t.k, u.y", "t", 1),
        ("select t.k as id, count(*) as n from t join u on u.k = t.x where u.y > 1 group by t.k", "t", 1),
        (
            "select t.k as id, count(*) as n from t join u on u.k = t.x where exists (select 1 from e where e.id = u.y) group by t.k",
            "t",
            1,
        ),
        # the others find each other by way of it
        ("select b.k as id, count(*) as n from t join u on u.k = t.x join u b on b.k = u.y group by b.k", "t", 2),
        ("select t.k as id, count(*) as n from t join u on u.k = t.x join u b on b.k = u.y group by t.k", "t", 0),
        # a table that is no larger than the change
        ("select t.k as id, count(*) as n from t join e on e.id = t.x group by t.k", "t", 1),
        # what an outer join makes of rows without a partner
        ("select t.k as id, e.z, count(*) as n from t join u on u.k = t.x left join e on e.id = t.x group by t.k, e.z", "t", 2),
    ],
)  # fmt: skip
def test_a_large_table_that_only_takes_rows_away_is_not_read(sql: str, changed: str, joins: int) -> None:
    names = [c.name.lower() for c in analyze(sql, schemas=SCHEMAS).columns]
    key = [name for name in names if name != "n"]
    found = tree_of(sql).affected(DuckTables(frozenset({changed})), key, frozenset(names))
    assert found.sql.count("JOIN") == joins, found.sql
    assert sum(found.read.values()) == (joins if changed == "t" else 1) + sql.count("exists")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select q.*, id from t lateral view explode(array(k)) q as c", "STRUCTURE"),
        ("with a as (select id, named_struct('c', k) as z from t) select z.*, id from a", "STRUCTURE"),
        ("with a as (select id, named_struct('c', k) as z from t) select a.z.*, id from a", "STRUCTURE"),
        ("select other.t.*, x as y from (select * from t) t", "STRUCTURE"),
        ("select posexplode(array(k)), id from t", "GENERATOR"),
        ("select explode(map(k, x)), id from t", "GENERATOR"),
        ("select 1 as id, my_agg(x) as c from t", "OWN_FUNCTION"),
        ("with a as (select my_agg(x) + 1 as m from t) select u.k as id, a.m from u cross join a", "OWN_FUNCTION"),
    ],
)
def test_what_is_not_known_to_be_of_the_row_is_refused(sql: str, code: str) -> None:
    with pytest.raises(NotIncremental) as refused:
        tree_of(sql).affected(DuckTables(frozenset({"t"})), ("id",), frozenset({"id"}))
    assert refused.value.code == code


def test_a_function_of_ones_own_beside_a_column_is_no_aggregate() -> None:
    assert anchors("select my_udf(x) as c, id from t") == ("id",)
    assert anchors("select k as id, my_agg(x) as c, count(*) as n from t group by k") == ("id",)
    # of a group it may be the value of all rows, which is nothing to find rows by
    assert reason("select my_agg(x) as id from t group by k") == "NO_ANCHOR"


class FloatTables(DuckTables):
    """`x` is a floating-point number."""

    def types(self, name: str) -> Mapping[str, str]:
        return {**SCHEMAS[name], "x": "double"}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        # Spark groups 0.0 with -0.0, which are two texts, and two rows for a filter on that text
        ("select cast(x as string) as id, x as v, count(*) as n from t group by x", ("v",)),
        ("select cast(x as string) as id, count(*) as n from t group by x", None),
        ("select cast(t.x as string) as id, u.k, count(*) as n from u left join t on t.k = u.k group by t.x, u.k", ("k",)),
        ("select cast(v as string) as id, count(*) as n from (select x as v from t) q group by v", None),
        ("select cast(x as string) as id, sum(k) over (partition by x) as s, k from t", None),
        ("select x as id, count(*) as n from t group by x", ("id",)),
        ("select cast(k as string) as id, max(x) as m from t group by k", ("id",)),
        ("select cast(x as string) as id, k from t", ("id",)),
        # and so on above it
        ("select cast(v as string) as id, n from (select x as v, count(*) as n from t group by x) q", None),
        ("select cast(v as string) as id, n from (select k, x as v, count(*) over (partition by x) as n from t) q", None),
        ("select cast(w as string) as id from (select v as w from (select distinct x as v from t) p) q", None),
        ("select cast(v as string) as id, 1 as n from (select x as v from t union select x from t) q", ("n",)),
        ("select cast(v as string) as id, 1 as n from (select x as v from t union all select x from t) q", ("id",)),
        ("select hash(v) as id, n from (select date_trunc('day', ts) as v, count(*) as n from t group by date_trunc('day', ts)) q", ("id",)),
        ("select hash(v) as id, n from (select k * 1.5 as v, count(*) as n from t group by k * 1.5) q", ("id",)),
        ("select hash(v) as id, n from (select to_date(ts) as v, count(*) as n from t group by to_date(ts)) q", ("id",)),
        ("select cast(v as string) as id, n from (select k / -2 as v, count(*) as n from t group by k / -2) q", None),
    ],
)  # fmt: skip
def test_a_group_of_both_zeros_is_not_found_by_what_an_expression_makes_of_one(
    sql: str, found: tuple[str, ...] | None
) -> None:
    columns = frozenset(c.name.lower() for c in analyze(sql, schemas=SCHEMAS).columns)
    try:
        anchors_found = tree_of(sql).affected(FloatTables(frozenset({"t"})), ("id",), columns).anchors
    except NotIncremental as error:
        assert error.code == "NO_ANCHOR"
        anchors_found = None
    assert anchors_found == found


def test_what_stands_for_two_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column reads two of the query below: asked anew, forty of them would not end."""
    asked: list[str] = []
    made = ColumnTypes._made_of_two

    def counted(self: ColumnTypes, item: Any, column: str) -> bool:
        asked.append(column)
        return made(self, item, column)

    monkeypatch.setattr(ColumnTypes, "_made_of_two", counted)
    chain = ["c0 as (select x, k, count(*) as n from t group by x, k)"]
    chain += [f"c{i} as (select coalesce(x, k) as x, greatest(k, x) as k, n from c{i - 1})" for i in range(1, 40)]
    sql = f"with {', '.join(chain)} select concat(k, 'a', x) as id, n as k from c39"
    try:
        tree_of(sql).affected(FloatTables(frozenset({"t"})), ("id",), frozenset({"id", "k"}))
    except NotIncremental as error:
        assert error.code == "NO_ANCHOR"
    assert len(asked) <= 2 * 40
