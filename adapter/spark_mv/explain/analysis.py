"""What is known of a model before its first run, as plain data for JSON and as text. The JSON is documented in docs/explain-json.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spark_mv.explain.judgement import Judgement
from spark_mv.explain.parts import (
    because,
    cause_data,
    column_data,
    predicate_data,
    predicate_lines,
    reasons_data,
    table,
)
from spark_mv.query.functions.level import Level

FORMAT_VERSION = 1


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


def _level(judged: Judgement) -> Level:
    return max((level for _, level, _, _ in judged.analysis.functions), default=Level.DETERMINISTIC)


def explain_text(judged: Judgement, *, model: str = "model", unique_key: Sequence[str] = ()) -> str:
    """The same for people: errors first, then columns, predicates and strategies."""
    analysis = judged.analysis
    lines = [f"{model}: {_level(judged).value}, keyed by {', '.join(unique_key) or '(no unique_key)'}"]
    lines += [f"  error {e.code}: {e.message}" for e in judged.errors]
    if judged.supposed:
        lines.append(
            f"  the columns of {', '.join(judged.supposed)} are taken from the query, and their types are not known; name them "
            "with --schema"
        )
    lines += ["", "columns"]
    lines += table(
        [(c.name, c.level.value + (" (kept)" if c.kept else ""), because(c.cause)) for c in analysis.columns]
    )
    if judged.predicates:
        lines += ["", "predicates", *(line for p in judged.predicates for line in predicate_lines(p))]
    notable = [c for c in analysis.clauses if c.level is not Level.DETERMINISTIC]
    if notable:
        lines += ["", "clauses"]
        lines += [f"  {c.clause}, line {c.line}: {c.level.value}, {because(c.cause)}" for c in notable]
    lines += ["", "strategies"]
    for s in judged.strategies:
        why = "; ".join(r.sentence for r in s.reasons)
        lines.append(f"  {s.strategy:<18}  {'applies' if s.applies else '-':<7}  {why}".rstrip())
        lines += [f"  {'':<18}  applies where {when}" for when in s.when]
    return "\n".join(lines)
