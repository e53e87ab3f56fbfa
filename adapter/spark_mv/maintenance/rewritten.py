"""The model's SELECT as a run evaluates it: the clock pinned, views with a clock or draws in them looked through, AI
answers joined in. Made by the rewrites of `query/`, consumed by the strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_mv.maintenance.facts import Column
from spark_mv.query.analysis.verdict import PredicateVerdict
from spark_mv.query.syntax.reserved import VALID_FROM, VALID_TO

if TYPE_CHECKING:  # loaded by models with AI calls or a random filter only
    from spark_mv.query.ai_calls.ai_plan import AiCall
    from spark_mv.query.rewrite.draw_texts import FilterTexts

BOUNDS = (Column(VALID_FROM, "timestamp"), Column(VALID_TO, "timestamp"))


@dataclass(frozen=True)
class Rewritten:
    """`sql` gives exactly `columns`. `unclocked_sql`, where the clock predicates can be pulled up, gives the rows
    whatever the clock says, with their bounds as two more columns (TIMESTAMP, NULL = unbounded); where not,
    `unclocked_reason` says why. `predicates` are those on the clock, in the order of the text, with their bounds where they
    are solved. `next_change_sql` gives the next instant at which a row enters or leaves; `near_change_sql`
    looks among the rows that do within a day, and gives NULL if there is none.
    `ai_rounds` are the calls whose answers `sql` reads, in the order in which they must be answered. `as_of_literal` is the as-of instant as a TIMESTAMP literal. `draw_sql` gives the key and the draws of every
    candidate row of a random filter (`draw_columns`: keys first); `sql` then reads the draws from the state table;
    `filter_print` is a fingerprint of the conditions that they stand in, `filter_texts`, in the user's words and with a place for the state table, are there where a change can be followed through them. `failing_sql`, under on_ai_error: keep_old, gives the key of each
    row, and for each of `failing_columns` whether an answer in it is failing."""

    sql: str
    columns: tuple[Column, ...]
    as_of_literal: str
    pins: Mapping[str, str] = field(default_factory=dict)
    ai_rounds: tuple[tuple[AiCall, ...], ...] = ()
    clock: bool = False
    predicates: tuple[PredicateVerdict, ...] = ()
    clock_solved: bool = True
    clock_elsewhere: bool = False
    unclocked_sql: str | None = None
    unclocked_reason: str = ""
    next_change_sql: str | None = None
    near_change_sql: str | None = None
    draw_sql: str | None = None
    draw_columns: tuple[Column, ...] = ()
    draw_fingerprints: Mapping[str, str] = field(default_factory=dict)
    filter_print: str = ""
    filter_texts: FilterTexts | None = None
    failing_sql: str | None = None
    failing_columns: tuple[str, ...] = ()
