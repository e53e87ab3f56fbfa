"""What follows a query block: ORDER BY, LIMIT, OFFSET, as part of its fingerprint and its rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from .facts import Relation, Value, digest, union
from .levels import value
from .limits import limit_taint
from .orders import order_values
from .parse import sql_text
from .scopes import Scope
from .walk import Env, Walk


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
