"""The analysis as plain data for JSON, and as text for people. The JSON is documented in docs/explain-json.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from spark_mv.query.analysis.eligibility import eligible
from spark_mv.query.analysis.verdict import Analysis, Cause
from spark_mv.query.functions.level import Level

FORMAT_VERSION = 1


def explain_data(analysis: Analysis, *, model: str = "model", unique_key: Sequence[str] = ()) -> dict[str, Any]:
    """The whole verdict as dicts, lists, strings, numbers, booleans and None. Keys are stable within FORMAT_VERSION."""
    return {
        "format_version": FORMAT_VERSION,
        "model": model,
        "unique_key": list(unique_key),
        "fingerprint": analysis.fingerprint,
        "level": max((level for _, level, _, _ in analysis.functions), default=Level.DETERMINISTIC).value,
        "rows_level": analysis.rows_level.value,
        "columns": [
            {
                "name": c.name,
                "level": c.level.value,
                "levels": [level.value for level in sorted(c.levels)],
                "kept": c.kept,
                "frozen": c.frozen,
                "expression": c.expression,
                "fingerprint": c.fingerprint,
                "cause": _cause(c.cause),
            }
            for c in analysis.columns
        ],
        "predicates": [
            {
                "text": p.text,
                "clause": p.clause,
                "scope": p.scope,
                "line": p.line,
                "column": p.column,
                "level": p.level.value,
                "clock": p.clock,
                "solved": p.solved,
                "valid_from": p.valid_from,
                "valid_to": p.valid_to,
                "guard": p.guard,
                "cause": _cause(p.cause),
            }
            for p in analysis.predicates
        ],
        "clauses": [
            {
                "clause": c.clause,
                "text": c.text,
                "scope": c.scope,
                "line": c.line,
                "column": c.column,
                "level": c.level.value,
                "cause": _cause(c.cause),
            }
            for c in analysis.clauses
        ],
        "functions": [
            {"name": name, "level": level.value, "line": line, "column": column}
            for name, level, line, column in analysis.functions
        ],
        "tables": [{"name": t.name, "occurrences": t.occurrences, "via": list(t.via)} for t in analysis.tables],
        "shape": asdict(analysis.shape),
        "strategies": [
            {
                "name": e.strategy,
                "applies": e.applies,
                "reason_codes": [r.code for r in e.reasons],
                "reasons": [{"code": r.code, "sentence": r.sentence} for r in e.reasons],
            }
            for e in eligible(analysis)
        ],
        "errors": [{"code": e.code, "message": e.message, "line": e.line, "column": e.column} for e in analysis.errors],
    }


def _cause(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    return {"function": cause.function, "line": cause.line, "column": cause.column, "path": list(cause.path)}


def explain_text(data: dict[str, Any]) -> str:
    """The same for people: errors first, then columns, predicates and strategies."""
    lines = [f"{data['model']}: {data['level']}, keyed by {', '.join(data['unique_key']) or '(no unique_key)'}"]
    lines += [f"  error {e['code']}: {e['message']}" for e in data["errors"]]
    lines += ["", "columns"]
    lines += _table(
        [(c["name"], c["level"] + (" (kept)" if c["kept"] else ""), _because(c["cause"])) for c in data["columns"]]
    )
    if data["predicates"]:
        lines += ["", "predicates"]
        for p in data["predicates"]:
            where = f" in {p['scope']}" if p["scope"] else ""
            lines.append(f"  {p['clause']}{where}, line {p['line']}: {p['text']}")
            lines.append(f"    {p['level']}{_bounds(p)}")
    notable = [c for c in data["clauses"] if c["level"] != Level.DETERMINISTIC.value]
    if notable:
        lines += ["", "clauses"]
        lines += [f"  {c['clause']}, line {c['line']}: {c['level']}, {_because(c['cause'])}" for c in notable]
    lines += ["", "strategies"]
    lines += _table(
        [
            (s["name"], "applies" if s["applies"] else "-", "; ".join(r["sentence"] for r in s["reasons"]))
            for s in data["strategies"]
        ]
    )
    return "\n".join(lines)


def _because(cause: dict[str, Any] | None) -> str:
    if cause is None:
        return ""
    through = f", through {' → '.join(cause['path'])}" if cause["path"] else ""
    return f"{cause['function']} (line {cause['line']}, column {cause['column']}{through})"


def _bounds(predicate: dict[str, Any]) -> str:
    if not predicate["clock"]:
        return ""
    low, high = predicate["valid_from"], predicate["valid_to"]
    if not predicate["solved"]:
        within = f", never before {low}" if low else ""
        within += f", never from {high} on" if high else ""
        return f", on the clock, not solved for it: evaluated at the last and at this run's instant{within}"
    return f", on the clock: from {low or 'always'} until {high or 'for ever'}"


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    return [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
