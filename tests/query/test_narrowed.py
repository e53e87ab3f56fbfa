"""Which joined items of a restricted query are restricted too, and which are not. That the rows are the same: test_incremental.py."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.narrowed import KnownColumns, narrowed
from spark_mv.query.delta.restrict import read_tree
from spark_mv.query.syntax.source_text import apply_edits
from spark_mv.query.syntax.written_out import written_out

pytestmark = pytest.mark.unit

SCHEMAS = {
    "c": {"id": "int", "name": "string"},
    "o": {"oid": "int", "cid": "int", "x": "struct<cid:int>"},
    "s.p": {"pid": "int", "cid": "int"},
}
GROUPS = "(select cid, count(*) as n from o group by cid) g"


def texts(sql: str, key: str = "id", comparable: bool = True, type_: str = "int") -> str:
    analysis = analyze(written_out(sql), schemas=SCHEMAS)
    tree = read_tree(analysis, None, ())
    known = KnownColumns({t: tuple(columns) for t, columns in SCHEMAS.items()}, {key: type_}, comparable)
    return apply_edits(sql, narrowed(tree.node, "affected", {key: "__mv_a0"}, known))


def narrows(sql: str, **more: str) -> int:
    """How many items are restricted."""
    return texts(sql, **more).count("affected")  # type: ignore[arg-type]


def test_the_text() -> None:
    assert texts(
        "with g as (select cid, count(*) as n from o group by cid) select c.id, n from c left join g on cid = c.id"
    ) == (
        "with g as (select cid, count(*) as n from o group by cid) select c.id, n from c left join "
        "(SELECT * FROM g AS `__mv_i` WHERE EXISTS (SELECT 1 FROM affected AS `__mv_k` WHERE CAST(`__mv_k`.`__mv_a0` AS int) = "
        "`__mv_i`.`cid`)) AS `g` on cid = c.id"
    )
    assert texts(f"select c.id, n from c join {GROUPS} on g.cid = c.id") == (
        "select c.id, n from c join (SELECT * FROM (select cid, count(*) as n from o group by cid\n) AS `__mv_i` WHERE EXISTS "
        "(SELECT 1 FROM affected AS `__mv_k` WHERE CAST(`__mv_k`.`__mv_a0` AS int) = `__mv_i`.`cid`)) g on g.cid = c.id"
    )


@pytest.mark.parametrize(
    ("sql", "times"),
    [
        (f"select c.id, n from c left join {GROUPS} on g.cid = c.id", 1),
        (f"select c.id, n from {GROUPS} join c on g.cid = c.id", 1),
        (f"select c.id, n from c, {GROUPS} where c.id = g.cid", 1),
        ("select c.id, oid from c left join o on o.cid = c.id left join s.p on p.cid = c.id", 2),
        ("with a as (select c.id, oid from c left join o on cid = id), b as (select * from a) select id, oid from b", 1),
        ("select id, name from c left anti join o on cid = id", 1),
        # what a LEFT JOIN passes on without a partner is a row, too
        (f"select g.cid as id, n from c left join {GROUPS} on g.cid = c.id", 0),
        (f"select c.id, n from {GROUPS} right join c on g.cid = c.id", 0),
        (f"select c.id, n from c full join {GROUPS} on g.cid = c.id", 0),
        (f"select c.id, n from c left join {GROUPS} on g.cid = c.id right join s.p on p.cid = c.id", 0),
        # no equality of two columns
        (f"select c.id, n from c left join {GROUPS} on g.cid = c.id + 1", 0),
        (f"select c.id, n from c left join {GROUPS} on g.cid = c.id or g.n = 1", 0),
        (f"select c.id, n from c left join {GROUPS} on g.cid >= c.id", 0),
        ("select c.id, oid from c left join o on o.x.cid = c.id", 0),
        # by way of a third one
        ("select c.id, oid from c join s.p on p.cid = c.id left join o on o.cid = p.cid", 1),
        # a key that is no column of one item
        (f"select c.id + 1 as id, n from c left join {GROUPS} on g.cid = c.id", 0),
        # an item that is read twice is restricted where it stands, and not within
        (
            "with a as (select c.id, oid from c left join o on cid = id) select l.id, r.oid from a l join a r on r.id = l.id",
            1,
        ),
        # the table is called by its path
        ("select c.id, s.p.pid from c left join s.p on s.p.cid = c.id", 1),
        ("select c.id, s.p.* from c left join s.p on p.cid = c.id", 1),
        ("select c.id, q.pid from c left join s.p q on q.cid = c.id", 1),
    ],
)  # fmt: skip
def test_items(sql: str, times: int) -> None:
    assert narrows(sql) == times, texts(sql)


def test_types() -> None:
    sql = f"select c.id, n from c left join {GROUPS} on g.cid = c.id"
    assert texts(sql, comparable=False) == sql
    assert texts(sql, key="n") == sql
    assert texts(sql, type_="struct<a:int>") == sql
    assert texts(sql, type_="") == sql


def test_windows_are_restricted_by_what_they_are_partitioned_by() -> None:
    sql = "select c.id, name, sum(oid) over (partition by {}) as s from c left join o on cid = id"
    assert narrows(sql.format("c.id")) == 1
    assert narrows(sql.format("name")) == 0
