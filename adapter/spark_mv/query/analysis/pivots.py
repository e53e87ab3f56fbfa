"""PIVOT and UNPIVOT."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.analysis.fingerprint import fingerprint, noted
from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.rules import forbid_per_row, rows_key
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import CLEAN, Field, OpenPart, Relation, digest, union
from spark_mv.query.analysis.walk import Walk


def pivoted(walk: Walk, relation: Relation, pivot: exp.Expr, scope: Scope) -> Relation:
    """The relation after one PIVOT or UNPIVOT. PIVOT groups by every column that it does not use."""
    inner = Scope(parent=scope, sources={"": relation}, ctes=scope.ctes, label=scope.label)
    # every column that a PIVOT does not name is a key, and labels of an UNPIVOT are names: both stand in no tree
    noted(walk, pivot, relation.columns_print)
    text = digest("pivot", relation.columns_print, fingerprint(walk, pivot))
    whole = digest("pivot", relation.fingerprint, text)
    if pivot.args.get("unpivot"):
        return _unpivoted(walk, relation, pivot, inner, text, whole)
    walk.flag("pivot", "aggregate")
    keys = [value(walk, item.this, inner) for item in pivot.args.get("fields") or []]
    for facts in keys:
        forbid_per_row(walk, "GROUP BY", facts.taint, "PIVOT … FOR", rows_key(inner, walk))
    results = [value(walk, item, inner) for item in pivot.expressions]
    used = {column.name.lower() for column in pivot.find_all(exp.Column)}
    rest = [item for item in relation.items if isinstance(item, OpenPart) or item.name.lower() not in used]
    for item in rest:
        forbid_per_row(walk, "GROUP BY", item.taint, "PIVOT (its grouping)", rows_key(inner, walk))
    taint = union([*(v.taint for v in results), *(k.taint for k in keys)])
    names = [column.name for column in pivot.args.get("columns") or []]
    if not names:
        return Relation((*rest, OpenPart(text, taint)), whole, relation.rows)
    made = [Field(name, taint, digest("pivoted", name.lower(), text)) for name in names]
    return Relation((*rest, *made), whole, relation.rows)


def _unpivoted(walk: Walk, relation: Relation, pivot: exp.Expr, scope: Scope, text: str, whole: str) -> Relation:
    walk.flag("generator")
    used = {column.name.lower() for column in pivot.find_all(exp.Column)}
    rest = [item for item in relation.items if isinstance(item, OpenPart) or item.name.lower() not in used]
    taint = union(item.taint for item in relation.items if isinstance(item, OpenPart) or item.name.lower() in used)
    values = [c.name for item in pivot.expressions for c in item.find_all(exp.Identifier)]
    labels = [item.this.name for item in pivot.args.get("fields") or [] if isinstance(item, exp.In)]
    made = [
        *(Field(name, CLEAN, digest("unpivoted", name.lower(), text)) for name in labels if name not in values),
        *(Field(name, taint, digest("unpivoted", name.lower(), text)) for name in values),
    ]
    return Relation((*rest, *made), whole, relation.rows)
