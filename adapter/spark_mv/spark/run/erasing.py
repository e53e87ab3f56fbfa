"""Erase what the tables of a model still hold of a person whose rows the sources have lost, and say where traces remain.

A row goes from the model's table by a run, once its sources have lost it. What a run leaves: rows that a policy keeps, what the state table
remembers, answers in the result table, bounds of keys in the bookkeeping, keys and values in the history of runs. No statement here writes a
key or a value into the log of a table: rows are found by a MERGE, whose source the log does not name.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.similar_table import similar_table
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.state import StateFacts
from spark_mv.query.syntax.condition import where_clause
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.turn import Turn, take
from spark_mv.spark.run.ai_upkeep import Models, prune
from spark_mv.spark.run.erased_rows import Request, Rows, rows_to_erase
from spark_mv.spark.run.erased_text import Erased, erased_text
from spark_mv.spark.run.header import session_of
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import describe, state_facts
from spark_mv.spark.run.prepare import look
from spark_mv.spark.run.prepared import Prepared
from spark_mv.spark.run.run_history import TABLE as RUNS

_NO_MATTER = frozenset(
    {
        "BOUND_CROSSED", "CLOCK_MOVED", "CLOCK_BACK", "AI_PENDING", "ASK_AGAIN", "FORGET_REQUESTED", "SOURCE_UNVERSIONED", "REFRESH_FULL",
        "NOTHING_CHANGED",
    }
)  # fmt: skip
"""Why a next run has something to do although no source has lost or brought a row since the last one."""


@dataclass(frozen=True)
class _Found:
    """`tables` that hold something of the model's rows, with their providers."""

    record: RunRecord
    state: StateFacts
    rows: Rows
    tables: Mapping[str, str]


def erase(models: Models, invocation: Invocation, asked: Request, dry_run: bool, record_statement: str) -> str:
    """Erase, or with `dry_run` count what would be; what to tell the user. `models`: all of the project. Raises RefusedError where
    the rows are still in the sources, or the model was not run since they went."""
    adapter, query = models.adapter, Ask(models.query, models.adapter.mv_spark())
    with session_of(adapter, invocation):
        seen = look(adapter, replace(invocation.by_any_strategy(), allow_future_as_of=True), models.profile)
        found = _examine(query, seen, asked)
    # first, because it may be refused: answers are found by what the query asks for, and by nothing that goes here
    answers = prune(models, 0, dry_run) if _results(seen) in found.tables else ""
    if not dry_run:
        with session_of(adapter, invocation):
            _apply(adapter, query, seen, found, record_statement)
    return erased_text(_report(query, seen, found, asked, answers), dry_run)


def _examine(query: Query, seen: Prepared, asked: Request) -> _Found:
    model, target, table = seen.invocation.name, seen.facts.target, seen.invocation.target
    if not target.ours or target.record is None or target.provider != "delta":
        raise RefusedError(
            "ERASE_NOT_HERE",
            f"model {model}: {table} is not a Delta table with the bookkeeping of runs. Nothing was changed. Erase by hand what it holds, see "
            "docs/privacy.md; a table that lost its bookkeeping has it again after a run",
        )
    no_op = next(c for c in seen.plan.candidates if c.strategy == "NO_OP")
    if stale := [reason.sentence for reason in no_op.reasons if reason.code not in _NO_MATTER]:
        raise RefusedError(
            "ERASE_RUN_FIRST",
            f"model {model}: its table is not that of its sources as they are: {'; '.join(stale)}. Nothing was changed. Run the model, which "
            "takes the rows out that the sources have lost, and then erase what remains",
        )
    state = _state(query, seen)
    rows = rows_to_erase(query, seen, state, asked)
    names = [
        table,
        *([seen.invocation.state_table] if state.exists else []),
        *([_results(seen), similar_table(_results(seen))] if seen.ai is not None and seen.ai.calls else []),
        *([_runs(seen)] if RUNS in {name.lower() for name in seen.invocation.relation_names} else []),
    ]
    described = {name: describe(query, name) for name in names}
    return _Found(target.record, state, rows, {name: d.provider for name, d in described.items() if d is not None})


def _state(query: Query, seen: Prepared) -> StateFacts:
    """The state table, where there is one of this model's. Raises RefusedError where it is not one that its runs read."""
    table = seen.invocation.state_table
    state = state_facts(query, table) if seen.invocation.state_exists else StateFacts()
    if not state.exists or not state.ours:
        return StateFacts()
    if seen.situation.state is None:
        raise RefusedError(
            "ERASE_NOT_HERE",
            f"model {seen.invocation.name}: {table} is of an earlier form of the model, which has no state now, and no run reads it. Nothing was "
            f"changed. Drop it (drop table {table}), then erase",
        )
    if state.record is None or state.provider != "delta":
        raise RefusedError(
            "ERASE_NOT_HERE",
            f"model {seen.invocation.name}: {table} is not a Delta table with the bookkeeping of runs. Nothing was changed. Delete the rows in it "
            "by hand and run the model, see docs/privacy.md",
        )
    return state


def _results(seen: Prepared) -> str:
    return seen.runner.context.results_table if seen.runner is not None else ""


def _runs(seen: Prepared) -> str:
    return f"{seen.invocation.schema}.{quoted(RUNS)}"


def _apply(adapter: Any, query: Query, seen: Prepared, found: _Found, record_statement: str) -> None:
    """History of runs, state, and last the table with its bookkeeping: rows of the state are found by those of the table. Each is one commit,
    and where one fails all may be done again."""
    name, app, rows = seen.invocation.target, f"spark_mv:{seen.invocation.unique_id}", found.rows
    if _runs(seen) in found.tables:
        adapter.query(
            f"update {_runs(seen)} set audit = null, message = if(status = 'error', '(erased)', message), "
            "candidates = if(contains(candidates, 'FORGET_REQUESTED'), '[]', candidates) "
            f"where model = {string_literal(seen.invocation.unique_id)} and "
            "(audit is not null or status = 'error' or contains(candidates, 'FORGET_REQUESTED'))"
        )
    if rows.remembered:
        assert found.state.record is not None
        kept = replace(found.state.record, run_id=uuid.uuid4().hex, base_version=found.state.version)
        turn = Turn(seen.invocation.state_table, f"{app}:state", found.state.turn, kept.to_json(), kept.run_id)
        delete = _delete(seen, seen.invocation.state_table, rows.of_state)
        take(turn, adapter, query, lambda: adapter.query(delete))
    if rows.rows or found.record.key_bound or found.record.key_floor:
        last, target = found.record, seen.facts.target
        record = replace(
            last,
            run_id=uuid.uuid4().hex,
            turn=target.turn,
            base_version=target.version,
            honoured=last.base_version if last.honoured is None else last.honoured,
            target_rows=None if last.target_rows is None else last.target_rows - rows.rows,
            unaudited=last.unaudited + 1,
            key_bound=None,
            key_floor=None,
        )
        sql = _delete(seen, name, rows.condition) if rows.rows else record_statement
        take(Turn(name, app, record.turn, record.to_json(), record.run_id), adapter, query, lambda: adapter.query(sql))
    for table, provider in found.tables.items():
        # rows that went, by this or by a run, stand in files of the newest version still, where a deletion vector hides them; no VACUUM takes
        # those. Changes no row
        if provider == "delta":
            query(f"reorg table {table} apply (purge)")


def _delete(seen: Prepared, table: str, condition: str) -> str:
    keys = [quoted(key) for key in seen.config.unique_key]
    same = " and ".join(f"t.{key} <=> s.{key}" for key in keys)
    return (
        f"merge into {table} t using (select distinct {', '.join(keys)} from {table} {where_clause(condition)}) s on {same} "
        "when matched then delete"
    )


def _report(query: Query, seen: Prepared, found: _Found, asked: Request, answers: str) -> Erased:
    texts = [
        str(part)
        for key in asked.keys
        for part in (key.values() if isinstance(key, Mapping) else key if isinstance(key, list) else [key])
    ]
    ours = [table for table in (seen.invocation.target, seen.invocation.state_table) if table in found.tables]
    named = {table: _naming(query, table, texts) for table in ours} if texts else {}
    return Erased(
        model=seen.invocation.name,
        rows=found.rows.rows,
        remembered=found.rows.remembered,
        bounds=bool(found.record.key_bound or found.record.key_floor),
        tables=dict(found.tables),
        sources={source.name: source.provider for source in seen.facts.sources if source.view_text is None},
        named={table: versions for table, versions in named.items() if versions},
        followed=seen.invocation.followed,
        answers=answers,
    )


def _naming(query: Query, table: str, texts: Sequence[str]) -> tuple[int, ...]:
    """The versions whose commits name one of these texts."""
    found = []
    for row in query(f"describe history {table}"):
        said = f"{row['userMetadata'] or ''} {row['operationParameters'] or ''}"
        if any(text and text in said for text in texts):
            found.append(int(row["version"]))
    return tuple(sorted(found))
