"""When a row next enters or leaves by the clock, as a run asks for it: until then, the clock alone changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from spark_mv.maintenance.incremental_facts import IncrementalFacts
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.steps.versions import at_versions
from spark_mv.query.rewrite.clock_move import NEAR, pinned_condition
from spark_mv.query.syntax.select_tree import NotIncremental


@dataclass(frozen=True)
class NextBound:
    """`query` gives the instant, or NULL for never. `near` looks only as far ahead as NEAR, and is asked first. `of_sources`:
    both read nothing that the run writes down."""

    query: str | None = None
    near: str | None = None
    of_sources: bool = False

    @property
    def first(self) -> str | None:
        """The query to ask within the check of the rows."""
        return self.near or self.query

    def ahead(self) -> list[Step]:
        """Ask while other statements run."""
        return [Step("ask_ahead", {"next_change": self.first})] if self.first and self.of_sources else []

    def far(self) -> list[Step]:
        """The look at all rows, where there was none near ahead."""
        return [Step("next_change", {"query": self.query}, when=When.FAR)] if self.near else []


def next_bound(known: IncrementalFacts) -> NextBound:
    """Asked of the sources. Where only rows of one source came and went, those that came can only bring the bound forward
    (an instant that is too early costs one run that finds nothing); where a view stands between, all that it shows is asked."""
    record, sql, near = known.facts.target.record, known.rewritten.next_change_sql, known.rewritten.near_change_sql
    if sql is None:
        return NextBound()
    came = _of_what_came(known, sql) if known.only_came and record is not None else None
    if came is None or record is None:
        query, near = (at_versions(text, known.facts.sources) or text if text else None for text in (sql, near))
        return NextBound(query, near, of_sources=True)
    if record.next_change_at is None:
        return NextBound(came)
    return NextBound(f"SELECT least({_recorded(record.next_change_at)}, (\n{came}\n))")


def _of_what_came(known: IncrementalFacts, sql: str) -> str | None:
    try:
        return known.texts.on_changes(sql, came=True)
    except NotIncremental:
        return None


@dataclass(frozen=True)
class RowEnds:
    """The same, told by rows of the result: `ends` is the instant at which a row leaves (TIMESTAMP, over the table's
    columns). Of the table's rows, those for which `soon` holds leave within NEAR; None where they have not to be looked at,
    because `recorded` (TIMESTAMP, None = never) is the first of their ends."""

    ends: str
    soon: str | None
    recorded: str | None = None


def row_ends(known: IncrementalFacts) -> RowEnds | None:
    """Where rows of the result only leave by the clock, and their own columns say when. It spares another look at a source.
    None where the next bound is not asked for, or has to be asked of the sources."""
    windows, record, near = known.output_windows, known.facts.target.record, known.rewritten.near_change_sql
    if windows is None or windows.ends is None or near is None or record is None:
        return None
    if known.rewritten.ai_rounds or known.rewritten.draw_sql:
        return None  # a row may come when its answer does
    pins = known.pins
    ends = pinned_condition(windows.ends, pins)
    if known.move is None:
        return RowEnds(ends, None, _recorded(record.next_change_at)) if known.only_came else None
    later = [pinned_condition(text, pins.at(pins.as_of + NEAR)) for text in windows.conditions]
    return RowEnds(ends, "NOT (" + " AND ".join(f"({text})" for text in later) + ")")


def _recorded(instant: str | None) -> str | None:
    return None if instant is None else f"TIMESTAMP'{instant} UTC'"
