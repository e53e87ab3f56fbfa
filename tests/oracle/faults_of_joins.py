"""Faults in what is believed after joins, in what conditions need, and in what windows share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from breaking import always, any_window, kinds
from fault import Fault
from sqlglot import exp

from spark_mv.query.delta import affected, anchors, joined, narrowed, strict
from spark_mv.query.delta.joined import Joined
from spark_mv.query.syntax.select_tree import SelectNode


def _anything_proves(function: Any) -> Any:
    def changed(self: Joined, proven: Any) -> None:
        self.covered.clear()

    return changed


def _nothing_lost(function: Any) -> Any:
    return lambda *args: replace(function(*args), whole=True)


def _uncovered(inside_only: bool) -> Callable[[Any], Any]:
    """The optional side of a LEFT JOIN is believed: where the change is in it, or where it is not."""

    def make(function: Any) -> Any:
        def changed(self: Joined, alias: str, item: Any, kind: str, on: Any, *where: Any) -> None:
            function(self, alias, item, kind, on, *where)
            if kind == "LEFT" and where[0] is inside_only:
                self.covered.discard(alias.lower())

        return changed

    return make


def _exact_items(kind: str) -> Callable[[Any], Any]:
    """Joins of the kind take the rows before and after for those that there are."""

    def make(function: Any) -> Any:
        def changed(self: Joined, alias: str, item: Any, given: str, on: Any, *where: Any) -> None:
            if given == kind:
                item = replace(item, exact=True)
            function(self, alias, item, given, on, *where)

        return changed

    return make


def _right_join_believed(function: Any) -> Any:
    def changed(self: Joined, alias: str, item: Any, kind: str, on: Any, *where: Any) -> None:
        before = set(self.covered)
        function(self, alias, item, kind, on, *where)
        if kind == "RIGHT":
            self.covered = before

    return changed


def _needs(node_type: type[exp.Expr], says: Callable[[Any, Any], frozenset[str]]) -> Callable[[Any], Any]:
    """Another answer for conditions of this type."""

    def make(function: Any) -> Any:
        def changed(node: exp.Expr, scope: Any) -> frozenset[str]:
            return says(node.unnest(), scope) if isinstance(node.unnest(), node_type) else function(node, scope)

        return changed

    return make


def _every_column(node: exp.Expr, scope: Any) -> frozenset[str]:
    places = [scope.resolve(c) for c in node.find_all(exp.Column)]
    return frozenset(p[0] for p in places if p is not None)


def _columns_of_parts(function: Any) -> Any:
    """PARTITION BY an expression is taken for one by its columns."""

    def changed(node: SelectNode, scope: Any) -> Any:
        function(node, scope)
        parts = [p for w in node.windows for p in w.args.get("partition_by") or []]
        return {scope.resolve(c) for p in parts for c in p.find_all(exp.Column)}, []

    return changed


def _first_named(function: Any) -> Any:
    """OVER w has the partitions of the first window of the WINDOW clause."""

    def changed(node: SelectNode, scope: Any) -> Any:
        named = node.tree.args.get("windows") or []
        by = [p for p in named[0].args["partition_by"] if isinstance(p, exp.Column)] if named else []
        return ({scope.resolve(p) for p in by}, by) if by else function(node, scope)

    return changed


def _once(function: Any) -> Any:
    """A row that has a partner stands with it, and not without it beside."""

    def changed(self: Joined, *args: Any) -> None:
        function(self, *args)
        self.text[:] = [text.replace("VALUES (false), (true)", "VALUES (false)") for text in self.text]

    return changed


_GROUPS_OF_PARTNERS = (
    "select a.id, s.n from t a left join (select coalesce(b.y, 1) as g, count(*) as n from t v left join u b on b.k = v.k "
    "group by coalesce(b.y, 1)) s on s.g = a.k"
)
_LEFT = "select a.id, a.x, b.w from t a left join u b on b.k = a.k where "

JOINS: tuple[Fault, ...] = (
    Fault(
        "any condition proves a partner",
        Joined,
        "prove",
        _anything_proves,
        "select a.id, c.region from t a left join u b on b.k = a.k left join r c on c.y = b.y where a.x > 0 and c.region is null",
    ),
    Fault(
        "a join whose condition lost something is whole",
        joined,
        "kept_on",
        _nothing_lost,
        "select a.id from t a left join u b on b.k = a.k left join r c on c.y = b.y where c.region is null",
    ),
    Fault("a side that changed is believed", Joined, "add", _uncovered(True), _LEFT + "b.y is null"),
    Fault(
        "rows whose partner came or went are looked for with it alone",
        affected,
        "united",
        lambda function: lambda names, parts: function(names, parts[:1]),
        _GROUPS_OF_PARTNERS,
    ),
    Fault(
        "rows are looked for with those partners alone that another item may have",
        Joined,
        "add",
        _once,
        _GROUPS_OF_PARTNERS.replace("join u b", "join (select k, 2 as y from u group by k having count(*) > 1) b"),
    ),
    Fault(
        "a side that cannot be sure is believed",
        Joined,
        "add",
        _uncovered(False),
        "select a.id, c.flag from t a left join u b on b.k = a.k left join r c on c.y = b.y where c.flag is null",
    ),
    Fault(
        "an anti-join with a side that lost its clock takes rows away",
        Joined,
        "add",
        _exact_items("LEFT ANTI"),
        "select a.k, a.w from u a left anti join (select id, x from t where ts <= now()) b on b.id = a.k",
        "k",
    ),
    Fault(
        "a left join with a side that lost its clock is exact",
        Joined,
        "add",
        _exact_items("LEFT"),
        "select a.k, a.w from u a left join (select id, x from t where ts <= now()) b on b.id = a.k where b.id is null",
        "k",
    ),
    Fault(
        "what a right join keeps is believed of the other side",
        Joined,
        "add",
        _right_join_believed,
        "select b.k as id, coalesce(a.id, -1) as aid from t a right join u b on b.k = a.k where a.s is null",
        "id, aid",
    ),
    Fault(
        "a right join as an inner join",
        Joined,
        "add",
        kinds(lambda kind, inside: ("INNER" if kind == "RIGHT" else kind, inside)),
        "select b.k as id, coalesce(a.id, -1) as aid, a.x from t a right join u b on b.k = a.k",
        "id, aid",
    ),
    Fault(
        "an OR needs what one of its sides needs",
        affected,
        "needed",
        _needs(exp.Or, _every_column),
        _LEFT + "(b.w = 'a' or b.w is null)",
    ),
    Fault("IS NULL needs its column", affected, "needed", _needs(exp.Is, _every_column), _LEFT + "b.w is null"),
    Fault(
        "a function of NULL is NULL",
        strict,
        "_empties",
        lambda _: _every_column,
        _LEFT + "coalesce(b.y, 1) = 1",
    ),
    Fault(
        "<=> needs both sides",
        affected,
        "needed",
        _needs(exp.NullSafeEQ, _every_column),
        "select a.id, a.s from t a left join u b on b.k = a.k where b.w <=> a.s",
    ),
    Fault(
        "NOT BETWEEN needs both ends",
        affected,
        "needed",
        _needs(exp.Not, _every_column),
        _LEFT + "a.x not between b.y and 1 and b.w is null",
    ),
    Fault(
        "EXISTS is a condition like any other",
        Joined,
        "believed",
        always(True),
        "select a.id from t a left join u b on b.k = a.k where not exists (select 1 from r c where c.y = b.y)",
    ),
    Fault(
        "windows need not share what they are partitioned by",
        anchors,
        "shared_partition",
        any_window,
        "select id, k, s, sum(x) over (partition by k) as a, count(*) over (partition by s) as n from t",
    ),
    Fault(
        "PARTITION BY an expression is PARTITION BY its columns",
        anchors,
        "shared_partition",
        _columns_of_parts,
        "select id, k, count(*) over (partition by k % 2) as n from t",
    ),
    Fault(
        "a named window is the first one that is named",
        anchors,
        "shared_partition",
        _first_named,
        "select id, k, s, sum(x) over v as a from t window w as (partition by k), v as (partition by s)",
    ),
    Fault(
        "a query that is read twice is restricted for one of its readers",
        narrowed._Narrowing,
        "_read_once",
        always(True),
        "with j as (select a.k, b.n from u a left join (select k, count(*) as n from t group by k) b on b.k = a.k) "
        "select c.k as id, c.n, d.n as other from j c left join j d on d.k = c.n",
    ),
)
