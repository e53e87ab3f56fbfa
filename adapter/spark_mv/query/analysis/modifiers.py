"""What follows a query block: ORDER BY, LIMIT, OFFSET, as part of its fingerprint and its rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.limits import limit_taint
from spark_mv.query.analysis.orders import order_values
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import Relation, Value, digest, union
from spark_mv.query.analysis.walk import Env, Walk
from spark_mv.query.syntax.parse import sql_text


def modified(walk: Walk, node: exp.Expr, relation: Relation, env: Env) -> Relation:
    """`relation` after the ORDER BY, LIMIT, OFFSET or TABLESAMPLE of a set operation or parenthesised query."""
    if not any(node.args.get(key) for key in ("order", "limit", "offset", "sample")):
        return relation
    scope = Scope(parent=env.outer, ctes=env.ctes, label=env.label, sources={"": relation})
    scope.row_unique = relation.unique
    scope.ordinals = [Value(item.taint, item.fingerprint) for item in relation.items]
    return replace(
        relation,
        rows=union([relation.rows, limit_taint(walk, node, scope)]),
        fingerprint=digest("modified", relation.fingerprint, *modifier_prints(walk, node, scope)),
        unique=relation.unique + ((frozenset(),) if is_one(node) else ()),
    )


def modifier_prints(walk: Walk, node: exp.Expr, scope: Scope) -> list[str]:
    """ORDER BY decides rows only together with a LIMIT; alone it is no part of the result."""
    if not any(node.args.get(key) for key in ("limit", "offset", "sample")):
        return []
    order = node.args.get("order")
    items = order.expressions if order is not None else []
    prints = [facts.fingerprint for facts in order_values(walk, order, scope, value)]
    prints += [str(item.args.get("desc")) for item in items]
    return prints + [sql_text(node.args[k]).lower() for k in ("limit", "offset", "sample") if node.args.get(k)]


def is_one(node: exp.Expr) -> bool:
    """Whether LIMIT 1 makes the result at most one row."""
    limit = node.args.get("limit")
    return limit is not None and limit.expression is not None and limit.expression.name == "1"
