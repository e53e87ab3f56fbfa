"""Faults in fingerprints: something that changes rows and is no longer a part of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fault import Fault, Shows
from sqlglot import exp

from spark_mv.query.analysis import fingerprint, orders, scopes


def _left_out(type_: type[exp.Expr], argument: str) -> Callable[[Any], Any]:
    return lambda table: {**table, (type_, argument): (lambda _: True, "a fault")}


def _any_kind(function: Any) -> Any:
    """Nodes are told apart by their arguments alone."""

    def changed(*parts: Any) -> str:
        return function(*([""] + [p for p in parts[1:] if not str(p).startswith("call ")] if parts else []))

    return changed


def _logic(
    what: str, name: str, make: Callable[[Any], Any], query: str, other: str, key: str = "id", owner: Any = fingerprint
) -> Fault:
    return Fault(what, owner, name, make, query, key, Shows.LOGIC, other)


LOGIC: tuple[Fault, ...] = (
    _logic(
        "the kind of an outer join does not count",
        "LEFT_OUT",
        _left_out(exp.Join, "side"),
        "select a.id, b.k from t a left join u b on b.k = a.k where a.id is not null",
        "select a.id, b.k from t a right join u b on b.k = a.k where a.id is not null",
    ),
    _logic(
        "a column of USING is always the left one",
        "of_using",
        lambda f: lambda scope, name, fields: fields[0],
        "select id, k as joined from t right join u using (k)",
        "select id, t.k as joined from t right join u using (k)",
        owner=scopes,
    ),
    _logic(
        "NULLS FIRST does not count",
        "LEFT_OUT",
        _left_out(exp.Ordered, "nulls_first"),
        "select id, row_number() over (order by k nulls first, id) as n from t",
        "select id, row_number() over (order by k nulls last, id) as n from t",
    ),
    _logic(
        "DESC does not count",
        "LEFT_OUT",
        _left_out(exp.Ordered, "desc"),
        "select id, row_number() over (order by id nulls first) as n from t",
        "select id, row_number() over (order by id desc nulls first) as n from t",
    ),
    _logic(
        "DISTINCT in an aggregate does not count",
        "_arguments",
        lambda f: (
            lambda walk, node: (
                (k, e) for k, v in f(walk, node) for e in (v.expressions if isinstance(v, exp.Distinct) else [v])
            )
        ),
        "select k, count(s) as n from t where k is not null group by k",
        "select k, count(distinct s) as n from t where k is not null group by k",
        "k",
    ),
    _logic(
        "the frame of a window does not count",
        "digest",
        lambda f: lambda *parts: f(*parts[:-2], *parts[-1:]) if parts[0] == "window" else f(*parts),
        "select id, count(*) over (order by id rows between unbounded preceding and current row) as n from t",
        "select id, count(*) over (order by id rows between current row and unbounded following) as n from t",
        owner=orders,
    ),
    _logic(
        "OUTER of a lateral view does not count",
        "LEFT_OUT",
        _left_out(exp.Lateral, "outer"),
        "select id, v from t lateral view outer explode(filter(array(k), e -> e > 0)) l as v",
        "select id, v from t lateral view explode(filter(array(k), e -> e > 0)) l as v",
    ),
    _logic(
        "what OVER says does not count",
        "digest",
        lambda f: lambda *parts: f(*parts[:2]) if parts[0] == "window" else f(*parts),
        "select id, row_number() over (order by id) as n from t",
        "select id, row_number() over (order by x, id) as n from t",
        owner=orders,
    ),
    _logic(
        "the kind of a node does not count",
        "digest",
        _any_kind,
        "select id from t where k < x",
        "select id from t where k > x",
    ),
    _logic(
        "the type that is cast to does not count",
        "LEFT_OUT",
        _left_out(exp.TryCast, "to"),
        "select id, cast(ts as date) as c from t",
        "select id, cast(ts as string) as c from t",
    ),
    _logic(
        "the filter of an aggregate does not count",
        "LEFT_OUT",
        _left_out(exp.Filter, "expression"),
        "select k, count(*) filter (where x = k) as n from t where k is not null group by k",
        "select k, count(*) filter (where x = id) as n from t where k is not null group by k",
        "k",
    ),
)
