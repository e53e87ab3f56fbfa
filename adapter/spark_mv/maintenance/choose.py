"""Of the strategies that apply, the cheapest or the quickest, as `choose_by` says; or the refusal to fall back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.incremental_facts import Proposal
from spark_mv.maintenance.pace import Pace
from spark_mv.maintenance.plan import Candidate, Plan, Step
from spark_mv.maintenance.steps.fixed_cost import LOOKS, fixed_units

STARTS = frozenset({"FIRST_RUN", "FULL_REFRESH"})
"""Reasons for a complete recompute that `refresh: incremental` accepts: there is nothing to start from."""
REQUESTED = frozenset({"AI_PENDING", "ASK_AGAIN", "FORGET_REQUESTED"})
"""Those that it accepts where nothing else stands in the way: values that are to come, or that the user asked for, whose rows the whole
query tells. Refused, they would not come until the table is made anew."""
MARGIN = 1.1
"""A complete recompute has to be quicker by this factor: its cost grows with the source."""


def choose(
    complete: Plan, no_op: Candidate, proposals: Sequence[Proposal], config: ModelConfig, pace: Pace | None = None
) -> Plan:
    """The plan of the quickest strategy, with COMPLETE_RECOMPUTE (`complete`) behind it in case it breaks on its way.

    Raises RefusedError under `refresh: incremental` when only COMPLETE_RECOMPUTE is left.
    """
    pace = pace or Pace()
    proposals = [replace(p, candidate=timed(p.candidate, p.steps, pace)) for p in proposals]
    possible = [p for p in proposals if p.candidate.applies]
    rows = max((p.complete_cost for p in possible), default=0.0)
    last = Candidate("COMPLETE_RECOMPUTE", True, no_op.reasons, rows if possible else None)
    last = timed(last, complete.steps, pace)
    candidates = (no_op, *(p.candidate for p in proposals), last)
    record = complete.record
    complete = replace(
        complete, candidates=candidates, record=record and replace(record, cost=last.cost, units=last.units)
    )
    by_rows = config.choose_by == "rows"
    weight = partial(_rows, pace) if by_rows else _seconds
    best = min(possible, key=lambda p: weight(p.candidate), default=None)
    only = config.refresh == "incremental"
    if best is None:
        if only and not _accepted(no_op, proposals):
            raise RefusedError("NOT_INCREMENTAL", not_incremental(complete.model, candidates))
        return complete
    margin = 1.0 if by_rows else MARGIN
    if not only and weight(best.candidate) >= weight(last) * margin:
        return complete
    ran = best.candidate
    record = record and replace(record, strategy=ran.strategy, cost=ran.cost, units=ran.units)
    fallback = None if only else complete
    plan = replace(complete, strategy=ran.strategy, steps=best.steps, few=best.few, record=record, fallback=fallback)
    return replace(plan, fallback=replace(plan, steps=best.instead)) if best.instead else plan


def _accepted(no_op: Candidate, proposals: Sequence[Proposal]) -> bool:
    """Whether `refresh: incremental` takes the complete recompute."""
    starts = any(reason.code in STARTS for reason in no_op.reasons)
    return starts or {reason.code for p in proposals for reason in p.candidate.reasons} <= REQUESTED


def timed(candidate: Candidate, steps: Sequence[Step], pace: Pace) -> Candidate:
    """With its fixed cost and, where it has an estimate in rows, one in seconds."""
    units = fixed_units(steps) if candidate.applies else None
    if candidate.cost is None:
        return replace(candidate, units=units)
    seconds = pace.seconds(candidate.strategy, LOOKS + (units or 0.0), candidate.cost)
    return replace(candidate, units=units, seconds=round(seconds, 3))


def _seconds(candidate: Candidate) -> float:
    return candidate.seconds or 0.0


def _rows(pace: Pace, candidate: Candidate) -> float:
    """The estimate in rows of a complete recompute, as far as past runs of both are known."""
    return (candidate.cost or 0.0) * pace.of_rows(candidate.strategy) / pace.of_rows("COMPLETE_RECOMPUTE")


def fell_back(plan: Plan, before: str, took: float | None) -> str:
    """Why a run recomputes completely although the last one, by the strategy `before`, took fewer seconds than that is expected
    to take; '' where that is not so."""
    by_name = {candidate.strategy: candidate for candidate in plan.candidates}
    whole, was = by_name.get("COMPLETE_RECOMPUTE"), by_name.get(before)
    if plan.strategy != "COMPLETE_RECOMPUTE" or before == "COMPLETE_RECOMPUTE" or was is None or whole is None:
        return ""
    if took is not None and whole.seconds is not None and whole.seconds <= took:
        return ""
    if was.applies and was.seconds is not None:
        why = f"{before} is estimated at {was.seconds:.1f} s"
    else:
        why = was.reasons[0].sentence if was.reasons else f"{before} does not apply"
    expected = f", about {whole.seconds:.1f} s" if whole.seconds is not None else ""
    spent = f" took {took:.1f} s" if took is not None else ""
    return f"recomputed completely{expected} (the last run, {before},{spent or ' was incremental'}): {why}"


def not_incremental(model: str, candidates: Sequence[Candidate], ever: bool = True) -> str:
    """Why a model under `refresh: incremental` cannot run, strategy by strategy. `ever`: whether another run could."""
    runs = "this run" if ever else "any run of this query"
    cure = "Run once with --full-refresh, or set" if ever else "Write it so that one applies, or set"
    lines = [
        f"  - {c.strategy}: " + "; ".join(f"{r.sentence} ({r.code})" for r in c.reasons)
        for c in candidates
        if not c.applies and c.strategy != "NO_OP"
    ]
    return (
        f"model {model}: refresh is incremental, and no incremental strategy applies to {runs}:\n"
        + "\n".join(lines)
        + f"\nThe table was not touched. {cure} refresh: auto"
    )
