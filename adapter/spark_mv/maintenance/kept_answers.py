"""Frozen columns with AI answers: of rows that the table keeps an answer for, nothing is asked, whatever became of their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.maintenance.facts import TargetFacts

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.query.ai_calls.ai_plan import AiCall


def unkept(
    rounds: Sequence[tuple[AiCall, ...]], columns: Sequence[StagedColumn], target: TargetFacts
) -> tuple[tuple[AiCall, ...], ...]:
    """The calls, asked only about rows whose answer will be shown: where it is certain which rows of the table keep theirs. A table that somebody
    else wrote to, whose key or column is not what it was, or whose values are to be forgotten, is asked about whole."""
    record = target.record
    keys = [c for c in columns if c.role is Role.KEY]
    as_it_was = target.exists and target.ours and target.intact and record is not None
    found = as_it_was and all(c.in_query and c.in_target and not (c.cast or c.retyped or c.stands_in) for c in keys)
    if not found or record is None or {*record.keys} != {c.name.lower() for c in keys}:
        return tuple(rounds)
    kept = {c.name.lower() for c in columns if c.role is Role.KEPT and c.asked and _stays(c)}
    return tuple(
        tuple(
            replace(call, request_sql=call.unkept_sql) if call.kept_column.lower() in kept else call for call in calls
        )
        for calls in rounds
    )


def _stays(column: StagedColumn) -> bool:
    there = column.in_query and column.in_target
    return there and not (column.fresh or column.forget or column.redraw or column.retyped or column.stands_in)
