"""Faults in which draws the key of a row can keep, and in what is said of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breaking import drawn_anew
from fault import Fault, Shows

from spark_mv.maintenance.strategies import incremental_rows
from spark_mv.query.ai_calls import kept_rows
from spark_mv.query.rewrite import draw_lineage, draw_refusals, filter_draws


def _own_name(_: Any) -> Any:
    return lambda place, name, item: name


def _first_item_is_all(function: Any) -> Any:
    """Joins beside the item that draws do not multiply its rows."""

    def changed(select: Any) -> Any:
        return function(select)[:1]

    return changed


DRAWS: tuple[Fault, ...] = (
    Fault(
        "kept values are drawn anew",
        incremental_rows,
        "merge_rows",
        drawn_anew,
        "select id, x, rand() as dice from t",
    ),
    Fault(
        "a draw that comes in through a join is the row's own",
        draw_lineage,
        "key_column",
        _own_name,
        "with p as (select k, rand() as dice from u) select a.id, p.dice from t a join p on p.k = a.k where p.dice < 0.9",
        shows=Shows.DRAWS,
    ),
    Fault(
        "every drawn column is drawn per row",
        filter_draws,
        "drawn_per_row",
        lambda _: lambda *args: True,
        "select a.id from t a cross join (select rand() as dice) p where p.dice < 2",
        shows=Shows.DRAWS,
    ),
    Fault(
        "what a join reads is drawn by its first item",
        draw_lineage,
        "from_items",
        _first_item_is_all,
        "with p as (select k as pk, rand() as dice from u) select p.dice, a.id from p join t a on p.pk = a.k where dice < 2",
        shows=Shows.DRAWS,
    ),
    Fault(
        "whatever a subquery makes of draws is drawn per row",
        draw_lineage,
        "_made_per_row",
        lambda _: lambda *args: True,
        "select id from (select id, max(rand()) over (partition by k) as dice from t) q where dice < 2",
        shows=Shows.DRAWS,
    ),
    Fault(
        "nothing below draws",
        draw_lineage,
        "_any_draw",
        lambda _: lambda place, draws: False,
        "select id from (select a.id, p.dice from t a join (select k, rand() as dice from u) p on p.k = a.k) q where dice < 2",
        shows=Shows.DRAWS,
    ),
    Fault(
        "a refusal does not know its place",
        draw_refusals,
        "_place",
        lambda _: lambda cause, written: (1, 1),
        "select id, v from t lateral view explode(sequence(1, 1 + cast(rand() * 2 as int))) l as v",
        "id, v",
        Shows.PLACE,
    ),
    Fault(
        "a refusal names the place in another text",
        kept_rows,
        "unkept",
        lambda f: lambda split, written: f(replace(split, column=split.column + 1), written),
        "select k, count(*) as n from t where k is not null and exists (select 1 from u where u.k = t.k and rand() < 0.5) group by k",
        "k",
        Shows.PLACE,
    ),
)
