"""The conjuncts of WHERE, HAVING, QUALIFY and JOIN ON, one verdict each."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import Value, digest, union
from spark_mv.query.analysis.verdict import PredicateVerdict
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parse import sql_text


def split(node: exp.Expr) -> list[exp.Expr]:
    """The conjuncts of a condition, in the order written."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        item = stack.pop()
        while isinstance(item, exp.Paren) and isinstance(item.unnest(), exp.And):
            item = item.unnest()
        if isinstance(item, exp.And):
            stack += [item.expression, item.this]
        else:
            found.append(item)
    return found


def conjuncts(walk: Walk, node: exp.Expr, scope: Scope, clause: str) -> Value:
    """Record a verdict for each conjunct of `node`; the value of all of them together."""
    values = []
    for item in split(node):
        facts = value(walk, item, scope)
        values.append(facts)
        line, column = walk.place(item)
        origin = facts.taint.worst() if facts.taint else None
        verdict = PredicateVerdict(
            text=sql_text(item),
            clause=clause,
            scope=scope.label,
            line=line,
            column=column,
            level=facts.taint.level,
            clock=Level.COMMAND in facts.taint.levels,
            cause=origin.cause(clause) if origin else None,
        )
        key = (clause, scope.label, line, column, verdict.text, walk.text.via)
        walk.predicates[key] = verdict
        walk.nodes[key] = (item, scope, walk.text.parsed)
    return Value(union(v.taint for v in values), digest("and", *(v.fingerprint for v in values)))
