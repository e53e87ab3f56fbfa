"""Whatever stands around it in FROM, a table that a query reads is among its sources: what is not there never changes."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

SCHEMAS = {"t": {"id": "bigint", "k": "int", "x": "int"}, "u": {"id": "bigint", "y": "int"}}
PIVOT = "pivot (count(*) for k in (1, 2))"
UNPIVOT = "unpivot (v for n in (k, x))"


@pytest.mark.parametrize(
    "sql",
    [
        f"select * from t {PIVOT}",
        f"select * from t {UNPIVOT}",
        f"select * from (select id, k from t) {PIVOT}",
        f"select p.* from (select id, k from t) {PIVOT} p",
        f"with c as (select id, k from t) select * from c {PIVOT}",
        f"select * from (select * from t {UNPIVOT}) {PIVOT.replace('k in', 'v in')}",
        f"select u.id from u join (select id, k from t) {PIVOT} p on p.id = u.id",
        f"select id from u where id in (select id from t {PIVOT})",
        f"select id from u union all select id from t {PIVOT}",
        "select * from (t)",
        "select * from (t join u using (id))",
        "select * from t tablesample (3 rows)",
        "select id, e from t lateral view explode(array(k, x)) v as e",
        "select l.k from u, lateral (select k from t where t.id = u.id) l",
        "select id, (select max(k) from t) as m from u",
        "table t",
        "from t |> select id",
    ],
)
def test_tables(sql: str) -> None:
    found = analyze(sql, schemas=SCHEMAS, model="m")
    wanted = {
        name for name in SCHEMAS if f" {name} " in f" {sql.replace('(', ' ').replace(')', ' ').replace(',', ' ')} "
    }
    assert {table.name for table in found.tables} == wanted


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        (f"select * from (select id, k from t limit 3) {PIVOT}", "limit"),
        (f"select * from (select id, k, x from t tablesample (3 rows)) {UNPIVOT}", "sample"),
        (f"select * from (select distinct id, k from t) {PIVOT}", "distinct"),
    ],
)
def test_the_shape_below_a_pivot_is_the_querys(sql: str, shown: str) -> None:
    assert getattr(analyze(sql, schemas=SCHEMAS, model="m").shape, shown)


@pytest.mark.parametrize(
    ("sql", "moving"),
    [
        ("select id from t version as of 'dev'", ["t@dev()"]),
        ("select id from t for system_version as of 'dev' as d", ["t@dev()"]),
        ("select u.id from u join db.t version as of 'a tag' d on d.id = u.id", ["db.t@a tag()"]),
        ("with c as (select id from t version as of 'dev') select id from c union all select id from t", ["t@dev()"]),
        ("select id from u where id in (select id from t version as of 'dev')", ["t@dev()"]),
        ("from t version as of 'dev' |> select id", ["t@dev()"]),
        ("select id from t version as of 3", []),
        ("select id from t version as of '3'", []),
        ("select id from t timestamp as of '2026-01-01'", []),
    ],
)
def test_a_branch_or_tag_moves_by_itself(sql: str, moving: list[str]) -> None:
    found = analyze(sql, schemas=SCHEMAS, model="m", unique_key="id")
    assert not found.errors
    assert [table.name for table in found.tables if table.name.endswith("()")] == moving
