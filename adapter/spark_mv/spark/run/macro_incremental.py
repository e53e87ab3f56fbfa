"""What a run without the adapter may do instead of a complete recompute: one source changed since the last run, its change feed tells
how, and no row entered or left by the clock. The steps are those that the engine would take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.changes import Changes, SourceChange
from spark_mv.maintenance.decide import begin, incremental_facts
from spark_mv.maintenance.incremental_facts import Proposal
from spark_mv.maintenance.macro_only import MARK, NeedsAdapter, taken
from spark_mv.maintenance.plan import Plan, Step
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.steps.limit import limited
from spark_mv.maintenance.strategies.propose import propose
from spark_mv.spark.formats.delta_source import FEED_PROPERTY, SCHEMA_CHANGES
from spark_mv.spark.formats.history import CHANGED_COLUMNS, KEEPS_ROWS
from spark_mv.spark.formats.retention import LONG_RUN, PROPERTY, WEEK

LOW = (770_033_110, 660_044_220)
"""From here on, by tens, versions that stand for those up to which the last run read. The next one is the first that the feed is read from."""
RECORDED = ("3790-05-19 11:22:33.444555", "3842-09-27 21:32:43.545656")
"""Instants that stand for the next change that the last run knew of."""
STRATEGIES = ("APPEND_ONLY", "ROW_BASED")
_MANY = 400_000
"""Rows of tables of which ten changed: any incremental strategy costs less than a recompute. Few enough that no plan asks for ranges
of keys to prune files by."""
WRITES = ("WRITE", "DELETE", "UPDATE", "MERGE", "STREAMING UPDATE", "COPY INTO")
"""Operations of a source that a plan follows."""


def incremental(
    situation: Situation, view: Callable[[Sequence[Step]], list[dict[str, Any]]], attempt: int
) -> dict[str, Any]:
    """By name of the source that changed: what to do where it only gained rows (`append`), and where other things happened (`any`).
    `situation`: of a run that follows another at the same instant. `view`: the steps as the macros want them. Empty where the
    engine would recompute, or by steps that macros do not take."""
    record = situation.facts.target.record
    assert record is not None
    found: dict[str, Any] = {}
    tables = {s.name: s for s in situation.facts.sources if s.version is not None}
    for number, (name, source) in enumerate(tables.items()):
        now = {n: s.version for n, s in tables.items() if s.version is not None}
        low = LOW[attempt] + 10 * number
        ours = replace(
            record,
            sources={**now, name: SourceVersion(low, "")},
            as_of=situation.facts.as_of,
            next_change_at=RECORDED[attempt],
        )
        facts = replace(situation.facts, target=replace(situation.facts.target, record=ours))
        here = replace(situation, facts=facts, config=replace(situation.config, refresh="auto", choose_by="rows"))
        assert source.version is not None
        ways = {"append": True, "any": False}
        plans = {way: _cheapest(here, name, low, source.version.version, only, view) for way, only in ways.items()}
        if any(plan is not None for plan in plans.values()):
            found[name] = plans
    return found


def marks_of(attempt: int, tables: Sequence[str]) -> dict[str, str]:
    """What stands in a plan for the version up to which the last run read each source, and for the next change that it knew of."""
    marks = {RECORDED[attempt]: f"{MARK}recorded__"}
    for k, _ in enumerate(tables):
        low = LOW[attempt] + 10 * k
        marks |= {str(low): f"{MARK}low_{k}__", str(low + 1): f"{MARK}first_{k}__"}
    return marks


def rules() -> dict[str, Any]:
    """By what a run tells, of a source's history, that its feed can be followed (formats/delta_source.py)."""
    return {
        "feed": FEED_PROPERTY,
        "retention": PROPERTY,
        "schema": sorted(SCHEMA_CHANGES | CHANGED_COLUMNS),  # the types that the last run read are not known here
        "writes": list(WRITES),
        "keeps_rows": sorted(KEEPS_ROWS),
        "seconds": int(WEEK - LONG_RUN),
    }


def _cheapest(
    situation: Situation,
    name: str,
    low: int,
    high: int,
    append_only: bool,
    view: Callable[[Sequence[Step]], list[dict[str, Any]]],
) -> dict[str, Any] | None:
    opening = begin(situation)
    if opening.tree is None or opening.move is not None:
        return None
    counts: Mapping[str, int] = {s.name: _MANY for s in situation.facts.sources}
    change = SourceChange(name, low, high, "feed", append_only, 10, _MANY)
    known = incremental_facts(opening, Changes((change,), (), counts, _MANY))
    assert known is not None
    possible = [p for p in propose(known, STRATEGIES) if p.candidate.applies and not _unsure(p)]
    for proposal in sorted(possible, key=lambda p: p.candidate.cost or 0.0):
        try:
            plan = Plan(situation.facts.model, proposal.candidate.strategy, (), proposal.steps, record=opening.record)
            steps = view(taken(limited(plan, situation.config.max_rows_changed).steps))
        except NeedsAdapter:
            continue
        return {"strategy": proposal.candidate.strategy, "steps": steps, "all_solved": opening.tree.all_solved}
    return None


def _unsure(proposal: Proposal) -> bool:
    """Whether its steps may find out that they do not follow the data, and leave it to others."""
    return bool(proposal.instead) or any(step.args.get("sure") for step in proposal.steps)
