"""What all windows of a SELECT are partitioned by: a change in a partition can touch any of its rows, and none of others."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.delta.names import FromColumns, Place
from spark_mv.query.syntax.select_tree import NotIncremental, SelectNode


def shared_partition(node: SelectNode, scope: FromColumns) -> tuple[set[Place], list[exp.Expr]]:
    """The columns, and the expressions, by which every window of the SELECT is partitioned."""
    named = {w.name.lower(): w for w in node.tree.args.get("windows") or []}
    columns: set[Place] | None = None
    expressions: list[exp.Expr] | None = None
    for window in node.windows:
        parts = list(window.args.get("partition_by") or [])
        base = window.args.get("alias")
        if not parts and base is not None and base.name.lower() in named:
            parts = list(named[base.name.lower()].args.get("partition_by") or [])
        if not parts:
            raise NotIncremental("NO_PARTITION_BY", "a window without PARTITION BY has one partition: the whole source")
        own = {place for p in parts if (place := scope.whole(p)) is not None}
        columns = own if columns is None else columns & own
        expressions = parts if expressions is None else [p for p in expressions if p in parts]
    if not expressions and not columns:
        raise NotIncremental("PARTITIONS_DIFFER", "the windows share no PARTITION BY column")
    return columns or set(), expressions or []
