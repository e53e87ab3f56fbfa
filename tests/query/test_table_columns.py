"""Columns called by schema and table lose that where a query may stand in the table's place, and only where they mean the same then."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.model_tree import model_tree
from spark_mv.query.delta.restrict import NotIncremental
from spark_mv.query.rewrite.inline_views import View, inline_views
from spark_mv.query.syntax.table_columns import by_table_alone
from spark_mv.query.syntax.written_out import written_out

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("select `c`.`s`.`t`.`id`, s.t.* from c.s.t", "select         `t`.`id`,   t.* from c.s.t"),
        ("select s.t.id from s.t group by s.t.id having max(s.t.x) > 1", "select   t.id from s.t group by   t.id having max(  t.x) > 1"),
        ("select 1 from s.t where exists (select 1 from s.u where s.u.k = s.t.k)", "select 1 from s.t where exists (select 1 from s.u where   u.k =   t.k)"),
        ("select s.t.id from (s.t join u using (id))", "select   t.id from (s.t join u using (id))"),
        # it would be the inner table's
        ("select 1 from s.t where exists (select 1 from x.t where x.t.id = s.t.id)", "select 1 from s.t where exists (select 1 from x.t where   t.id = s.t.id)"),
        ("select s.\n t.id from s.t", "select   \n t.id from s.t"),
        ("select filter(arr, t -> t.x > s.t.id) from s.t", None),
        ("select s.t.id from s.t, x.t", None),
        ("select s.a.b from s.t s", None),
        ("select t.a.b from s.t", None),
        ("select s.t.id frm", None),
    ],
)  # fmt: skip
def test_what_stands_before_the_table(sql: str, wanted: str | None) -> None:
    assert by_table_alone(sql) == (wanted or sql)


SCHEMAS = {"s.t": {"id": "int", "k": "int"}, "x.t": {"id": "int", "k": "int"}}


def _tree(sql: str) -> None:
    model_tree(analyze(written_out(sql), unique_key="id", schemas=SCHEMAS, model="m"), SCHEMAS, "UTC")


def test_a_query_with_such_columns_is_followed() -> None:
    _tree("select s.t.id, s.t.k from s.t where s.t.k > 0")


def test_what_is_left_of_them_is_not() -> None:
    with pytest.raises(NotIncremental, match="called by schema and table"):
        _tree("select id, k from s.t where exists (select 1 from x.t where x.t.id = s.t.id)")


def test_a_view_in_its_own_place() -> None:
    views = {"s.v": View("select id, current_date() as d from s.t")}
    text = inline_views(written_out("select s.v.id from s.v"), views)
    assert text == "select   v.id from (select id, current_date() as d from s.t) AS `v`"
