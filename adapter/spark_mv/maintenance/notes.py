"""What a run and `explain_mv` say beside the strategy: of the query, and of kept values."""

from __future__ import annotations

from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.facts import TargetFacts
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


def forget_notes(columns: ColumnPlan, target: TargetFacts) -> list[str]:
    """Requests to forget what is kept no longer."""
    kept = {name.lower() for name in columns.kept}
    frozen = [
        "forget_values was asked for, and rows that freeze_where freezes keep their values: change freeze_where to let them go"
    ]
    return (frozen if target.forget and columns.stays else []) + [
        f"forget_values was asked for {', '.join(gone)}, which is not kept per key any longer; that part is dropped"
        for request in target.forget
        if (gone := [name for name in request.columns if name not in kept])
    ]


def kept_notes(columns: ColumnPlan, target: TargetFacts) -> list[str]:
    """What becomes of kept values that the table can not simply keep."""
    if not target.exists:
        return []
    notes = [f"{name} is drawn anew in all rows: {why}" for name, why in columns.drawn_anew.items()]
    if not target.intact and target.record is not None:
        what = f" ({target.foreign_operation})" if target.foreign_operation else ""
        notes.append(
            f"something else wrote to the table since its last run{what}; all rows are written as they have to be, and what "
            "the run counts is what changed since that run"
        )
    if columns.keeps and target.record is None:
        notes.append(
            f"no record of an earlier run is left in the table's history; its values of {', '.join(columns.kept)} are taken "
            "for kept values"
        )
    if columns.kept and columns.identity.rekeyed:
        how = ", ".join(t for _, t in columns.identity.pairs)
        notes.append(
            f"unique_key changed: kept values are found by {how}, and rows that it does not find draw anew"
            if how
            else "unique_key changed, and neither the table has the new one nor the query the old one: all rows draw anew"
        )
    return notes
