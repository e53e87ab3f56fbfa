"""The model's SELECT as this run evaluates it, and the tables beside the model's own that it reads: draws and AI answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import refused
from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.rewrite import RewriteResult, rewrite
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.state import StateFacts
from spark_mv.maintenance.steps.versions import rounds_at_versions
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.source_text import one_line
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import SessionFacts, query_columns, state_facts
from spark_mv.spark.run.pins import run_pins
from spark_mv.spark.run.read_model import ReadModel

if TYPE_CHECKING:  # loaded by models that need them only
    from spark_mv.query.ai_calls.ai_plan import AiPlan
    from spark_mv.spark.run.ai import AiRunner
    from spark_mv.spark.run.draws import KeptDraws


@dataclass(frozen=True)
class Evaluated:
    """`state`: the state table, as far as the model can have one. `ai`: the model's calls, over the sources as they are
    whenever one looks. `runner` and `draws` are None for a model without AI calls or a random filter."""

    rewritten: Rewritten
    pins: Pins
    state: StateFacts
    draws: KeptDraws | None
    runner: AiRunner | None
    ai: AiPlan | None


def evaluate(
    adapter: Any,
    query: Query,
    invocation: Invocation,
    profile: Mapping[str, Any],
    config: ModelConfig,
    model: ReadModel,
    session: SessionFacts,
    as_of: datetime,
    columns: tuple[Column, ...] | None = None,
    last: RunRecord | None = None,
) -> Evaluated:
    """`columns` of the result, where they are known; `last`: the record of the model's last run. Raises RefusedError for what cannot be evaluated once per run, or kept."""
    state = _state(query, invocation, config, model.analysis)
    sql = model.volatile_sql
    asks = Level.AI in model.analysis.levels
    runner = _runner(adapter, invocation, profile, config, as_of, last) if asks else None
    pins = run_pins(as_of, session, model.schemas, model.analysis.word_columns)
    draws = _draws(query, invocation, config, model, sql, pins)
    result = _rewrite(query, sql, model, pins, draws, runner, columns)
    rewritten = result.rewritten
    if result.ai:
        rounds = rounds_at_versions(result.ai.rounds, tuple(model.sources.values()))
        rewritten = replace(rewritten, ai_rounds=rounds)
    if draws:
        rewritten = replace(
            rewritten,
            draw_sql=draws.draw_sql,
            draw_columns=draws.columns,
            draw_fingerprints=draws.fingerprints,
            filter_print=_filter_print(model.analysis),
        )
    return Evaluated(rewritten, pins, state, draws, runner, result.ai)


def _state(query: Query, invocation: Invocation, config: ModelConfig, analysis: Analysis) -> StateFacts:
    draws_rows = analysis.rows_level is Level.NONDETERMINISTIC
    has_state = draws_rows or (config.on_source_delete == "keep" and Level.COMMAND in analysis.levels)
    return state_facts(query, invocation.state_table) if has_state and invocation.state_exists else StateFacts()


def _runner(
    adapter: Any,
    invocation: Invocation,
    profile: Mapping[str, Any],
    config: ModelConfig,
    as_of: datetime,
    last: RunRecord | None,
) -> AiRunner:
    from spark_mv.query.ai_calls.kept_answers import KeptAnswers
    from spark_mv.spark.run.ai import ai_runner

    return ai_runner(
        adapter,
        invocation.name,
        invocation.schema,
        invocation.invocation_id,
        invocation.project,
        as_of,
        profile.get("ai") or {},
        config.ai,
        config.unique_key,
        (profile.get("safety") or {}).get("file_format"),
        KeptAnswers(invocation.target, config.unique_key, config.freeze) if config.freeze else None,
        last.ai_before if last is not None else {},
    )


def _draws(
    query: Query, invocation: Invocation, config: ModelConfig, model: ReadModel, sql: str, pins: Pins
) -> KeptDraws | None:
    if model.analysis.rows_level is not Level.NONDETERMINISTIC:
        return None
    from spark_mv.spark.run.draws import kept_draws

    declared = {name.lower(): Level(words["determinism"]) for name, words in model.functions.items()}
    table = invocation.state_table
    return kept_draws(query, invocation.name, sql, model.verdict, config.unique_key, declared, table, pins)


def _rewrite(
    query: Query,
    sql: str,
    model: ReadModel,
    pins: Pins,
    draws: KeptDraws | None,
    runner: AiRunner | None,
    columns: tuple[Column, ...] | None,
) -> RewriteResult:
    result = rewrite(
        draws.filtered_sql if draws else sql,
        model.analysis,
        pins,
        model.schemas,
        lambda sql: columns or query_columns(query, draws.describable(sql) if draws else sql),
        runner.context if runner else None,
        draws.candidates if draws else None,
    )
    if result.errors:
        raise refused(result.errors, f"model {model.model}: ")
    return result


def _filter_print(analysis: Analysis) -> str:
    texts = sorted(one_line(p.text) for p in analysis.predicates if p.level is Level.NONDETERMINISTIC)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
