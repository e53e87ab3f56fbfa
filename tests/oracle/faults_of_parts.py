"""Faults in how groups are adjusted by the rows of a part below them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from breaking import no_subqueries, without_last
from fault import Fault

from spark_mv.maintenance import changes
from spark_mv.query.delta import affected, below
from spark_mv.query.syntax.select_tree import SelectNode

_COUNTED = "select n, count(*) as c from (select k, count(*) as n from t group by k) q group by n"


def _any_join(function: Any) -> Any:
    def changed(node: Any, names: Any) -> Any:
        return next(s.item for s in node.sources if isinstance(s.item, SelectNode))

    return changed


PARTS: tuple[Fault, ...] = (
    Fault(
        "the part below the groups was as it is",
        changes.SourceTexts,
        "pinned_before",
        lambda _: lambda self, sql: self.pinned(sql),
        _COUNTED,
        "n",
    ),
    Fault(
        "a place of change below the groups is forgotten",
        affected.Affected,
        "focuses",
        without_last,
        "select n, count(*) as c from (select t.k, count(*) as n from t join u on u.k = t.k group by t.k) q group by n",
        "n",
    ),
    Fault(
        "a change in a subquery that an equality ties to its row is forgotten",
        affected.Affected,
        "focuses",
        no_subqueries,
        "select id, x from t where x >= (select max(z) from e where e.k = t.k)",
    ),
    Fault(
        "a part on the optional side of a join is linear",
        below,
        "_item",
        _any_join,
        "select coalesce(q.n, -1) as n, count(*) as c from u left join (select k, count(*) as n from t group by k) q "
        "on q.n = u.k group by coalesce(q.n, -1)",
        "n",
    ),
    Fault(
        "a changed table that is read beside the part does not matter",
        below,
        "reads",
        lambda f: lambda node: Counter(dict.fromkeys(f(node), 1)),
        "select n, count(*) as c from (select k, count(*) as n from t group by k) q where n <= (select count(*) from t where k > 1) group by n",
        "n",
    ),
)
