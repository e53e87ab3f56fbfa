"""What a run and `explain_mv` say beside the strategy: of the query, and of kept values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_mv.maintenance.columns import ColumnPlan, Role
from spark_mv.maintenance.facts import TargetFacts
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.draw_lineage import shared_in
from spark_mv.query.syntax.parse import read_query


def order_notes(analysis: Analysis) -> list[str]:
    """The columns that depend on the order in which Spark sees rows; and that rows do, where they do."""
    cure = "a total order (ORDER BY … , unique_key) makes it deterministic"
    missed = ". What is asked in one order is not found in another, and the column then is NULL: write sort_array(collect_list(c)), or max(struct(ts, c)).c"
    notes = [
        f"column {column.name} depends on the order in which rows are seen; {cure}{missed if Level.AI in column.levels else ''}"
        for column in analysis.columns
        if Level.ORDER_DEPENDENT in column.levels and not column.kept
    ]
    if analysis.rows_level is Level.ORDER_DEPENDENT:
        asked = ", and AI functions are asked about these rows alone" if Level.AI in analysis.levels else ""
        notes.append(f"which rows there are depends on the order in which they are seen; {cure}{asked}")
    return notes


def shared_notes(analysis: Analysis, key: Sequence[str]) -> list[str]:
    """The columns whose draw several rows share in the query, while each row keeps it under its own key."""
    drawn = [c for c in analysis.columns if c.level is Level.NONDETERMINISTIC and c.cause is not None and c.cause.path]
    tree = read_query(analysis.sql) if drawn and not analysis.errors else None
    found = [(c, shared_in(tree, c.cause.path, key)) for c in drawn if tree is not None and c.cause is not None]
    return [
        f"column {column.name} is drawn in {item}, whose rows may stand in several rows of the result: each of these keeps the "
        "value that it got, and a row that comes later draws another one. To have one value for all of them, make "
        f"{item} a nondeterministic_mv of its own with a unique_key, and join that"
        for column, item in found
        if item
    ]


def unknown_notes(analysis: Analysis, functions: Iterable[str]) -> list[str]:
    """The functions of which nobody says what they give: their values are kept as draws are, which is what nobody expects of `upper`.
    `functions`: those that are declared."""
    declared = {name.lower() for name in functions}
    unknown = {
        name: None
        for name, level, _, _ in analysis.functions
        if level is Level.NONDETERMINISTIC
        and declared.isdisjoint((name.lower(), name.lower().rpartition(".")[2]))
        and ("." in name or (level_of(name) is None and name.isidentifier() and not name.isupper()))
    }
    notes = []
    for name in unknown:
        kept = [c.name for c in analysis.columns if c.kept and any(call == name for call, _, _ in c.draws)]
        rows = analysis.rows_draw is not None and analysis.rows_draw.function == name
        what = [f"column {', '.join(kept)} keeps the values that it drew"] if kept else []
        what += ["which rows pass the filter stays as it was drawn"] if rows else []
        if what:
            notes.append(
                f"nobody says what the function {name} gives, so it counts as random: {' and '.join(what)}, whatever becomes of its arguments. "
                f"If the same arguments always give the same, declare `functions: {{{name}: {{determinism: deterministic}}}}` in the profile or "
                "under vars; if not, nondeterministic"
            )
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


def adopted_notes(columns: ColumnPlan, target: TargetFacts) -> tuple[str, ...]:
    """Of steps that read kept values from the table as somebody else left it, because the version before cannot be read."""
    if target.intact or not target.clean or not columns.keeps:
        return ()
    return (
        f"the rows as the model's last run left them (version {target.clean[0]}) cannot be read any more; the table's values of "
        f"{', '.join(columns.kept)} are taken for kept values, whoever wrote them. To have values drawn anew, ask for it by "
        "dbt run-operation forget_values",
    )


def kept_notes(model: str, columns: ColumnPlan, target: TargetFacts) -> list[str]:
    """What becomes of kept values that the table can not simply keep."""
    if not target.exists:
        return []
    notes = [f"{name} is drawn anew in all rows: {why}" for name, why in columns.drawn_anew.items()]
    renamed = (c for c in columns.columns if c.role is Role.KEPT and c.stands_in)
    notes += [f"{c.name} keeps the values of {c.stands_in}, which had its expression" for c in renamed]
    for name, others in columns.apart.items():
        listed = ", ".join(others)
        notes.append(
            f"{name} is drawn, in rows that were there before, from a draw that {listed} read as well and keep another value of: in these rows "
            f"they do not belong together. To have all of them drawn anew, as one: dbt run-operation forget_values --args "
            f"'{{model: {model}, columns: [{', '.join((name, *others))}]}}', and a run"
        )
    if not target.intact and target.record is not None:
        what = f" ({target.foreign_operation})" if target.foreign_operation else ""
        notes.append(
            f"something else wrote to the table since its last run{what}; all rows are written as they have to be, and what "
            "the run counts is what changed since that run"
        )
    if columns.keeps and target.record is None:
        notes.append(
            f"no record of an earlier run of this model is in the table's history; its values of {', '.join(columns.kept)} are taken "
            "for kept values"
        )
    if columns.kept and columns.identity.rekeyed:
        identity = columns.identity
        how = ", ".join(t for _, t in identity.pairs)
        what = "the type of unique_key" if identity.retyped_alone else "unique_key"
        shared = (
            f", as do rows of the query that share one {how}"
            if identity.by_former
            else f"; of rows of the table that share one {how}, the values of one are kept"
        )
        notes.append(
            f"{what} changed: kept values are found by {how}, and rows that it does not find draw anew{shared}"
            if how
            else "unique_key changed, and neither the table has the new one nor the query the old one: all rows draw anew"
        )
    return notes
