"""Random filters (`where rand() < 0.1`): the draws of the candidate rows live in the model's state table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.query.ai_calls.plan import plan_ai
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.filter_draws import expand_star, refused, split_filter_draws
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.look_up import query_columns


@dataclass(frozen=True)
class KeptDraws:
    """`filtered_sql` is the model's SELECT with its draws read from the state table. The rest as in Rewritten."""

    filtered_sql: str
    draw_sql: str
    columns: tuple[Column, ...]
    fingerprints: Mapping[str, str]


def kept_draws(
    query: Query,
    model: str,
    sql: str,
    read: Callable[[str], Analysis],
    unique_key: Sequence[str],
    declared: Mapping[str, Level],
    state_table: str,
    state: TargetFacts,
    pins: Pins,
) -> KeptDraws:
    """The draws that decide which rows the model has. `read` gives the verdict on a text. Creates an empty state table
    where there is none, because Spark cannot describe the filtered query without it. Raises RefusedError where a draw
    decides rows in a way that the key of a row cannot keep."""
    analysis = read(sql)
    expanded = expand_star(sql, analysis)
    if expanded != sql:
        sql, analysis = expanded, read(expanded)
    split = split_filter_draws(sql, unique_key, state_table, declared, analysis.drawn_reads)
    if split is not None and split.filtered_sql is None:
        raise RefusedError(f"model {model}: line {split.line}, column {split.column}: {split.reason}")
    rest = analysis if split is None or split.filtered_sql is None else read(split.filtered_sql)
    if (
        rest.rows_level is Level.NONDETERMINISTIC
        or split is None
        or split.draw_sql is None
        or split.filtered_sql is None
    ):
        raise RefusedError(f"model {model}: {refused(rest, analysis)}")
    draw_sql = pin(split.draw_sql, pins).sql
    if plan_ai(split.draw_sql, results_table="ai_results", identity={"model": "any"}).rounds:
        raise RefusedError(
            f"model {model}: {split.draws[0]} stands in a WHERE beside an AI function. Which rows are drawn for would "
            "depend on answers that are asked only for rows drawn: put one of them into a model of its own"
        )
    columns = query_columns(query, draw_sql)
    if not state.exists:
        query(f"create table if not exists {state_table} using delta as select * from ({draw_sql}) where false")
    prints = dict(zip(split.columns, split.fingerprints, strict=True))
    return KeptDraws(split.filtered_sql, draw_sql, columns, prints)
