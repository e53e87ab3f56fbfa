"""Adopt: a table that another materialization made becomes a nondeterministic_mv's, with the values that it has.

What is looked at is what the next run will look at: its columns, its plan, its calls. What is written is one answer per request
that the table's AI columns hold, table properties, and a commit without rows that carries the record; no row of the table is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.taken_over import HeldColumn, Holding, counts_sql, insert_sql
from spark_mv.maintenance.adoption import ADOPTED, adoption_record
from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.maintenance.config import column_names
from spark_mv.maintenance.decide import begin, decide
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import TargetFacts
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.read_query import answers_decide
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.steps.stage_texts import differs
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import pin
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.delta_source import FEED_PROPERTY
from spark_mv.spark.formats.remains import OWNER_PROPERTY
from spark_mv.spark.formats.replace_using import VECTORS
from spark_mv.spark.formats.turn import Turn, take
from spark_mv.spark.run.amendments import by_delta_names, default_feed
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import target_facts, uncastable
from spark_mv.spark.run.prepare import look
from spark_mv.spark.run.prepared import Prepared

EXAMPLES = 5


@dataclass(frozen=True)
class AnswerCounts:
    """Of one AI column, see ai.taken_over.counts_sql."""

    column: str
    rows: int = 0
    empty: int = 0
    edited: int = 0
    taken: int = 0
    answers: int = 0
    known: int = 0
    others: int = 0
    overruled: int = 0


@dataclass(frozen=True)
class Adoption:
    """What adopting a table means, found out without touching it. `rows` of the table; `new` rows that the query gives, `gone` ones that
    only the table has, `differing` ones with how many of them differ in which column (None: not compared, `uncompared` says why).
    `asked`: AI calls of the next run."""

    seen: Prepared
    table: TargetFacts
    record: RunRecord
    plan: Plan
    rows: int
    new: int | None = None
    gone: int | None = None
    differing: int | None = None
    by_column: Mapping[str, int] | None = None
    uncompared: str = ""
    held: Holding | None = None
    answers: tuple[AnswerCounts, ...] = ()
    asked: int | None = None

    @property
    def ai_columns(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.seen.analysis.columns if Level.AI in c.levels)


def examine(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> Adoption:
    """Look at a model's table and its query. Raises RefusedError for what cannot be adopted, with the cure."""
    query = Ask(adapter.query, adapter.mv_spark())
    table = target_facts(query, invocation.target, invocation.target_exists, invocation.unique_id)
    _refuse(invocation, table)
    asked = replace(invocation, full_refresh=True, partial=False)  # what is there is not ours yet
    seen = look(adapter, asked, profile)
    if frozen := _to_freeze(seen):
        asked = replace(asked, config={**asked.config, "freeze": frozen})
        seen = look(adapter, asked, profile)
    rows = _check_keys(query, seen, table)
    assert seen.plan.record is not None and table.version is not None
    record = adoption_record(seen.plan.record, invocation.unique_id, table.version, rows)
    plan = _next_plan(query, seen, table, record)
    found = Adoption(seen, table, record, plan, rows)
    return _with_answers(query, _compared(query, found))


def apply(adapter: Any, found: Adoption, record_statement: str) -> None:
    """Do it. `record_statement` makes a commit without rows. Raises TurnTaken where somebody publishes meanwhile."""
    invocation, session = found.seen.invocation, adapter
    if found.held is not None and any(c.answers > c.known for c in found.answers):
        adapter.query(insert_sql(found.held, invocation.invocation_id, invocation.project))
    wanted = by_delta_names(invocation.config.get("tblproperties") or {})
    feed = default_feed(column.name for column in found.table.columns)
    properties = {VECTORS: "true", FEED_PROPERTY: feed, **wanted, OWNER_PROPERTY: invocation.unique_id}
    listed = ", ".join(f"{string_literal(k)} = {string_literal(v)}" for k, v in properties.items())
    adapter.query(f"alter table {invocation.target} set tblproperties ({listed})")
    record = found.record
    name = f"spark_mv:{invocation.unique_id}"
    turn = Turn(invocation.target, name, record.turn, record.to_json(), record.run_id)
    take(turn, session, Ask(adapter.query, adapter.mv_spark()), lambda: adapter.query(record_statement))


def _refuse(invocation: Invocation, table: TargetFacts) -> None:
    name = invocation.name
    if not table.exists:
        raise RefusedError(
            "NOTHING_TO_ADOPT", f"model {name}: there is no table {invocation.target} to adopt; dbt run makes it"
        )
    if not table.is_table:
        raise RefusedError(
            "NOTHING_TO_ADOPT",
            f"model {name}: {invocation.target} is a view and keeps no values. dbt run --full-refresh makes a table",
        )
    if table.provider != "delta":
        raise RefusedError(
            "NOT_DELTA",
            f"model {name}: {invocation.target} is stored as {table.provider or 'an unknown format'}; only Delta tables can be adopted. "
            + (
                f"`convert to delta {invocation.target}` turns one of Parquet into one"
                if table.provider == "parquet"
                else "dbt run --full-refresh makes it anew, with new draws and answers"
            ),
        )
    if table.ours and table.record is not None:
        done = "was adopted already; dbt run is next" if table.record.strategy == ADOPTED else "is one already"
        raise RefusedError("ADOPTED_ALREADY", f"model {name}: {invocation.target} {done}")


def _to_freeze(seen: Prepared) -> list[str]:
    """The columns that `incremental` was told not to overwrite, beside those that are kept anyway."""
    excluded = {name.lower() for name in column_names(seen.invocation.config.get("merge_exclude_columns"))}
    more = [
        c.name for c in seen.analysis.columns if c.name.lower() in excluded and not c.kept and Level.AI not in c.levels
    ]
    return [*seen.config.freeze, *more] if more else []


def _check_keys(query: Query, seen: Prepared, table: TargetFacts) -> int:
    """The number of rows. Raises RefusedError where the key does not tell them apart."""
    model, keys = seen.invocation.name, seen.config.unique_key
    if missing := [key for key in keys if not table.has(key)]:
        raise RefusedError(
            "UNKNOWN_UNIQUE_KEY",
            f"model {model}: {seen.invocation.target} has no column {', '.join(missing)}, which its unique_key needs; its columns are "
            f"{', '.join(c.name for c in table.columns)}",
        )
    names = ", ".join(quoted(key) for key in keys)
    null = " or ".join(f"{quoted(key)} is null" for key in keys)
    row = query(
        f"select coalesce(sum(n), 0) as rows, count_if(n > 1 and not ({null})) as repeated, coalesce(sum(if({null}, n, 0)), 0) as empty, "
        f"to_json(slice(collect_list(struct({names})) filter (where n > 1 and not ({null})), 1, {EXAMPLES})) as examples "
        f"from (select {names}, count(*) as n from {seen.invocation.target} group by {names})"
    )[0]
    problems = []
    if row["repeated"]:
        shown = "" if seen.config.sensitive_key else f", for instance {row['examples']}"
        problems.append(f"{row['repeated']:,} keys stand in several rows{shown}")
    if row["empty"]:
        problems.append(f"{row['empty']:,} rows have NULL in the key")
    if problems:
        raise RefusedError(
            "KEY_REPEATED",
            f"model {model}: the rows of {seen.invocation.target} cannot be told apart by {', '.join(keys)}: {'; '.join(problems)}. "
            "Nothing was changed. Delete the rows that are too many, or take another unique_key",
        )
    return int(row["rows"])


def _next_plan(query: Query, seen: Prepared, table: TargetFacts, record: RunRecord) -> Plan:
    """The plan of the run that follows the adoption."""
    ours = replace(
        table,
        ours=True,
        record=record,
        intact=True,
        clean=(),
        uncastable=uncastable(query, table.columns, seen.rewritten.columns),
    )
    facts = replace(seen.facts, full_refresh=False, target=ours)
    return decide(begin(replace(seen.situation, facts=facts, notes=())))


def _compared(query: Query, found: Adoption) -> Adoption:
    seen = found.seen
    if seen.rewritten.draw_sql is not None:
        return replace(
            found, uncompared="a random filter decides which rows there are; those of the table count as drawn"
        )
    if answers_decide(seen.analysis):
        return replace(found, uncompared="AI answers decide which rows there are")
    ai = {name.lower() for name in found.ai_columns}
    columns = [
        c
        for c in found.plan.columns
        if c.role in (Role.DATA, Role.PINNED) and c.in_query and c.in_target and c.name.lower() not in ai
    ]
    both = "q.__mv_n is not null and t.__mv_there"
    per_column = "".join(f", count_if({both} and {differs([c])}) as d{k}" for k, c in enumerate(columns))
    row = query(
        f"select count_if(t.__mv_there is null) as new, count_if(q.__mv_n is null) as gone, count_if({both} and {differs(columns)}) "
        f"as differing{per_column} from (select *, 1 as __mv_n from (\n{seen.rewritten.sql}\n)) q full outer join "
        f"(select *, true as __mv_there from {seen.invocation.target}) t on {_same_key(seen)}"
    )[0]
    by_column = {c.name: int(row[f"d{k}"]) for k, c in enumerate(columns) if row[f"d{k}"]}
    return replace(
        found, new=int(row["new"]), gone=int(row["gone"]), differing=int(row["differing"]), by_column=by_column
    )


def _same_key(seen: Prepared) -> str:
    return " and ".join(f"q.{quoted(key)} <=> t.{quoted(key)}" for key in seen.config.unique_key)


def _with_answers(query: Query, found: Adoption) -> Adoption:
    runner, seen = found.seen.runner, found.seen
    if runner is None:
        return found
    expected = runner.count(seen.rewritten.ai_rounds)
    asked = expected.calls + expected.left_for_later
    held = None if seen.rewritten.draw_sql is not None else _holding(found)
    if held is None:
        return replace(found, asked=asked)
    rows = query(counts_sql(held))
    words = ("rows", "empty", "edited", "taken", "answers", "known", "others", "overruled")
    counts = tuple(AnswerCounts(str(row["name"]), **{word: int(row[word]) for word in words}) for row in rows)
    taken = sum(c.answers - c.known for c in counts)
    return replace(found, held=held, answers=counts, asked=max(0, asked - taken))


def _holding(found: Adoption) -> Holding | None:
    """Where answers of the query's calls stand in the table; None where no call's answer is a column's value."""
    from spark_mv.query.ai_calls.asked_rows import with_requests

    seen, runner = found.seen, found.seen.runner
    assert runner is not None
    context = runner.context
    situation = seen.situation
    pinned = pin(situation.analysis.sql, situation.pins).sql
    marked, calls = with_requests(
        pinned, results_table=context.results_table, identity=context.identity, functions=context.functions
    )
    there = {c.name.lower(): c for c in found.table.columns}
    names = [name for name in found.ai_columns if name.lower() in there]
    if not calls or not names:
        return None
    ai = {name.lower() for name in found.ai_columns}
    data = [
        c
        for c in found.plan.columns
        if c.role in (Role.KEY, Role.DATA) and c.in_query and c.in_target and c.name.lower() not in ai
    ]
    edited = tuple(_edited(data, call.columns) for call in calls)
    columns = tuple(HeldColumn(name, there[name.lower()].type, edited) for name in names)
    keys = seen.config.unique_key
    return Holding(marked, calls, seen.invocation.target, keys, columns, context.results_table)


def _edited(data: list[StagedColumn], names: frozenset[str]) -> str:
    """Whether a row is not the one that was asked about: the arguments' own columns differ where the table has them, else any."""
    own = [c for c in data if c.name.lower() in names]
    whole = {c.name.lower() for c in own} >= names
    return differs([c for c in (own if whole else data) if c.role is Role.DATA])
