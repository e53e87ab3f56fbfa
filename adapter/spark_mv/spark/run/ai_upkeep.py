"""Upkeep of the AI answers of a project's models: ask again, remove what nobody refers to, views of who answered what."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from spark_mv.ai.pending import requests_sql
from spark_mv.ai.results import quoted
from spark_mv.ai.upkeep import costs_view_sql, errors_view_sql, provenance_sql, prune_sql, recompute_sql, unused_sql
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.look_up import ASK_AGAIN_PROPERTY
from spark_mv.spark.run.prepared import Prepared


def recompute(query: Query, models: Sequence[Prepared], errors_only: bool = False, where: str | None = None) -> str:
    """Ask the next runs of these models again for their answers. `where` is a condition over the result table."""
    lines = []
    for model in _asking(models):
        calls, results = _calls(model), _results(model)
        mine = f"arguments_hash IN (SELECT sha2(request, 256) FROM ({requests_sql(calls)}) AS __mv_q)"
        condition = f"({where}) AND {mine}" if where else mine
        rows = query(recompute_sql(results, model.invocation.invocation_id, errors_only=errors_only, where=condition))
        marked = int(rows[0]["num_inserted_rows"]) if rows and "num_inserted_rows" in rows[0] else None
        if model.facts.target.exists:
            query(
                f"ALTER TABLE {model.invocation.target} SET TBLPROPERTIES ('{ASK_AGAIN_PROPERTY}' = '{uuid.uuid4().hex}')"
            )
        number = "" if marked is None else f"{marked:,} "
        lines.append(f"{model.invocation.name}: the next run asks again for {number}AI answers")
    return "\n".join(lines)


def prune(
    query: Query,
    models: Sequence[Prepared],
    older_than_days: float = 30,
    dry_run: bool = False,
    include_unowned: bool = False,
) -> str:
    """Remove answers of this project that were written longer ago and that no row of these models, which are all of its
    models, refers to. What another project uses as well stays."""
    asking = _asking(models)
    project = asking[0].invocation.project
    until = (datetime.now(timezone.utc) - timedelta(days=float(older_than_days))).strftime("%Y-%m-%d %H:%M:%S UTC")
    lines = []
    for results in sorted({_results(model) for model in asking}):
        calls = [call for model in asking if _results(model) == results for call in _calls(model)]
        if dry_run:
            owner = f"coalesce(t.project, {quote(project)})" if include_unowned else "t.project"
            row = query(
                f"SELECT count(*) AS n FROM {results} AS t JOIN ({unused_sql(results, calls, until, project, include_unowned)}) "
                f"AS s ON t.arguments_hash = s.gone AND {owner} = {quote(project)} AND t.called_at < timestamp '{until}' "
                "WHERE s.heir IS NULL OR t.status <> 'ok'"
            )[0]
            lines.append(f"{results}: {int(row['n']):,} rows would be removed")
        else:
            rows = query(prune_sql(results, calls, until, project, include_unowned))
            lines.append(f"{results}: {int(rows[0]['num_deleted_rows']):,} rows removed")
    return "\n".join(lines)


def views(query: Query, models: Sequence[Prepared]) -> str:
    """(Re)create ai_errors and ai_costs beside the result table, and <model>__ai_answers beside each model."""
    made = []
    for model in _asking(models):
        results = _results(model)
        schema = results.rsplit(".", 1)[0]
        for name, text in (("ai_errors", errors_view_sql), ("ai_costs", costs_view_sql)):
            view = f"{schema}.{quoted(name)}"
            if view not in made:
                query(text(view, results))
                made.append(view)
        view = f"{model.invocation.schema}.{quoted(model.invocation.identifier + '__ai_answers')}"
        query(f"CREATE OR REPLACE VIEW {view} AS\n{provenance_sql(_calls(model), results)}")
        made.append(view)
    return "\n".join(made)


def _asking(models: Sequence[Prepared]) -> list[Prepared]:
    asking = [model for model in models if model.ai is not None and model.ai.calls]
    if not asking:
        names = ", ".join(model.invocation.name for model in models) or "no nondeterministic_mv in this project"
        raise RefusedError(f"there is no AI function in {names}")
    return asking


def _calls(model: Prepared) -> Sequence[AiCall]:
    return model.ai.calls if model.ai is not None else ()


def _results(model: Prepared) -> str:
    assert model.runner is not None
    return model.runner.context.results_table
