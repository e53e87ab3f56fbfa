"""Which FROM items a condition needs: it cannot be true for a row in which an outer join left one of them empty."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.delta.names import FromColumns

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.RegexpLike)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def needed(node: exp.Expr, scope: FromColumns) -> frozenset[str]:
    """Aliases (lower case) without which the condition is not true."""
    if isinstance(node, exp.Paren):
        return needed(node.this, scope)
    if isinstance(node, exp.And):
        return needed(node.left, scope) | needed(node.right, scope)
    if isinstance(node, exp.Or):
        return needed(node.left, scope) & needed(node.right, scope)
    if isinstance(node, exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return _empties(inner.this, scope)
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            return frozenset()  # NULL NOT IN (no rows) is true
        if isinstance(inner, exp.Between | exp.In):
            return _empties(inner.this, scope)  # NOT of a range whose end is NULL can be true
        return needed(inner, scope) if isinstance(inner, _COMPARISONS) else frozenset()
    if isinstance(node, exp.Between):
        return _empties(node.this, scope) | _empties(node.args["low"], scope) | _empties(node.args["high"], scope)
    if isinstance(node, _COMPARISONS):
        return _empties(node.this, scope) | _empties(node.expression, scope)
    if isinstance(node, exp.In):
        return _empties(node.this, scope)
    return _empties(node, scope) if isinstance(node, exp.Column) else frozenset()


def _empties(node: exp.Expr, scope: FromColumns) -> frozenset[str]:
    """Aliases whose columns, when they are NULL, make the expression NULL."""
    if isinstance(node, exp.Column):
        place = scope.resolve(node)
        return frozenset([place[0]]) if place is not None else frozenset()
    if isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        return _empties(node.this, scope)
    if isinstance(node, _ARITHMETIC):
        return _empties(node.left, scope) | _empties(node.right, scope)
    return frozenset()
