"""What is known of a model before its first run: the analysis, and what the runs' own functions make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.fitting import problem_of_call
from spark_mv.explain.parts import bounded
from spark_mv.explain.supposed import Schemas, supposed_columns
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.rewrite import rewrite
from spark_mv.maintenance.strategies.propose import STRATEGIES
from spark_mv.maintenance.supposed_runs import NOW, Applies, Supposed
from spark_mv.query.ai_calls.kept_rows import UnkeptDraws, split_rows
from spark_mv.query.ai_calls.keys import AiIdentity
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis, PredicateVerdict
from spark_mv.query.functions.catalogue import declared_levels
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_scope_types import schema_columns
from spark_mv.query.rewrite.inline_views import View, inline_views
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.source_text import SourceTextError
from spark_mv.query.syntax.written_out import written_out

_UNREADABLE = frozenset({"PARSE_ERROR", "EMPTY_QUERY", "NOT_ONE_STATEMENT", "NOT_A_SELECT", "TOO_DEEP"})
"""What cannot be read can have no strategy; a missing key or a forbidden draw can be cured without a new shape."""


@dataclass(frozen=True)
class Judgement:
    """`predicates` and `errors` are those of the analysis with what a run finds beside. `supposed`: tables of which nobody
    said the columns. `model` is what the runs' functions were asked about, None for what a run refuses to read."""

    analysis: Analysis
    predicates: tuple[PredicateVerdict, ...]
    strategies: tuple[Applies, ...]
    errors: tuple[QueryError, ...]
    supposed: tuple[str, ...] = ()
    model: Supposed | None = None


@deep
def judge(
    sql: str,
    *,
    unique_key: Sequence[str] = (),
    schemas: Schemas | None = None,
    functions: Mapping[str, Any] | None = None,
    freeze: Sequence[str] = (),
    views: Mapping[str, str] | None = None,
    model: str = "model",
    time_zone: str = "UTC",
) -> Judgement:
    """The arguments are those of `analyze`. Never raises for bad SQL."""
    sql, views = written_out(sql), views or {}

    def read(text: str, tables: Schemas, key: Sequence[str] = (), rewritten: bool = True) -> Analysis:
        return analyze(
            text, unique_key=key, schemas=tables, functions=functions, freeze=freeze, views=views, model=model,
            rewritten=rewritten, types=not rewritten,
        )  # fmt: skip

    analysis = read(sql, schemas or {}, unique_key, rewritten=False)
    if any(error.code in _UNREADABLE for error in analysis.errors):
        return _refused(analysis)
    try:
        text = inline_views(sql, {name: View(view) for name, view in views.items()})
    except SourceTextError as error:
        return _refused(analysis, QueryError("UNSUPPORTED_SYNTAX", f"model {model}: {error}"))
    tables = supposed_columns(text, schemas or {}, unique_key)
    known = tables == dict(schemas or {})
    planned = replace(analysis if known else read(sql, tables, unique_key, rewritten=False), sql=text)
    names = [column.name for column in planned.columns]
    key = [name for name in unique_key if name.lower() in map(str.lower, names)] or names
    asked_of = {table.name.lower() for table in planned.tables}
    there = schema_columns({name: columns for name, columns in tables.items() if name.lower() in asked_of})
    pins = Pins(NOW, time_zone, "me", "me", columns=there | frozenset(planned.word_columns))
    context = (
        AiContext("ai_results", AiIdentity("model", problem_of=problem_of_call), ())
        if Level.AI in planned.levels
        else None
    )
    filtered, candidates, texts = text, None, None
    try:
        if planned.rows_level is Level.NONDETERMINISTIC:
            declared, _ = declared_levels(functions)
            kept = split_rows(text, lambda t: read(t, tables), key, declared, relation("state"))
            filtered, candidates, texts = kept.filtered_sql, kept.draw_sql, kept.split.followed
        columns = tuple(Column(column.name, column.type) for column in planned.columns)
        result = rewrite(filtered, planned, pins, tables, lambda _: columns, context, candidates)
    except (UnkeptDraws, SourceTextError) as error:
        return _refused(analysis, QueryError("NOT_KEPT", f"model {model}: {error}"))
    if result.errors:
        return _refused(analysis, *result.errors)
    rewritten = replace(result.rewritten, filter_texts=texts)
    asked = Supposed(planned, ModelConfig(tuple(key), freeze=tuple(freeze)), rewritten, tables, pins, context)
    unknown = tuple(name for name in tables if name not in (schemas or {}))
    predicates = bounded(analysis, result.rewritten)
    return Judgement(analysis, predicates, asked.strategies(), analysis.errors, unknown, asked)


def _refused(analysis: Analysis, *errors: QueryError) -> Judgement:
    """What a run would refuse. Its `errors` are said where the analysis has found none of its own in the SQL."""
    reason = (Reason("ERRORS", "the query has errors, see there"),)
    none = tuple(Applies(name, False, reason) for name in ("NO_OP", *STRATEGIES, "COMPLETE_RECOMPUTE"))
    own = [error for error in analysis.errors if error.code != "MISSING_UNIQUE_KEY"]
    return Judgement(analysis, analysis.predicates, none, (*analysis.errors, *(() if own else errors)))
