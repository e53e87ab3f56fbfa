"""Which columns of a table can change what a query gives."""

from __future__ import annotations

import pytest

from spark_mv.query.delta.read_columns import read_columns
from spark_mv.query.syntax.tree_builder import build

pytestmark = pytest.mark.unit

TABLES = {"t": ("id", "one_x", "two_x", "c_x"), "u": ("uid", "p", "q")}
ALL = "id one_x two_x c_x"


@pytest.mark.parametrize(
    ("sql", "of_t"),
    [
        ("select id, c_x from t", "id c_x"),
        ("select `ID`, C_X from t", "id c_x"),
        ("select id from t where c_x > 1 order by id", "id c_x"),
        ("select id from t join u using (c_x)", "id c_x"),
        ("with s as (select * from t) select id, c_x from s", "id c_x"),
        ("with s as (with r as (select * from t) select * from r) select s.id from s", "id"),
        ("with s as (select *, row_number() over (partition by c_x order by id) as r from t) select id from s where r = 1", "id c_x"),
        ("select id from t where id in (select uid from u where c_x = p)", "id c_x"),
        ("select id, count(*) as n from t group by id", "id"),
        # a star that reaches the result, or a place where all columns count
        ("select * from t", ALL),
        ("select t.*, p from t join u on id = uid", ALL),
        ("with s as (select * from t) select * from s", ALL),
        ("select distinct * from t", ALL),
        ("with s as (select distinct * from t) select id from s", ALL),
        ("with s as (select *, count(*) as n from t group by all) select id, n from s", ALL),
        ("with s as (select * from t union all select *, 1 from u) select id from s", ALL),
        ("select uid from u where uid in (select * from t)", ALL),
        ("select uid from u where exists (select * from t)", ALL),
        ("select id, hash(*) as h from t", ALL),
        ("select id, hash(t.*) as h from t", ALL),
        ("select id, struct(*) as h from t", ALL),
        ("select id, count(t.*) as n from t group by id", ALL),
        ("select id, n from (select * from t) as s(id, n, x, y)", ALL),
        # names that are not written
        ("select identifier('one_' || 'x') from t", ALL),
        ("select identifier ('id') from t", ALL),
        ("select ${x} from t", ALL),
        ("select `(one_)?+.+` from t", ALL),
        ("select `id`, `a b`.`c-d` from t as `a b`", "id"),
        # only rows count
        ("select 7", ALL),
    ],
)  # fmt: skip
def test_columns_of_a_query(sql: str, of_t: str) -> None:
    assert " ".join(read_columns(build(sql), TABLES)["t"]) == of_t


def test_texts_beside_the_query_and_names_that_cannot_be_looked_for() -> None:
    tables = {"t": ("id", "a`b", "straße", "c_x", "d_x")}
    assert read_columns(build("select id from t"), tables, ["min(C_X)"]) == {"t": ("id", "a`b", "straße", "c_x")}
