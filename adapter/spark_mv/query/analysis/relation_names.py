"""Column names given from outside: `AS t(a, b)` and `WITH c(a, b) AS`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.taint import Field, Relation, digest, union
from spark_mv.query.analysis.walk import Walk


def renamed(walk: Walk, relation: Relation, names: Sequence[str], node: exp.Expr) -> Relation:
    """The relation with the column names that an alias list gives."""
    if not names:
        return relation
    if relation.is_open:
        taint = union(item.taint for item in relation.items)
        return replace(
            relation,
            items=tuple(Field(n, taint, digest("at", i, relation.columns_print)) for i, n in enumerate(names)),
            unique=(),
        )
    fields = relation.fields
    if len(fields) != len(names):
        walk.error(
            "COLUMN_COUNT",
            f"{len(names)} column names are given for {len(fields)} columns ({', '.join(names)})",
            walk.place(node),
        )
    return replace(relation, items=tuple(replace(f, name=n) for f, n in zip(fields, names, strict=False)))
