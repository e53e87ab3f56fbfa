"""Faults in how a predicate on the clock is said of the rows of one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fault import Fault

from spark_mv.query.delta import in_table
from spark_mv.query.syntax.select_tree import quoted


def _of_the_name(function: Any) -> Any:
    def changed(place: Any, select: Any, clock: Any, unstable: Any) -> Any:
        found = function(place, select, clock, unstable)
        return found and replace(found, text=f"{quoted(found.alias)}.{quoted(place[1])}")

    return changed


CLOCKS: tuple[Fault, ...] = (
    Fault(
        "what an expression gives is taken for the table's column of that name",
        in_table,
        "_column",
        _of_the_name,
        "select k, count(*) as n from (select k, ts + interval 15 hours as ts from t) as q "
        "where ts > now() - interval 10 hours group by k",
        "k",
    ),
)
