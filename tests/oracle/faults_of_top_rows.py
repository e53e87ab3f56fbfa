"""Faults in how the first rows of an order are known again."""

from __future__ import annotations

from typing import Any

from breaking import edited
from fault import Fault

from spark_mv.maintenance.strategies import top_rows
from spark_mv.query.delta.top_rows import TopRows

_FIRST = "select id, k, x from t where id is not null order by k, id limit 3"


def _said(*pairs: tuple[str, str]) -> Any:
    """A property with parts of its text changed."""
    return lambda before: property(edited(*pairs)(before.fget))


def _nothing_went(function: Any) -> Any:
    def changed(*args: Any) -> Any:
        went, columns, coming = function(*args)
        return f"SELECT * FROM ({went}) WHERE false", columns, coming

    return changed


TOP_ROWS: tuple[Fault, ...] = (
    Fault("a row beyond the LIMIT is never missed", top_rows, "_doubt", lambda _: lambda top: "SELECT false", _FIRST),
    Fault(
        "rows that went are not weighed against those that came",
        top_rows,
        "_doubt",
        edited((r"count_if\(`__mv_op` = 'I'\) <> count_if\(`__mv_op` = 'D'\)", "false")),
        _FIRST,
    ),
    Fault(
        "a row may come behind the last one that was known",
        top_rows,
        "_doubt",
        edited((r" OR coalesce\(.*?, false\)\)", ")")),
        _FIRST,
    ),
    Fault("the rows that went stay among the first", top_rows, "_of_changed_rows", _nothing_went, _FIRST),
    Fault(
        "DESC and NULLS LAST of an order are forgotten",
        TopRows,
        "order_by",
        _said((r" DESC| NULLS LAST", "")),
        "select id, k, x from t where id is not null order by k desc nulls first, id limit 3",
    ),
    Fault(
        "the first groups are those of changed rows",
        top_rows,
        "rewrite_all",
        lambda f: lambda known, query, doubt: f(known, query.replace("LEFT ANTI JOIN", "LEFT SEMI JOIN"), doubt),
        "select k, count(*) as n from t where k is not null group by k order by n desc, k limit 3",
        "k",
    ),
)
