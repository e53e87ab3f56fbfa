"""Draws that decide which rows a model has, kept by the key of a row: in a run, and for whoever asks before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.draw_refusals import refused, unkept
from spark_mv.query.rewrite.filter_draws import FilterDraws, expand_star, split_filter_draws


class UnkeptDraws(ValueError):
    """A draw decides rows in a way that the key of a row cannot keep; the message names place, reason and cure."""


@dataclass(frozen=True)
class KeptRows:
    """`sql` is the query that was taken apart, with its stars written out where that was needed; the rest as in FilterDraws.
    `reads`: where it names drawn columns."""

    sql: str
    split: FilterDraws
    filtered_sql: str
    draw_sql: str
    reads: tuple[tuple[int, int, str], ...]


def split_rows(
    sql: str,
    read: Callable[[str], Analysis],
    unique_key: Sequence[str],
    declared: Mapping[str, Level],
    state_table: str,
) -> KeptRows:
    """`read` gives the verdict on a text. Raises UnkeptDraws."""
    analysis = read(sql)
    expanded = expand_star(sql, analysis, read)
    if expanded != sql:
        sql, analysis = expanded, read(expanded)
    split = split_filter_draws(sql, unique_key, state_table, declared, analysis.drawn_reads)
    if split is not None and split.filtered_sql is None:
        raise UnkeptDraws(unkept(split, analysis))
    rest = analysis if split is None or split.filtered_sql is None else read(split.filtered_sql)
    if (
        rest.rows_level is Level.NONDETERMINISTIC
        or split is None
        or split.draw_sql is None
        or split.filtered_sql is None
    ):
        raise UnkeptDraws(refused(rest, analysis))
    if plan_ai(split.draw_sql, results_table="ai_results", identity={"model": "any"}).rounds:
        raise UnkeptDraws(
            f"{split.draws[0]} stands in a filter beside an AI function. Which rows are drawn for would "
            "depend on answers that are asked only for rows drawn: put one of them into a model of its own"
        )
    return KeptRows(sql, split, split.filtered_sql, split.draw_sql, analysis.drawn_reads)
