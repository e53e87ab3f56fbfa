"""The conjuncts of WHERE, HAVING, QUALIFY and JOIN ON, one verdict each."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import TaintedValue, digest, union
from spark_mv.query.analysis.verdict import PredicateVerdict
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parse import sql_text
from spark_mv.query.syntax.source_blocks import conjuncts as parts


def conjuncts(walk: Walk, node: exp.Expr, scope: Scope, clause: str) -> TaintedValue:
    """Record a verdict for each conjunct of `node`, one on the clock with its text as written; the value of all of them
    together."""
    values = []
    for item in parts(node):
        facts = value(walk, item, scope)
        values.append(facts)
        line, column = walk.place(item)
        origin = facts.taint.worst() if facts.taint else None
        clock, span = Level.COMMAND in facts.taint.levels, item.meta.get("span")
        verdict = PredicateVerdict(
            text=walk.text.parsed.sql[slice(*span)] if clock and span else sql_text(item),
            clause=clause,
            scope=scope.label,
            line=line,
            column=column,
            level=facts.taint.level,
            clock=clock,
            cause=origin.cause(clause) if origin else None,
        )
        key = (clause, scope.label, line, column, verdict.text, walk.text.via)
        walk.predicates[key] = verdict
    return TaintedValue(union(v.taint for v in values), digest("and", *(v.fingerprint for v in values)))
