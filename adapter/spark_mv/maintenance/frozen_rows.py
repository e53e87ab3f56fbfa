"""`freeze_where`: rows of the table for which a condition is true are left as they are, until their window has passed.

A row that is frozen stays frozen: what came to the sources meanwhile was never followed for it. So the condition may call
no function but the clock, and the clock only so that what is true of a row now is true of it ever after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.read_query import row_bounds
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.situation import Situation
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.row_condition import RowCondition, row_condition
from spark_mv.query.syntax.reserved import relation

_CURE = "List in freeze_where, as an AND or OR, what is known of a row for good: its date, its status"


@dataclass(frozen=True)
class FrozenRows:
    """`stays`: the condition over the table's columns, pinned, that tells the rows which a run leaves as they are. `ends`: the
    instant (TIMESTAMP) at which one of them leaves its window; None without a window. `problems`: what keeps it from being said."""

    stays: str | None = None
    ends: str | None = None
    problems: tuple[str, ...] = ()


def frozen_rows(situation: Situation) -> FrozenRows:
    """The rows that `freeze_where` freezes in this run. `situation.facts.target` is a table of ours, or none."""
    text, rewritten, target = situation.config.freeze_where, situation.rewritten, situation.facts.target
    if not text:
        return FrozenRows()
    types = {c.name: c.type for c in rewritten.columns}
    found = row_condition(text, "result", types, allowed=(Level.COMMAND,), model=situation.facts.model)
    if isinstance(found, str):
        return _refused(text, f"{found}. {_CURE}")
    names = {name.lower() for name in types}
    if strange := sorted(found.columns - names):
        return _refused(text, f"names {', '.join(strange)}, and the query's columns are {', '.join(types)}")
    if not found.stays_true(situation.facts.time_zone):
        return _refused(
            text,
            "can become false by the clock alone, or its bound cannot be said. A frozen row has to stay frozen: write it as "
            "`day < current_date() - interval 30 days`",
        )
    condition = found.pinned(situation.pins)
    if condition is None:
        return _refused(text, "reads the clock in words that cannot be given one value; write it as current_date()")
    problems = _of_table(found, situation)
    ends, problem = _ends(situation)
    problems += [problem] if problem else []
    if problems:
        return FrozenRows(problems=tuple(f"freeze_where: {text!r} {problem}" for problem in problems))
    if not target.exists:
        return FrozenRows()
    open_ = f" AND (({ends}) IS NULL OR ({ends}) > {rewritten.as_of_literal})" if ends else ""
    return FrozenRows(f"(\n{condition}\n){open_}", ends)


def with_frozen_bounds(rewritten: Rewritten, frozen: FrozenRows) -> Rewritten:
    """The texts that ask for the next bound, also of rows that only the table still has."""
    if frozen.ends is None or rewritten.next_change_sql is None:
        return rewritten
    own = f"SELECT min({frozen.ends}) AS next_change FROM {relation('target')} WHERE {frozen.stays}"
    text = f"SELECT min(next_change) AS next_change FROM (({rewritten.next_change_sql}) UNION ALL ({own}))"
    return replace(rewritten, next_change_sql=text, near_change_sql=None)


def staying(columns: ColumnPlan, frozen: FrozenRows) -> ColumnPlan:
    """The columns, with what the staging of rows asks of the table's."""
    return replace(columns, stays=frozen.stays) if frozen.stays else columns


def _refused(text: str, why: str) -> FrozenRows:
    return FrozenRows(problems=(f"freeze_where: {text!r} {why}",))


def _of_table(condition: RowCondition, situation: Situation) -> list[str]:
    target = situation.facts.target
    missing = sorted(name for name in condition.columns if target.exists and not target.has(name))
    if not missing:
        return []
    return [
        f"names {', '.join(missing)}, which the table does not have yet, so that no row of it would be frozen. Run once with the "
        "new column and without freeze_where, or with a condition on the columns that there are"
    ]


def _ends(situation: Situation) -> tuple[str | None, str]:
    """When a row of the table leaves its window, and what keeps that from being said."""
    rewritten, target, config = situation.rewritten, situation.facts.target, situation.config
    if not rewritten.clock:
        return None, ""
    if config.on_source_delete == "keep":
        return None, (
            "does not go with on_source_delete: keep and a window. Use on_source_delete: delete: what is frozen stays without "
            "it, until its window has passed"
        )
    drawn = {c.name.lower() for c in situation.analysis.columns if c.kept}
    there = {(c.name.lower(), c.type.lower()) for c in (target.columns if target.exists else rewritten.columns)}
    usable = {
        c.name.lower()
        for c in rewritten.columns
        if c.name.lower() not in drawn and (c.name.lower(), c.type.lower()) in there
    }
    bounds = row_bounds(situation, usable, groups=True)
    if bounds is None:
        return None, (
            "does not tell when a frozen row leaves: the window has to stand, as comparisons with the clock, on columns that the "
            "query selects as they are (and the table has). Select the column that the window compares"
        )
    return bounds[1], ""
