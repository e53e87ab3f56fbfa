"""What follows a query block: ORDER BY, LIMIT, OFFSET, as part of its rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.limit_clauses import limit_taint
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import Relation, TaintedValue, union
from spark_mv.query.analysis.walk import Env, Walk


def modified(walk: Walk, node: exp.Expr, relation: Relation, env: Env) -> Relation:
    """`relation` after the ORDER BY, LIMIT, OFFSET or TABLESAMPLE of a set operation or parenthesised query."""
    if not any(node.args.get(key) for key in ("order", "limit", "offset", "sample")):
        return relation
    scope = Scope(parent=env.outer, ctes=env.ctes, label=env.label, sources={"": relation})
    scope.row_unique, scope.single = relation.unique, relation.single
    scope.ordinals = [TaintedValue(item.taint, item.fingerprint) for item in relation.items]
    return replace(
        relation,
        rows=union([relation.rows, limit_taint(walk, node, scope)]),
        unique=relation.unique + ((frozenset(),) if is_one(node) else ()),
    )


def is_one(node: exp.Expr) -> bool:
    """Whether LIMIT 1 makes the result at most one row."""
    limit = node.args.get("limit")
    return limit is not None and limit.expression is not None and limit.expression.name == "1"
