"""What both explainers print of a column, a predicate and a strategy, as plain data and as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len, set_cell_size

from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.analysis.verdict import Analysis, Cause, ColumnVerdict, PredicateVerdict


def bounded(analysis: Analysis, rewritten: Rewritten) -> tuple[PredicateVerdict, ...]:
    """The predicates with the bounds that a run has for those on the clock. Both are in the order of the text."""
    known: dict[str, list[PredicateVerdict]] = defaultdict(list)
    for predicate in rewritten.predicates:
        known[_flat(predicate.text)].append(predicate)
    found = []
    for predicate in analysis.predicates:
        same = known.get(_flat(predicate.text)) if predicate.clock else None
        if same:
            seen = same.pop(0)
            bounds = {key: getattr(seen, key) for key in ("solved", "valid_from", "valid_to", "guard")}
            predicate = replace(predicate, **bounds)
        found.append(predicate)
    return tuple(found)


def _flat(text: str) -> str:
    return " ".join(text.split())


def column_data(column: ColumnVerdict) -> dict[str, Any]:
    """Name, level, what is kept, and the cause."""
    return {
        "name": column.name,
        "level": column.level.value,
        "kept": column.kept,
        "frozen": column.frozen,
        "cause": cause_data(column.cause),
    }


def predicate_data(predicate: PredicateVerdict) -> dict[str, Any]:
    """Text, clause, level and bounds."""
    return {
        "text": predicate.text,
        "clause": predicate.clause,
        "level": predicate.level.value,
        "clock": predicate.clock,
        "solved": predicate.solved,
        "valid_from": predicate.valid_from,
        "valid_to": predicate.valid_to,
    }


def predicate_lines(predicate: PredicateVerdict) -> Iterable[str]:
    """The predicate with its place and level, and the instants at which it holds."""
    where = f" in {predicate.scope}" if predicate.scope else ""
    yield f"  {predicate.clause}{where}, line {predicate.line}: {predicate.text}"
    if not predicate.clock:
        yield f"    {predicate.level.value}"
    elif predicate.solved:
        low, high = predicate.valid_from or "always", predicate.valid_to or "for ever"
        yield f"    {predicate.level.value}, on the clock: from {low} until {high}"
    else:
        yield f"    {predicate.level.value}, on the clock, not solved for it: evaluated at the last and at this run's instant"


def reasons_data(reasons: Iterable[Reason]) -> list[dict[str, str]]:
    """Code and sentence of each."""
    return [{"code": reason.code, "sentence": reason.sentence} for reason in reasons]


def cause_data(cause: Cause | None) -> dict[str, Any] | None:
    """The call, its place, and the way from it."""
    if cause is None:
        return None
    return {"function": cause.function, "line": cause.line, "column": cause.column, "path": list(cause.path)}


def because(cause: Cause | None) -> str:
    """`rand (line 2, column 8, through draws.bucket)`"""
    if cause is None:
        return ""
    through = f", through {' → '.join(cause.path)}" if cause.path else ""
    return f"{cause.function} (line {cause.line}, column {cause.column}{through})"


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with the cells of each column below each other, on a terminal where some letters are two columns wide."""
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        "  " + "  ".join(set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
