"""A model's SELECT with its columns' levels: what `spark-mv explain` says of it, and the text cut at the places that matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.explain.judgement import judge
from spark_mv.explain.parts import because
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.report.facts import ModelFacts, ProjectFacts


@dataclass(frozen=True)
class Piece:
    """A stretch of the text; `level` is empty where it is deterministic."""

    text: str
    level: str = ""


@dataclass(frozen=True)
class ColumnRow:
    """One output column as the report shows it."""

    name: str
    level: str
    kept: str
    because: str
    expression: str


@dataclass(frozen=True)
class Window:
    """A condition on the clock, and the instants between which a row passes it (empty: not solved for the clock)."""

    text: str
    clause: str
    valid_from: str
    valid_to: str


@dataclass(frozen=True)
class Judged:
    """`pieces` make up the whole text. `errors`: why a run would refuse it, or why it could not be analysed here."""

    pieces: tuple[Piece, ...] = ()
    columns: tuple[ColumnRow, ...] = ()
    windows: tuple[Window, ...] = ()
    errors: tuple[str, ...] = ()


def judged(model: ModelFacts, project: ProjectFacts) -> Judged:
    """What is known without Spark. Never raises: a text that cannot be analysed is shown as it is."""
    if not model.sql.strip():
        return Judged(errors=(model.problem or "the model has not been compiled",))
    try:
        found = judge(
            model.sql,
            unique_key=model.unique_key,
            schemas=_schemas(project.columns),
            functions=project.functions or None,
            freeze=model.freeze,
            views=project.views,
            model=model.name,
            time_zone=project.time_zone,
        )
    except Exception as error:  # the report of the other models does not fail for it
        return Judged((Piece(model.sql),), errors=(f"it could not be analysed: {error}",))
    analysis = found.analysis
    columns = tuple(
        ColumnRow(
            c.name,
            c.level.value,
            ("frozen" if c.frozen else "per key") if c.kept else "in ai_results" if Level.AI in c.levels else "",
            because(c.cause),
            c.expression,
        )
        for c in analysis.columns
    )
    windows = tuple(Window(p.text, p.clause, p.valid_from or "", p.valid_to or "") for p in found.predicates if p.clock)
    return Judged(pieces(model.sql, places(analysis)), columns, windows, tuple(e.message for e in found.errors))


def _schemas(columns: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {table: dict(types) for table, types in columns.items() if types}


def places(analysis: Analysis) -> list[tuple[int, int, str]]:
    """Start, end and level of every call that is not deterministic. Calls within views have places in other texts: a place
    counts only if the name stands there."""
    starts = [0]
    for text in analysis.sql.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    found = set()
    for name, level, line, column in analysis.functions:
        if level is Level.DETERMINISTIC or not 1 <= line < len(starts):
            continue
        start = starts[line - 1] + column - 1
        if analysis.sql[start : start + len(name)].lower() == name.lower():
            found.add((start, start + len(name), level.value))
    return sorted(found)


def pieces(sql: str, marks: Sequence[tuple[int, int, str]]) -> tuple[Piece, ...]:
    """The text in pieces; marks that overlap an earlier one are left out.

    >>> [(p.text, p.level) for p in pieces("select rand()", [(7, 11, "nondeterministic")])]
    [('select ', ''), ('rand', 'nondeterministic'), ('()', '')]
    """
    found: list[Any] = []
    at = 0
    for start, end, level in marks:
        if start < at or end > len(sql):
            continue
        found += [Piece(sql[at:start]), Piece(sql[start:end], level)]
        at = end
    return tuple(piece for piece in (*found, Piece(sql[at:])) if piece.text)
