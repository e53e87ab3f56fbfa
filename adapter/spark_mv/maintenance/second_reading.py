"""The second reading: what a strategy makes of a query for the first time is compared with a complete recompute, where that
is cheap.

The comparison is an audit (maintenance/audit.py) of that one run. Where it finds a difference, the table is repaired, and the
strategy is not taken again for this query.
"""

from __future__ import annotations

from dataclasses import replace

from spark_mv.maintenance.audit import rows_in_order, unauditable
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.plan import Plan, Reason
from spark_mv.maintenance.record import RunRecord
from spark_mv.query.analysis.verdict import Analysis

CHEAP = 2_000_000.0
"""Estimated rows that a complete recompute may read and write for a second reading: some seconds, once for a query and strategy.
Smaller tables are recomputed anyway where seconds decide."""
EXACT = ("NO_OP", "COMPLETE_RECOMPUTE")
"""Strategies that are not read twice: they change nothing, or are what the others are compared with."""


def distrusted(record: RunRecord | None, strategy: str) -> Reason | None:
    """Why a strategy is not taken although it applies."""
    if record is None or record.read_twice.get(strategy) is not False:
        return None
    return Reason(
        "SECOND_READING",
        "its result for this query differed from a complete recompute (see the warning of that run and mv_runs.audit; "
        "please report it). It is looked at again when the query changes or after --full-refresh",
    )


def carried(record: RunRecord | None, query: str, facts: RunFacts) -> dict[str, bool]:
    """What is known from earlier second readings of the same query (`query`: its fingerprint)."""
    known = record is not None and record.query == query and not facts.full_refresh
    return dict(record.read_twice) if record is not None and known else {}


def with_second_reading(plan: Plan, facts: RunFacts, analysis: Analysis, wanted: bool) -> Plan:
    """The plan, marked for a second reading where one is due. Its record says already that the strategy is right: the repair
    of what was not says otherwise, and a right result costs no second commit."""
    whole = next((c.cost for c in plan.candidates if c.strategy == "COMPLETE_RECOMPUTE"), None)
    due = (
        wanted
        and plan.record is not None
        and plan.strategy not in EXACT
        and plan.strategy not in plan.record.read_twice
        and whole is not None
        and whole <= CHEAP
        and not (facts.partial or unauditable(facts) or rows_in_order(analysis))
    )
    if not due or plan.record is None:
        return plan
    known = {**plan.record.read_twice, plan.strategy: True}
    return replace(plan, second_reading=True, record=replace(plan.record, read_twice=known))


def found_wrong(record: RunRecord, strategy: str) -> RunRecord:
    """The record of a repair: the strategy that left the table wrong is not taken again."""
    return record if strategy in EXACT else replace(record, read_twice={**record.read_twice, strategy: False})
