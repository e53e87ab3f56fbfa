"""A first run in one statement: it checks the rows that it writes, and nothing is staged.

A row without a key, two of one key, or one that violates the contract fails the statement, and no table is made; then the staged plan says
which row it was. Files are left where the table was to be. For runs over a table that is there the same was measured to gain nothing: Delta
plans twice what it writes, and looks each time for the files of all tables that the query reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.maintenance.facts import TargetFacts
from spark_mv.maintenance.plan import Step

_KNOWN = frozenset({"ask_ahead", "next_change", "stage_changes", "check_stage", "create_table"})
"""The kinds of step of a first run that knows all before it writes but whether its rows may be written. Others find something out that decides what
is published: answers, a state, whether a source moved."""


def in_one_statement(steps: Sequence[Step], target: TargetFacts) -> tuple[Step, ...]:
    """The steps that do the same as these without staging; none where that cannot be. What has the table's name could not be put back where
    files are left."""
    simple = all(step.kind in _KNOWN and step.args.get("relation", "target") == "target" for step in steps)
    staging = [step for step in steps if step.kind == "stage_changes"]
    if not simple or len(staging) != 1 or target.name_is_taken:
        return ()
    check, made = (next(step for step in steps if step.kind == kind) for kind in ("check_stage", "create_table"))
    first = check.args.get("next_change")
    looks = [Step("next_change", {"query": first})] if first else []
    looks += [step for step in steps if step.kind == "next_change"]
    rows = {"inline": staging[0].args, "keys": check.args["keys"]}
    return (*looks, Step("create_table", {"relation": "target", "columns": made.args["columns"], **rows}))
