"""What the steps of a plan cost however few rows there are, in units: one is a small staging table written from one table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.steps.kinds import KINDS, Work

LOOKS = 2.0
"""Before and after the steps: versions looked up, staging tables dropped."""
ASK = 0.4
"""A question to staged rows or to the table, without a commit."""
REPLACED = 2.0
"""A commit that finds rows of the table by key and puts others in their place: half as long again to twice as long as one that writes
a small table whole."""
TABLE = 0.25
"""One more table that a statement reads: planned, joined, in tasks of its own."""

_READ = re.compile(r"\b(?:from|join)\s+(?=[^\s(])", re.IGNORECASE)


def fixed_units(steps: Sequence[Step]) -> float | None:
    """One of the publishing steps is due, the dearest of those that can be, and of the others those without a condition. None where
    the run asks AI functions, whose time is their provider's."""
    if any(step.kind == "ai_round" for step in steps):
        return None
    publishing = {step.kind for step in steps if KINDS[step.kind].publishes}
    units = REPLACED if "merge_into" in publishing else 1.0 if publishing else 0.0
    for step in steps:
        kind = KINDS[step.kind]
        if step.when is not None or not kind.statement or kind.work not in (Work.STAGE, Work.ASK):
            continue
        units += (1.0 if kind.work is Work.STAGE else ASK) + TABLE * max(_tables(step.args.values()) - 1, 0)
    return round(units, 2)


def _tables(values: Iterable[object]) -> int:
    """How often the texts among the arguments read a table."""
    found = 0
    for value in values:
        if isinstance(value, str):
            found += len(_READ.findall(value))
        elif isinstance(value, Mapping):
            found += _tables(value.values())
    return found
