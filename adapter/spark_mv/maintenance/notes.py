"""What a run and `explain_mv` say of a query beside its strategy."""

from __future__ import annotations

from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level


def order_notes(analysis: Analysis) -> list[str]:
    """The columns that depend on the order in which Spark sees rows; and that rows do, where they do."""
    cure = "a total order (ORDER BY … , unique_key) makes it deterministic"
    notes = [
        f"column {column.name} depends on the order in which rows are seen; {cure}"
        for column in analysis.columns
        if Level.ORDER_DEPENDENT in column.levels and not column.kept
    ]
    if analysis.rows_level is Level.ORDER_DEPENDENT:
        notes.append(f"which rows there are depends on the order in which they are seen; {cure}")
    return notes
