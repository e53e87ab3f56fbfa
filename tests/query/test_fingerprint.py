"""Fingerprints: layout and internal names do not change them, changed logic does."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

BASE = """
with c as (select id, upper(name) as n, rand() as r from t where v > 1)
select id, n as name, floor(r * 10) as bucket from c where id > 3
"""
SAME = {
    "white space and comments": """
        with c as ( -- first
          select id, upper( name ) as n,
                 rand() /* the draw */ as r
          from t where v > 1 )
        select id, n as name, floor(r*10) as bucket from c where id > 3""",
    "keyword and function case": BASE.replace("select", "SELECT").replace("upper", "UPPER").replace("rand", "Rand"),
    "names of a CTE and of its columns": """
        with other as (select id, upper(name) as n2, rand() as draw from t where v > 1)
        select id, n2 as name, floor(draw * 10) as bucket from other where id > 3""",
    "an alias": """
        with c as (select a.id, upper(a.name) as n, rand() as r from t as a where a.v > 1)
        select x.id, x.n as name, floor(x.r * 10) as bucket from c as x where x.id > 3""",
    "a subquery instead of the CTE": """
        select id, n as name, floor(r * 10) as bucket
        from (select id, upper(name) as n, rand() as r from t where v > 1) where id > 3""",
    "parentheses": BASE.replace("id > 3", "(id > 3)").replace("floor(r * 10)", "(floor((r * 10)))"),
    "an unread CTE": BASE.replace("select id, n", ", unused as (select 1 as one) select id, n"),
    "an ORDER BY": BASE + " order by name",
}


@pytest.mark.parametrize("sql", SAME.values(), ids=SAME.keys())
def test_same_logic(sql: str) -> None:
    base, other = analyze(BASE, unique_key="id"), analyze(sql, unique_key="id")
    assert not other.errors
    assert other.fingerprint == base.fingerprint
    assert [c.fingerprint for c in other.columns] == [c.fingerprint for c in base.columns]


@pytest.mark.parametrize(
    "call", ["now()", "hash(uuid())", "my_udf(name)", "zeroifnull(rand())", "ai_gen(name)", "pmod(v, 3)"]
)
def test_the_case_of_a_function_is_none_of_its_logic(call: str) -> None:
    one, other = (analyze(f"select id, {text} as v from t", unique_key="id") for text in (call, call.upper()))
    assert one.fingerprint == other.fingerprint
    assert [c.fingerprint for c in one.columns] == [c.fingerprint for c in other.columns]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(select id, x from t order by x, id) limit 2", "(select id, x from t order by x desc, id) limit 2"),
        ("((select id, x from t order by x, id)) limit 2", "((select id, x from t order by x desc, id)) limit 2"),
        ("(select id, x from t order by x, id) offset 2", "(select id, x from t order by id) offset 2"),
        ("select id from t, u right join e on e.k = u.k", "select id from t cross join u right join e on e.k = u.k"),
        ("select id from t, u full join e on e.k = u.k", "select id from t cross join u full join e on e.k = u.k"),
        (
            "select id, to_json((q.a, q.b)) as j from (select id, x as a, k as b from t) q",
            "select id, to_json((q.c, q.d)) as j from (select id, x as c, k as d from t) q",
        ),
    ],
)
def test_other_logic_in_like_words(one: str, other: str) -> None:
    tables = {"t": {"id": "int", "x": "int", "k": "int"}, "u": {"k": "int"}, "e": {"k": "int"}}
    prints = [analyze(sql, unique_key="id", schemas=tables).fingerprint for sql in (one, other)]
    assert prints[0] != prints[1]


def test_keys_of_a_map_differ_by_their_case() -> None:
    """`m.a` is `m['a']`, if `m` is a map, and not `m['A']`."""
    one, other = (analyze(f"select id, m.{key} as v, rand() * m.{key} as r from t", unique_key="id") for key in "aA")
    assert one.fingerprint != other.fingerprint
    assert all(a.fingerprint != b.fingerprint for a, b in zip(one.columns[1:], other.columns[1:], strict=True))


TWO_WORDS = {
    "GROUP BY": "select k as id, count(*) as n from t group~by k",
    "ORDER BY and PARTITION BY": "select id, row_number() over (partition~by k order~by v, id) as r from t",
    "joins": "select t.id, t.k from t left~outer~join u using~(id) where t.k is~not~null and t.v not~in (1, 2)",
    "set operations": "select id, k from t union~all select id, k from u",
    "LATERAL VIEW": "select id, e as k from t lateral~view~outer explode(array(1)) v as e",
    "GROUPING SETS": "select k as id, count(*) as n from t group~by grouping~sets~((k), ())",
}


@pytest.mark.parametrize("text", TWO_WORDS.values(), ids=TWO_WORDS.keys())
@pytest.mark.parametrize("between", [" /* a comment */ ", " -- a comment\n"])
def test_comments_between_words_are_blanks(text: str, between: str) -> None:
    base, other = (analyze(text.replace("~", blank), unique_key="id") for blank in (" ", between))
    assert not base.errors and not other.errors
    assert other.fingerprint == base.fingerprint


OTHER = {
    "a filter": (BASE.replace("id > 3", "id > 4"), ()),
    "an inner filter": (BASE.replace("v > 1", "v > 2"), ()),
    "a column's expression": (BASE.replace("upper", "lower"), ("name",)),
    "a constant": (BASE.replace("* 10", "* 100"), ("bucket",)),
    "a seed": (BASE.replace("rand()", "rand(1)"), ("bucket",)),
    "a source table": (BASE.replace("from t", "from u"), ("id", "name")),
    "one more column": (BASE.replace("select id, n", "select v, id, n").replace("select id, u", "select v, id, u"), ()),
    "an output name": (BASE.replace("as bucket", "as b"), ()),
    "distinct": (BASE.replace("select id, n", "select distinct id, n"), ()),
    "another kind of shift": (BASE.replace("id > 3", "id >>> 1 > 3"), ()),
}


@pytest.mark.parametrize(("sql", "changed"), OTHER.values(), ids=OTHER.keys())
def test_changed_logic(sql: str, changed: tuple[str, ...]) -> None:
    base, other = analyze(BASE, unique_key="id"), analyze(sql, unique_key="id")
    assert other.fingerprint != base.fingerprint
    for column in base.columns:
        now = other.column(column.name)
        if now is not None and column.name != "bucket":
            assert (now.fingerprint != column.fingerprint) == (column.name in changed), column.name
        if column.name == "bucket" and "bucket" in changed:
            assert now is not None and now.fingerprint != column.fingerprint


def test_shifts_differ() -> None:
    assert analyze("select a >> 1 as x from t").fingerprint != analyze("select a >>> 1 as x from t").fingerprint


def test_self_join_sides_differ() -> None:
    """The two occurrences of one table are different rows."""
    first = analyze("select a.v as x from t as a join t as b on a.id = b.parent").column("x")
    second = analyze("select b.v as x from t as a join t as b on a.id = b.parent").column("x")
    assert first and second and first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("bare", "of_left"),
    [
        ("select eid, w from t {join} where id > 1", "select eid, w from t {join} where t.id > 1"),
        ("select coalesce(id, 0) as k, w from t {join}", "select coalesce(t.id, 0) as k, w from t {join}"),
        (
            "select eid, row_number() over (partition by id order by w) as n from t {join}",
            "select eid, row_number() over (partition by t.id order by w) as n from t {join}",
        ),
        (
            "select eid, max(w) as m from t {join} group by eid, id having max(id) > 1",
            "select eid, max(w) as m from t {join} group by eid, id having max(t.id) > 1",
        ),
        ("select x.id from (select id from t {join}) x", "select x.id from (select t.id from t {join}) x"),
        ("with a as (select id from t {join}) select id from a", "with a as (select t.id from t {join}) select id from a"),
        ("select c.v from t {join} full join t c on c.id = id", "select c.v from t {join} full join t c on c.id = t.id"),
        ("select * from t {join}", "select t.*, e.eid, e.w from t {join}"),
    ],
)  # fmt: skip
def test_a_column_of_using_is_the_left_one_but_of_right_and_full_joins(bare: str, of_left: str) -> None:
    schemas = {"t": {"id": "int", "v": "int"}, "e": {"id": "int", "eid": "int", "w": "int"}}

    def print_(sql: str, join: str) -> str:
        return analyze(sql.format(join=join), schemas=schemas).fingerprint

    for outer in ("full join e using (id)", "right join e using (id)", "natural full join e", "natural right join e"):
        assert print_(bare, outer) != print_(of_left, outer), outer
    if "*" not in bare:
        assert print_(bare, "left join e using (id)") == print_(of_left, "left join e using (id)")


def test_column_is_that_of_its_own_expression() -> None:
    """A kept value must survive a change of another column, a filter, a join and a set operation's other side."""
    base = analyze("select id, uuid() as u from t").column("u")
    for sql in (
        "select id, uuid() as u, v from t",
        "select id, uuid() as u from t where v > 1",
        "select t.id, uuid() as u from t join s on t.id = s.id",
        "select id, u from (select id, v, uuid() as u from t)",
    ):
        now = analyze(sql).column("u")
        assert base and now and now.fingerprint == base.fingerprint, sql


def test_a_schema_changes_no_fingerprint() -> None:
    sql = "select t.id, upper(name) as n from t"
    known = analyze(sql, schemas={"t": {"id": "int", "name": "string"}})
    assert known.fingerprint == analyze(sql).fingerprint
