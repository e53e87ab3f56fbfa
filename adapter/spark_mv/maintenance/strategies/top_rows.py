"""ORDER BY … LIMIT n in a total order: the first n of the rows that the table keeps and of those that a change touches.

    new table = first n of (rows of the table that no change touches + rows of the query that a change touches)

The rows that the table lacks stand behind its last row and are as they were. So the new table is right if it has n rows, none
of which stands further behind than the last row did; or if the table had fewer than n rows: then there are no others. It is
looked at once the rows are staged, and where it is not so, the run recomputes.
"""

from __future__ import annotations

from spark_mv.maintenance.columns import Role
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal
from spark_mv.maintenance.plan import Candidate, Reason, Step
from spark_mv.maintenance.steps.staging import rewrite_all, stage_affected, stage_sources
from spark_mv.query.delta.distributive import is_ordered
from spark_mv.query.delta.restrict import NotIncremental, anchor_column
from spark_mv.query.delta.top_rows import TopRows
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.table_name import quoted


def top_rows(known: IncrementalFacts, strategy: str) -> Proposal:
    """Raises NotIncremental where the table and what changed cannot tell the first rows."""
    top = _order(known)
    if known.linear_source is not None and (known.move is None or not known.changes.sources):
        affected, columns, coming = _of_changed_rows(known, top)
        estimated = known.cost.linear
    else:
        found = known.tree.affected(known.texts, known.columns.keys, known.comparable, known.move)
        affected, columns = known.evaluate(found.sql).sql, found.columns
        coming = known.texts.pinned(known.tree.restricted(relation("affected"), found, known.known_columns))
        estimated = known.cost.restricted(found.read)
    listed = ", ".join(quoted(c.name) for c in known.columns.columns)
    on = " AND ".join(f"`__mv_t`.{quoted(name)} <=> `__mv_k`.{anchor}" for name, anchor in columns.items())
    query = (
        f"SELECT {listed} FROM (\n"
        f"SELECT {listed} FROM {relation('target')} AS `__mv_t` LEFT ANTI JOIN {relation('affected')} AS `__mv_k` ON {on}\n"
        f"UNION ALL\nSELECT {listed} FROM (\n{coming}\n)\n) ORDER BY {top.order_by} LIMIT {top.count}"
    )
    steps: tuple[Step, ...] = (
        *stage_sources(known),
        stage_affected(affected),
        *rewrite_all(known, query, _doubt(top)),
    )
    sentence = f"the first {top.count:,} of the table's rows and of those that a change or the clock touches"
    candidate = Candidate(strategy, True, (Reason("TOP_ROWS", sentence),), estimated)
    return Proposal(candidate, steps, known.cost.complete)


def _order(known: IncrementalFacts) -> TopRows:
    """The order, which the unique_key makes total, over columns that the table has as the query gives them."""
    columns = known.columns.columns
    if known.config.keeps_rows or known.columns.stays:
        raise NotIncremental("KEPT_ROWS", f"{known.kept_by} leaves rows that the LIMIT does not count")
    if known.rewritten.ai_rounds:
        raise NotIncremental("AI_ANSWERS", "answers of AI functions can change without their rows")
    if not all(c.in_query and c.in_target and not c.retyped and not c.cast for c in columns):
        raise NotIncremental("COLUMNS_CHANGED", "the query and the table differ in their columns")
    assert known.tree.limited is not None
    top = known.tree.limited.rows(known.tree.node, known.texts.columns)
    keys = {key.lower() for key in known.columns.keys}
    if not keys or not keys <= top.plain:
        why = "ORDER BY … LIMIT: rows may tie; order by all columns of the unique_key too"
        raise NotIncremental("ORDER_NOT_TOTAL", why)
    by_name, unsettled = {c.name.lower(): c for c in columns}, known.tree.limited.unsettled
    for name in top.columns:
        column = by_name[name.lower()]
        if column.role not in (Role.KEY, Role.DATA):
            raise NotIncremental(
                "ORDER_KEPT", f"ORDER BY … LIMIT: the table has {name} of the rows that it keeps, and of no others"
            )
        if name.lower() in unsettled:
            raise NotIncremental("ORDER_NOT_TOTAL", f"ORDER BY … LIMIT: {name} depends on the order of rows itself")
        if not is_ordered(column.type):
            kind = (
                f"is of type {column.type}, which" if column.type else "is of a type that is not known here, and some"
            )
            raise NotIncremental("ORDER_TYPE", f"ORDER BY … LIMIT: {name} {kind} can differ unseen")
    return top


def _of_changed_rows(known: IncrementalFacts, top: TopRows) -> tuple[str, dict[str, str], str]:
    """Where each changed row gives rows of its own: a query for the rows that went, by the columns that tell them from others;
    these columns; and the query over the rows that came."""
    texts, sql, moved = known.texts, known.tree.sql, known.moved_windows
    columns = {name: anchor_column(k) for k, name in enumerate(dict.fromkeys(top.columns))}
    at = known.move.before if known.move else known.pins
    went = known.evaluate(texts.on_changes(sql, False, moved, at)).sql
    listed = ", ".join(f"{quoted(name)} AS {anchor}" for name, anchor in columns.items())
    return f"SELECT DISTINCT {listed} FROM (\n{went}\n)", columns, texts.on_changes(sql, True, moved, known.pins)


def _doubt(top: TopRows) -> str:
    """Whether a row that the table lacks may belong to the first ones: over the table and the rows that are staged."""
    read = ", ".join(quoted(name) for name in top.columns)
    coming, last = (f"max(CASE WHEN `__mv_op` {test} THEN `__mv_rank` END)" for test in ("IN ('I', 'U')", "= 'T'"))
    return (
        f"SELECT count_if(`__mv_op` = 'T') >= {top.count} AND (count_if(`__mv_op` = 'I') <> count_if(`__mv_op` = 'D') "
        f"OR coalesce({coming} > {last}, false)) FROM (\n"
        f"SELECT `__mv_op`, rank() OVER (ORDER BY {top.order_by}) AS `__mv_rank` FROM (\n"
        f"SELECT 'T' AS `__mv_op`, {read} FROM {relation('target')}\n"
        f"UNION ALL\nSELECT `__mv_op`, {read} FROM {relation('stage')}\n)\n)"
    )
