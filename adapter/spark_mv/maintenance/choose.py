"""Of the strategies that apply, the cheapest; or the refusal to fall back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.incremental_facts import Proposal
from spark_mv.maintenance.past import scaled
from spark_mv.maintenance.plan import Candidate, Plan

STARTS = frozenset({"FIRST_RUN", "FULL_REFRESH"})
"""Reasons for a complete recompute that `refresh: incremental` accepts: there is nothing to start from."""


def choose(complete: Plan, no_op: Candidate, proposals: Sequence[Proposal], config: ModelConfig) -> Plan:
    """The plan of the cheapest strategy, with COMPLETE_RECOMPUTE (`complete`) behind it in case it breaks on its way.

    Raises RefusedError under `refresh: incremental` when only COMPLETE_RECOMPUTE is left.
    """
    possible = [p for p in proposals if p.candidate.applies]
    known = complete.record.pace if complete.record else {}
    estimates = {p.candidate.strategy: p.candidate.cost or 0.0 for p in possible}
    possible = [_scaled(p, known) for p in possible]
    proposals = [next((q for q in possible if q.candidate.strategy == p.candidate.strategy), p) for p in proposals]
    whole = max((p.complete_cost for p in possible), default=0.0)
    last = Candidate("COMPLETE_RECOMPUTE", True, no_op.reasons, whole if possible else None)
    candidates = (no_op, *(p.candidate for p in proposals), last)
    estimate = replace(complete.record, cost=whole or None) if complete.record else None
    complete = replace(complete, candidates=candidates, record=estimate)
    best = min(possible, key=lambda p: p.candidate.cost or 0.0, default=None)
    only = config.refresh == "incremental"
    if best is None:
        if only and not any(reason.code in STARTS for reason in no_op.reasons):
            raise RefusedError(not_incremental(complete.model, candidates))
        return complete
    if not only and (best.candidate.cost or 0.0) >= whole:
        return complete
    chosen = best.candidate.strategy
    record = complete.record and replace(complete.record, strategy=chosen, cost=estimates[chosen])
    fallback = None if only else complete
    plan = replace(complete, strategy=chosen, steps=best.steps, few=best.few, record=record, fallback=fallback)
    return replace(plan, fallback=replace(plan, steps=best.instead)) if best.instead else plan


def _scaled(proposal: Proposal, known: Mapping[str, float]) -> Proposal:
    candidate = proposal.candidate
    return replace(
        proposal, candidate=replace(candidate, cost=scaled(candidate.strategy, candidate.cost or 0.0, known))
    )


def not_incremental(model: str, candidates: Sequence[Candidate]) -> str:
    """Why a model under `refresh: incremental` cannot run, strategy by strategy."""
    lines = [
        f"  - {c.strategy}: " + "; ".join(f"{r.sentence} ({r.code})" for r in c.reasons)
        for c in candidates
        if not c.applies and c.strategy != "NO_OP"
    ]
    return (
        f"model {model}: refresh is incremental, and no incremental strategy applies to this run:\n"
        + "\n".join(lines)
        + "\nThe table was not touched. Run once with --full-refresh, or set refresh: auto"
    )
