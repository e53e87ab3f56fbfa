"""What is known of a model before its first run, as plain data for JSON and as text. The JSON is documented in docs/explain-json.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from spark_mv.explain.judgement import Judgement
from spark_mv.explain.mark import WIDTH, mark
from spark_mv.explain.parts import (
    because,
    cause_data,
    column_data,
    predicate_data,
    predicate_lines,
    reasons_data,
    table,
)
from spark_mv.explain.plain_text import plain
from spark_mv.maintenance.notes import shared_notes
from spark_mv.query.analysis.verdict import Cause
from spark_mv.query.functions.level import Level

FORMAT_VERSION = 1
_INDENT = "    "
Marked = Callable[..., list[str]]
"""The lines that show a place: line, column, what stands there."""


def explain_data(judged: Judgement, *, model: str = "model", unique_key: Sequence[str] = ()) -> dict[str, Any]:
    """The whole verdict as dicts, lists, strings, numbers, booleans and None. Keys are stable within FORMAT_VERSION."""
    analysis = judged.analysis
    return {
        "format_version": FORMAT_VERSION,
        "model": model,
        "unique_key": list(unique_key),
        "fingerprint": analysis.fingerprint,
        "level": _level(judged).value,
        "rows_level": analysis.rows_level.value,
        "columns": [
            {
                **column_data(c),
                "levels": [level.value for level in sorted(c.levels)],
                "expression": c.expression,
                "fingerprint": c.fingerprint,
            }
            for c in analysis.columns
        ],
        "predicates": [
            {
                **predicate_data(p),
                "scope": p.scope,
                "line": p.line,
                "column": p.column,
                "guard": p.guard,
                "cause": cause_data(p.cause),
            }
            for p in judged.predicates
        ],
        "clauses": [
            {
                "clause": c.clause,
                "text": c.text,
                "scope": c.scope,
                "line": c.line,
                "column": c.column,
                "level": c.level.value,
                "cause": cause_data(c.cause),
            }
            for c in analysis.clauses
        ],
        "functions": [
            {"name": name, "level": level.value, "line": line, "column": column}
            for name, level, line, column in analysis.functions
        ],
        "tables": [{"name": t.name, "occurrences": t.occurrences, "via": list(t.via)} for t in analysis.tables],
        "supposed_tables": list(judged.supposed),
        "shape": asdict(analysis.shape),
        "strategies": [
            {
                "name": s.strategy,
                "applies": s.applies,
                "reason_codes": [r.code for r in s.reasons],
                "reasons": reasons_data(s.reasons),
                "applies_when": list(s.when),
            }
            for s in judged.strategies
        ],
        "errors": [{"code": e.code, "message": e.message, "line": e.line, "column": e.column} for e in judged.errors],
    }


def _unread(judged: Judgement) -> bool:
    return bool(judged.errors) and not judged.analysis.columns


def _level(judged: Judgement) -> Level:
    if _unread(judged):
        return max(Level)  # what is not understood is never called deterministic
    return max((level for _, level, _, _ in judged.analysis.functions), default=Level.DETERMINISTIC)


def explain_text(
    judged: Judgement,
    *,
    model: str = "model",
    unique_key: Sequence[str] = (),
    notes: Sequence[str] = (),
    width: int = WIDTH,
) -> str:
    """The same for people: errors first, then columns, predicates and strategies. What is said of a place in the SQL has that
    line of it below, with the place marked, on `width` columns."""
    analysis = judged.analysis

    def marked(line: int, column: int, what: str = "") -> list[str]:
        return [_INDENT + text for text in mark(analysis.sql, line, column, what, width - len(_INDENT))]

    verdict = "cannot be judged" if _unread(judged) else _level(judged).value
    lines = [f"{model}: {verdict}, keyed by {', '.join(unique_key) or '(no unique_key)'}"]
    lines += [f"  note: {note}" for note in (*notes, *shared_notes(analysis, unique_key))]
    for e in judged.errors:
        lines += [f"  error {e.code}: {e.message}", *marked(e.line, e.column)]
    if judged.supposed:
        lines.append(
            f"  the columns of {', '.join(judged.supposed)} are taken from the query, and their types are not known: name them "
            "with --schema, or let `dbt docs generate` tell those of a project's models"
        )
    lines += ["", "columns", *_columns(judged, marked)]
    if judged.predicates:
        lines += ["", "predicates"]
        for p in judged.predicates:
            lines += [*predicate_lines(p), *marked(p.line, p.column, p.text)]
    notable = [c for c in analysis.clauses if c.level is not Level.DETERMINISTIC]
    if notable:
        lines += ["", "clauses"]
        for c in notable:
            lines += [f"  {c.clause}, line {c.line}: {c.level.value}, {because(c.cause)}", *_of_cause(c.cause, marked)]
    lines += ["", "strategies"]
    for s in judged.strategies:
        why = "; ".join(r.sentence for r in s.reasons)
        lines.append(f"  {s.strategy:<18}  {'applies' if s.applies else '-':<7}  {why}".rstrip())
        lines += [f"  {'':<18}  applies where {when}" for when in s.when]
    return plain("\n".join(lines))


def _columns(judged: Judgement, marked: Marked) -> Iterator[str]:
    """Each column, and the place of its cause where that is shown for the first time."""
    columns = judged.analysis.columns
    rows = table([(c.name, c.level.value + (" (kept)" if c.kept else ""), because(c.cause)) for c in columns])
    seen = set()
    for column, row in zip(columns, rows, strict=True):
        yield row
        place = (column.cause.line, column.cause.column) if column.cause else None
        if place not in seen:
            seen.add(place)
            yield from _of_cause(column.cause, marked)


def _of_cause(cause: Cause | None, marked: Marked) -> list[str]:
    return marked(cause.line, cause.column, cause.function) if cause else []
