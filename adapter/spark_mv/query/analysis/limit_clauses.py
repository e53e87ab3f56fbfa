"""LIMIT, OFFSET and TABLESAMPLE: which rows they keep, and whether that depends on the order Spark sees them in."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.orders import covers_unique, order_values
from spark_mv.query.analysis.rules import forbid_per_row, rows_key
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import CLEAN, Taint, union
from spark_mv.query.analysis.verdict import ClauseVerdict
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parse import sql_text
from spark_mv.query.syntax.parser import first_offset


def limit_taint(walk: Walk, node: exp.Expr, scope: Scope) -> Taint:
    """What the choice of rows by LIMIT, OFFSET and TABLESAMPLE of `node` depends on; recorded as clauses."""
    order = node.args.get("order") or node.args.get("sort")
    taints = []
    by_all = order is not None and any(item.this.name.upper() == "ALL" for item in order.expressions)
    ordered = scope.ordinals if by_all else order_values(walk, order, scope, value)
    for key in ("limit", "offset"):
        clause = node.args.get(key)
        if clause is None or _is_all(clause):
            continue
        walk.flag("limit")
        for facts in ordered:
            forbid_per_row(walk, "ORDER BY … LIMIT", facts.taint, f"ORDER BY … {key.upper()}", rows_key(scope, walk))
        prints = [facts.fingerprint for facts in ordered]
        total = by_all or covers_unique(walk, scope, (), prints) or _is_zero(clause)
        if node.args.get("sort") and not node.args.get("order"):
            total = False  # SORT BY orders each partition only
        place = _keyword_place(walk, key.upper(), clause)
        own = CLEAN if total else walk.origin(key.upper(), Level.ORDER_DEPENDENT, place)
        counted = value(walk, clause.expression, scope).taint if clause.expression is not None else CLEAN
        forbid_per_row(walk, "LIMIT", counted, key.upper(), rows_key(scope, walk))
        taint = union([own, counted, *(v.taint for v in ordered)])
        _record(walk, key.upper(), clause, scope, taint, place)
        taints.append(taint)
    sample = node.args.get("sample")
    if sample is not None:
        taints.append(sample_taint(walk, sample, scope))
    return union(taints)


def sample_taint(walk: Walk, sample: exp.Expr, scope: Scope) -> Taint:
    """TABLESAMPLE: a share of the rows without a seed draws for each row, at each read; else Spark samples each partition as it finds it."""
    walk.flag("sample")
    share = sample.args.get("size") is None and sample.args.get("seed") is None
    place = _keyword_place(walk, "TABLESAMPLE", sample)
    taint = walk.origin("TABLESAMPLE", Level.NONDETERMINISTIC if share else Level.ORDER_DEPENDENT, place)
    _record(walk, "TABLESAMPLE", sample, scope, taint, place)
    return taint


def _record(walk: Walk, clause: str, node: exp.Expr, scope: Scope, taint: Taint, place: tuple[int, int]) -> None:
    origin = taint.worst() if taint else None
    walk.clauses.setdefault(
        (clause, *place),
        ClauseVerdict(
            clause,
            sql_text(node).strip(),
            scope.label,
            *place,
            taint.level,
            origin.cause(clause) if origin else None,
        ),
    )


def _is_all(clause: exp.Expr) -> bool:
    amount = clause.args.get("expression")
    return amount is None or (isinstance(amount, exp.Column | exp.Var) and amount.name.upper() == "ALL")


def _is_zero(clause: exp.Expr) -> bool:
    """LIMIT 0 keeps no row, OFFSET 0 all."""
    return isinstance(clause.expression, exp.Literal) and clause.expression.name == "0"


def _keyword_place(walk: Walk, word: str, clause: exp.Expr) -> tuple[int, int]:
    """The place of the keyword: the last one written before the clause's own first token."""
    start = first_offset(clause)
    tokens = [t for t in walk.text.parsed.tokens if t.text.upper() == word]
    if walk.text.anchor is not None or not tokens:
        return walk.place(clause)
    before = [t for t in tokens if start is None or t.start < start]
    return walk.at((before or tokens)[-1].start)
