"""ORDER BY … LIMIT said of output columns, as Spark resolves its names."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.restrict import NotIncremental, read_tree

pytestmark = pytest.mark.unit

SCHEMAS = {"t": {"id": "bigint", "k": "int", "x": "int", "s": "struct<a:int,b:int>"}, "u": {"id": "bigint", "y": "int"}}
COLUMNS = {name: tuple(columns) for name, columns in SCHEMAS.items()}


def order_of(sql: str) -> tuple[str, list[str]]:
    """The ORDER BY over output columns, and the columns that stand there as they are."""
    tree = read_tree(analyze(sql, unique_key=("id",), schemas=SCHEMAS), None, ())
    assert tree.limited is not None, sql
    assert len(tree.sql) == len(sql) and "limit" not in tree.sql
    top = tree.limited.rows(tree.node, COLUMNS)
    return top.order_by, sorted(top.plain)


@pytest.mark.parametrize(
    ("sql", "order", "plain"),
    [
        ("select id, x from t order by x desc, id limit 3", "`x` DESC NULLS LAST, `id` ASC NULLS FIRST", ["id", "x"]),
        ("select id, k as x, x as k from t order by x nulls last, 1 limit 3", "`x` ASC NULLS LAST, `id` ASC NULLS FIRST", ["id", "x"]),
        ("select id, k as x from t order by t.k, t.id limit 3", "`x` ASC NULLS FIRST, `id` ASC NULLS FIRST", ["id", "x"]),
        ("select id, k as shown from t order by k, id limit 3", "`shown` ASC NULLS FIRST, `id` ASC NULLS FIRST", ["id", "shown"]),
        ("select * from u order by y desc nulls first, id limit 3", "`y` DESC NULLS FIRST, `id` ASC NULLS FIRST", ["id", "y"]),
        ("select id, x from t order by abs(x), id limit 3", "(abs(x)) ASC NULLS FIRST, `id` ASC NULLS FIRST", ["id"]),
        (
            "select k as id, sum(x) as total from t group by k order by sum(x) desc, id limit 3",
            "`total` DESC NULLS LAST, `id` ASC NULLS FIRST",
            ["id", "total"],
        ),
        ("select id, s.a as a from t order by t.s.a, id limit 3", None, []),
        ("select id, s.a as a from t order by s.b, id limit 3", None, []),
        ("select id, coalesce(x, 0) as x from t order by t.x, id limit 3", None, []),
        ("select id, -x as x from t order by coalesce(x, k), id limit 3", None, []),
        ("select id from t order by rand(1), id limit 3", None, []),
        ("select id from t order by (select max(y) from u), id limit 3", None, []),
    ],
)  # fmt: skip
def test_what_is_ordered_by(sql: str, order: str | None, plain: list[str]) -> None:
    if order is None:
        with pytest.raises(NotIncremental) as caught:
            order_of(sql)
        assert caught.value.code in ("ORDER_NOT_SHOWN", "DRAWN_ROWS")
        return
    assert order_of(sql) == (order, plain)


@pytest.mark.parametrize(
    "sql",
    [
        "select id from t limit 3",
        "select id from t order by id limit 3 offset 1",
        "select id from t order by id limit 1 + 1",
        "select id from t sort by id limit 3",
        "select id from t union all select id from u order by id limit 3",
        "select id from (select id from t order by id limit 3) q",
        "select id from t where x = (select y from u order by y, id limit 1)",
        "select id from t qualify row_number() over (partition by k order by x) = 1 order by id limit 3",
    ],
)
def test_other_limits_are_refused(sql: str) -> None:
    with pytest.raises(NotIncremental) as caught:
        read_tree(analyze(sql, unique_key=("id",), schemas=SCHEMAS), None, ())
    assert caught.value.code == "LIMIT"
