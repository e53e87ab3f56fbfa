"""The audit: after a run, the table is compared with a complete recompute of the same source versions, instant and kept values.

Its plan is that of a complete recompute without AI rounds, whose staged rows *are* the difference. Two kinds of columns may
differ without a fault. Order-dependent ones (`collect_list`, `first`, `row_number` with ties) have no one right value: they
are reported and never repaired. In a query that aggregates, floating-point sums depend on the order of their terms: values
whose difference is at most 1e-9 of their size count as equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.plan import Plan, Reason, Step
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.steps.kinds import KINDS
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level

AUDITED = Reason("AUDIT", "the result is compared with a complete recompute")
_APPROXIMATE = re.compile(r"double|float", re.IGNORECASE)


def audit_due(every: int | None, facts: RunFacts) -> bool:
    """Whether this run, which counts itself, is to be audited: runs that commit nothing are not counted, but audited."""
    if every is None or facts.partial:
        return False
    record = facts.target.record
    return (record.unaudited if record else 0) + 1 >= every


def unauditable(facts: RunFacts) -> str:
    """Why the recompute would not read what the run has read, "" where it does."""
    names = [source.name for source in facts.sources if source.version is None and source.view_text is None]
    return (
        f"{', '.join(names)}: no versions are kept, so that what the run has read cannot be read again" if names else ""
    )


def compared(columns: Sequence[StagedColumn], analysis: Analysis) -> tuple[StagedColumn, ...]:
    """The columns as an audit compares them: nothing is drawn anew, what may differ without a fault is marked."""
    adds = analysis.shape.aggregate or analysis.shape.window
    by_position = analysis.columns if len(analysis.columns) == len(columns) else (None,) * len(columns)
    found = []
    for column, verdict in zip(columns, by_position, strict=True):
        verdict = analysis.column(column.name) or verdict
        column = replace(column, redraw=False, fresh=False, forget=())
        if column.role in (Role.DATA, Role.PINNED):
            if verdict is not None and Level.ORDER_DEPENDENT in verdict.levels:
                column = replace(column, role=Role.KEPT, watched=column.in_query and column.in_target)
            elif adds and _APPROXIMATE.fullmatch(column.type.strip()):
                column = replace(column, approximate=True)
        found.append(column)
    return tuple(found)


def rows_in_order(analysis: Analysis) -> bool:
    """Whether which rows there are depends on an order that Spark chooses, so that no recompute is more right than the table."""
    keys_or_rows = analysis.rows_level is Level.ORDER_DEPENDENT or analysis.shape.limit or analysis.shape.sample
    return keys_or_rows or any(clause.level is Level.ORDER_DEPENDENT for clause in analysis.clauses)


def audit_plan(plan: Plan, repair: bool, record: bool) -> Plan:
    """The plan of a complete recompute as that of an audit. Without `repair` it reports only; with `record`, an audit that
    finds nothing says so in a commit without data, so that runs are counted from here on."""
    stage = next(step for step in plan.steps if step.kind == "stage_changes" and step.args["into"] == "stage")
    listed = {"stage": "stage", "target": "target", "keys": [c.name for c in plan.columns if c.role is Role.KEY]}
    about = {**listed, "columns": plan.columns}
    look = [Step("audit_examples", about, when=When.CHANGED)]
    if any(c.watched or c.approximate for c in plan.columns):
        look.append(Step("audit_watched", {**about, "query": stage.args["query"]}))
    first = next(k for k, step in enumerate(plan.steps) if _of_target(step))
    steps = [*plan.steps[:first], *look, *plan.steps[first:]]
    if not repair:
        steps = [step for step in steps if not _of_target(step)]
    elif not record:
        steps = [step for step in steps if step.kind != "record_only"]
    if record and not repair:
        steps.append(Step("record_only", {"relation": "target"}))
    # a repeated or NULL key cannot be met by its key: then the table is made anew
    checked = (Step("audit_keys", listed), *steps)
    return replace(plan, steps=checked, audit=True, fallback=_anew(plan, look) if repair else None)


def _anew(plan: Plan, look: Sequence[Step]) -> Plan:
    """The same with all rows staged, those of the table once for each key, and the table replaced by them."""
    steps: list[Step] = []
    for step in plan.steps:
        if step.kind == "stage_changes" and step.args["into"] == "stage":
            step = replace(step, args={**step.args, "all_rows": True, "once": True})
        if _of_target(step):
            steps += [*look, Step("replace_table", {"relation": "target", "stage": "stage", "columns": plan.columns})]
            break
        steps.append(step)
    return replace(plan, steps=tuple(steps), audit=True, fallback=None)


def _of_target(step: Step) -> bool:
    publishes = KINDS[step.kind].publishes or step.kind in ("gone_keys", "staged_keys")
    return publishes and step.args.get("relation", "target") == "target"


@dataclass(frozen=True)
class Findings:
    """What an audit found. `missing`, `different` and `extra` count rows of the table against the recompute, `unordered` rows
    that differ only in what depends on an order or a rounding; `examples` are a few of the former. `failed`: why there was
    no audit. `second_reading`: nobody asked for it, so it says nothing unless it found something."""

    strategy: str
    steps: tuple[str, ...]
    missing: int = 0
    different: int = 0
    extra: int = 0
    unordered: int = 0
    repaired: bool = False
    examples: tuple[Mapping[str, Any], ...] = ()
    failed: str = ""
    second_reading: bool = False

    @property
    def rows(self) -> int:
        """Rows that differ."""
        return self.missing + self.different + self.extra

    def short(self) -> str:
        """For the console line."""
        if self.second_reading and not self.rows:
            return ""
        if self.failed:
            return "not audited"
        if not self.rows:
            more = f" ({self.unordered:,} rows in another order)" if self.unordered else ""
            return f"audit: no difference{more}"
        return f"audit: {self.rows:,} row{'s' if self.rows > 1 else ''} differed, {'repaired' if self.repaired else 'left as they are'}"

    def to_json(self) -> str:
        """For mv_runs and run_results.json."""
        return json.dumps({**asdict(self), "rows": self.rows}, ensure_ascii=False)
