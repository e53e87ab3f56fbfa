"""The plan of an audit: it compares what the last run has left, at the same facts, with a complete recompute."""

from __future__ import annotations

from dataclasses import replace

from spark_mv.maintenance.audit import AUDITED, audit_plan, compared, rows_in_order
from spark_mv.maintenance.decide import complete_plan
from spark_mv.maintenance.ground import ground
from spark_mv.maintenance.next_record import audited_record, next_record
from spark_mv.maintenance.plan import Candidate, Plan
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.steps.limit import limited


def decide_audit(situation: Situation) -> Plan:
    """It asks for no AI answer and honours no request. Raises as `ground` does."""
    target = replace(situation.facts.target, forget=())
    rewritten = replace(situation.rewritten, ai_rounds=())
    facts = replace(situation.facts, target=target, pins=dict(rewritten.pins), whole=False)
    found = ground(replace(situation, facts=facts, rewritten=rewritten))
    situation, last = found.situation, found.situation.facts.target.record
    assert last is not None
    record = audited_record(next_record(situation, found.columns), last)
    columns = replace(found.columns, columns=compared(found.columns.columns, situation.analysis), replace=False)
    complete, _ = complete_plan(replace(found, columns=columns), record)
    candidates = (Candidate("NO_OP", False, (AUDITED,)), Candidate("COMPLETE_RECOMPUTE", True, (AUDITED,)))
    plan = audit_plan(
        replace(complete, candidates=candidates),
        repair=not rows_in_order(situation.analysis),
        record=(situation.config.audit or 0) > 1,
    )
    return limited(plan, situation.config.max_rows_changed)
