"""Erase what the tables of a model still hold of a person whose rows the sources have lost, and say where traces remain.

A row goes from the model's table by a run, once its sources have lost it. What a run leaves: rows that a policy keeps, what the state table
remembers, answers in the result table, bounds of keys in the bookkeeping, keys and values in the history of runs. No statement here writes a
key or a value into the log of a table: rows are found by a MERGE, whose source the log does not name.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import TargetFacts
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.state import StateFacts
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.turn import Turn, take
from spark_mv.spark.run.ai_upkeep import Models, prune
from spark_mv.spark.run.erased_text import Erased, erased_text
from spark_mv.spark.run.forgetting import checked_condition
from spark_mv.spark.run.header import session_of
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import state_facts
from spark_mv.spark.run.prepare import look
from spark_mv.spark.run.prepared import Prepared
from spark_mv.spark.run.run_history import TABLE as RUNS


@dataclass(frozen=True)
class Request:
    """What to erase: rows of the model with these `keys`, or those where a condition on its columns holds."""

    keys: Sequence[Any] = ()
    where: str | None = None
    functions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def erase(models: Models, invocation: Invocation, asked: Request, dry_run: bool, record_statement: str) -> str:
    """Erase, or with `dry_run` count what would be; what to tell the user. `models`: all of the project. Raises RefusedError where
    the rows are still in the sources, or the model was not run since they went."""
    adapter, query = models.adapter, Ask(models.query, models.adapter.mv_spark())
    with session_of(adapter, invocation):
        seen = look(adapter, replace(invocation, allow_future_as_of=True), models.profile)
        found = _examine(query, seen, asked)
        if not dry_run:
            _apply(adapter, query, seen, found, record_statement)
    answers = prune(models, 0, dry_run) if seen.runner is not None else ""
    if not dry_run:
        _purge(query, seen, found)
    return erased_text(replace(_report(query, seen, found, asked), answers=answers), dry_run)


@dataclass(frozen=True)
class _Found:
    """`rows` of the table and `remembered` ones of the state, with the conditions that find them."""

    target: TargetFacts
    record: RunRecord
    state: StateFacts
    condition: str
    rows: int
    remembered: int
    state_condition: str


def _examine(query: Query, seen: Prepared, asked: Request) -> _Found:
    model, target, table = seen.invocation.name, seen.facts.target, seen.invocation.target
    if not target.ours or target.record is None or target.provider != "delta":
        raise RefusedError(
            "ERASE_NOT_HERE",
            f"model {model}: {table} is not a Delta table with the bookkeeping of runs. Nothing was changed. Erase by hand what it holds, see "
            "docs/privacy.md; a table that lost its bookkeeping has it again after a run",
        )
    if bool(asked.keys) == bool(asked.where):
        raise RefusedError(
            "ERASE_WHAT", f"model {model}: say which rows: keys: [4711] or where: a condition, and one of the two"
        )
    condition = (
        _with_keys(seen, asked.keys)
        if asked.keys
        else checked_condition(query, table, model, str(asked.where), target, asked.functions)
    )
    moved = [name for name, version in seen.facts.source_versions.items() if target.record.sources.get(name) != version]
    if moved or not target.intact:
        why = f"{', '.join(moved)} changed since" if moved else "somebody else wrote to the table since"
        raise RefusedError(
            "ERASE_RUN_FIRST",
            f"model {model}: its table is not that of its sources as they are: {why}. Nothing was changed. Run the model, which takes the "
            "rows out that the sources have lost, and then erase what remains",
        )
    rows = _count(query, table, condition)
    still = rows if not seen.config.keeps_rows else _in_query(query, seen, condition)
    if still:
        raise RefusedError(
            "ERASE_IN_SOURCE",
            f"model {model}: {still:,} of these rows are what the query still gives: the next run would bring them back. Nothing was changed. "
            f"Delete them where they come from ({', '.join(sorted(s.name for s in seen.facts.sources)) or 'the query'}) and run the model first",
        )
    state = state_facts(query, seen.invocation.state_table) if seen.invocation.state_exists else StateFacts()
    remembered, of_state = _in_state(query, seen, state, condition)
    return _Found(target, target.record, state, condition, rows, remembered, of_state)


def _with_keys(seen: Prepared, keys: Sequence[Any]) -> str:
    """The condition for keys that the user wrote: a value each, or a list or mapping of them where the key has several columns."""
    types = {c.name.lower(): c.type for c in seen.facts.target.columns}
    names = seen.config.unique_key
    parts = []
    for key in keys:
        named = {str(name).lower(): value for name, value in key.items()} if isinstance(key, Mapping) else None
        values = (
            [named.get(name.lower()) for name in names]
            if named is not None
            else key
            if isinstance(key, list)
            else [key]
        )
        if len(values) != len(names) or (named is not None and set(named) != {name.lower() for name in names}):
            raise RefusedError(
                "ERASE_KEYS",
                f"model {seen.invocation.name}: a key of it has {len(names)} columns: {', '.join(names)}. Nothing was changed",
            )
        equal = (
            f"{quoted(name)} <=> cast({string_literal(str(value))} as {types[name.lower()]})"
            for name, value in zip(names, values, strict=True)
        )
        parts.append(f"({' and '.join(equal)})")
    return " or ".join(parts)


def _in_query(query: Query, seen: Prepared, condition: str) -> int:
    """How many of the table's rows, of a model that keeps rows which the sources lost, the query gives."""
    table = seen.invocation.target
    if (
        seen.rewritten.draw_sql is not None
    ):  # which rows it gives is drawn: none is known to be kept by the policy alone
        return _count(query, table, condition)
    same = " and ".join(f"q.{quoted(key)} <=> t.{quoted(key)}" for key in seen.config.unique_key)
    row = query(
        f"select count(*) as n from (select * from {table} where {condition}) t left semi join (\n{seen.rewritten.sql}\n) q on {same}"
    )[0]
    return int(row["n"])


def _in_state(query: Query, seen: Prepared, state: StateFacts, condition: str) -> tuple[int, str]:
    """How many rows the state remembers, and the condition that finds them: the same, where it has the columns."""
    if not state.exists or not state.ours or state.record is None:
        return 0, ""
    try:
        return _count(query, seen.invocation.state_table, condition), condition
    except Exception:  # it has fewer columns than the table: by the keys of the table's rows
        keys = ", ".join(quoted(key) for key in seen.config.unique_key)
        by_key = f"struct({keys}) in (select struct({keys}) from {seen.invocation.target} where {condition})"
        return _count(query, seen.invocation.state_table, by_key), by_key


def _count(query: Query, table: str, condition: str) -> int:
    return int(query(f"select count(*) as n from {table} where (\n{condition}\n)")[0]["n"])


def _apply(adapter: Any, query: Query, seen: Prepared, found: _Found, record_statement: str) -> None:
    """State, table with its bookkeeping, history of runs. Each is one commit, and may be done again."""
    name, app = seen.invocation.target, f"spark_mv:{seen.invocation.unique_id}"
    if found.remembered:
        assert found.state.record is not None
        kept = replace(found.state.record, run_id=uuid.uuid4().hex, base_version=found.state.version)
        turn = Turn(seen.invocation.state_table, f"{app}:state", found.state.turn, kept.to_json(), kept.run_id)
        delete = _delete(seen, seen.invocation.state_table, found.state_condition)
        take(turn, adapter, query, lambda: adapter.query(delete))
    if found.rows or found.record.key_bound or found.record.key_floor:
        last, target = found.record, found.target
        record = replace(
            last,
            run_id=uuid.uuid4().hex,
            turn=target.turn,
            base_version=target.version,
            honoured=last.base_version if last.honoured is None else last.honoured,
            target_rows=None if last.target_rows is None else last.target_rows - found.rows,
            unaudited=last.unaudited + 1,
            key_bound=None,
            key_floor=None,
        )
        sql = _delete(seen, name, found.condition) if found.rows else record_statement
        take(Turn(name, app, record.turn, record.to_json(), record.run_id), adapter, query, lambda: adapter.query(sql))
    if _has_runs(seen):
        adapter.query(
            f"update {seen.invocation.schema}.{RUNS} set audit = null, message = if(status = 'error', '(erased)', message) "
            f"where model = {string_literal(seen.invocation.unique_id)} and (audit is not null or status = 'error')"
        )


def _purge(query: Query, seen: Prepared, found: _Found) -> None:
    """Rows that went, by this or by a run, stand in files of the newest version still, where a deletion vector hides them; no VACUUM
    takes those. Changes no row."""
    tables = [seen.invocation.target]
    tables += [seen.invocation.state_table] if found.state.exists else []
    tables += [seen.runner.context.results_table] if seen.runner is not None else []
    for table in tables:
        query(f"reorg table {table} apply (purge)")


def _delete(seen: Prepared, table: str, condition: str) -> str:
    keys = [quoted(key) for key in seen.config.unique_key]
    same = " and ".join(f"t.{key} <=> s.{key}" for key in keys)
    return (
        f"merge into {table} t using (select distinct {', '.join(keys)} from {table} where (\n{condition}\n)) s on {same} "
        "when matched then delete"
    )


def _has_runs(seen: Prepared) -> bool:
    return RUNS in {name.lower() for name in seen.invocation.relation_names}


def _report(query: Query, seen: Prepared, found: _Found, asked: Request) -> Erased:
    tables = [seen.invocation.target]
    if found.state.exists:
        tables.append(seen.invocation.state_table)
    texts = [
        str(part)
        for key in asked.keys
        for part in (key.values() if isinstance(key, Mapping) else key if isinstance(key, list) else [key])
    ]
    named = {table: _naming(query, table, texts) for table in tables} if texts else {}
    results = seen.runner.context.results_table if seen.runner is not None else None
    schema = seen.invocation.schema
    return Erased(
        model=seen.invocation.name,
        rows=found.rows,
        remembered=found.remembered,
        bounds=bool(found.record.key_bound or found.record.key_floor),
        sources=tuple(sorted(source.name for source in seen.facts.sources)),
        tables=(*tables, *((results,) if results else ()), *((f"{schema}.{RUNS}",) if _has_runs(seen) else ())),
        named={table: versions for table, versions in named.items() if versions},
        followed=seen.invocation.followed,
        asks=results is not None,
    )


def _naming(query: Query, table: str, texts: Sequence[str]) -> tuple[int, ...]:
    """The versions whose commits name one of these texts."""
    found = []
    for row in query(f"describe history {table}"):
        said = f"{row['userMetadata'] or ''} {row['operationParameters'] or ''}"
        if any(text and text in said for text in texts):
            found.append(int(row["version"]))
    return tuple(sorted(found))
