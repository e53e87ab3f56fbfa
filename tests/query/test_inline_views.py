from __future__ import annotations

import doctest

from spark_mv.query.rewrite import inline_views as module
from spark_mv.query.rewrite.inline_views import View, inline_views, qualify_tables


def test_doctests() -> None:
    assert doctest.testmod(module).failed == 0


def test_keeps_aliases_comments_and_quotes() -> None:
    sql = "select a.d -- s.v\nfrom `s`.`v` as a join S.V b on a.d = b.d"
    view = {"s.v": View("select current_date() as x from s.t", ("d",))}
    inner = "(SELECT * FROM (select current_date() as x from s.t) AS __mv_v(`d`))"
    assert inline_views(sql, view) == f"select a.d -- s.v\nfrom {inner} as a join {inner} b on a.d = b.d"


def test_views_on_views_and_ctes_of_the_same_name() -> None:
    views = {"s.v": View("select d from s.w", ("d",)), "s.w": View("select now() as d", ("d",))}
    text = inline_views("with w as (select 1 as d) select * from s.v, w", views)
    assert text.count("now()") == 1 and text.endswith(", w")
    assert qualify_tables("select * from t join (select * from `u v`) x", "c.d") == (
        "select * from c.d.t join (select * from c.d.`u v`) x"
    )
