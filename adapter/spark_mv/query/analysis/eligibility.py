"""Which strategies the shape of a query allows, with a reason code and a sentence for each that it does not.

Judged from the query alone. Whether the sources can say what changed, and which way is cheapest, is the planner's
question. Names and order are those of Databricks' `planning_information`.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_mv.query.analysis.verdict import Analysis, Shape
from spark_mv.query.functions.level import Level

STRATEGIES = ("NO_OP", "APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION", "COMPLETE_RECOMPUTE")


@dataclass(frozen=True)
class Reason:
    """Why a strategy does not apply: a stable code and a sentence for people."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Eligibility:
    """One strategy; `applies` is False exactly if there are `reasons`."""

    strategy: str
    reasons: tuple[Reason, ...] = ()

    @property
    def applies(self) -> bool:
        return not self.reasons


_OPAQUE = Reason("OPAQUE", "a part of the query cannot be seen through")
_LIMIT = Reason("LIMIT", "LIMIT or OFFSET: one changed row can move others in or out")
_SAMPLE = Reason("SAMPLE", "TABLESAMPLE chooses other rows at each read")
_PIVOT = Reason("PIVOT", "PIVOT groups by columns that the query does not name")
_SUBQUERY = Reason("SUBQUERY", "a subquery in an expression: a change in its table can touch any row")
_SET = Reason("SET_OPERATION", "UNION, INTERSECT or EXCEPT match rows by value")
_DISTINCT = Reason("DISTINCT", "SELECT DISTINCT: a row stays as long as any of its duplicates does")
_AGGREGATE = Reason("AGGREGATE", "GROUP BY or an aggregate: output rows are made of many source rows")
_WINDOW = Reason("WINDOW", "a window function: one row's value depends on its whole partition")
_NESTED = Reason("NESTED", "an aggregate, DISTINCT or window stands above another one")
_ERRORS = Reason("ERRORS", "the query has errors, see there")


def eligible(analysis: Analysis) -> tuple[Eligibility, ...]:
    """All six strategies, in the order of STRATEGIES. A query with errors is eligible for none but reports why."""
    shape = analysis.shape
    if any(error.code in _FATAL for error in analysis.errors):
        return tuple(Eligibility(name, (_ERRORS,)) for name in STRATEGIES)
    return (
        Eligibility("NO_OP", _no_op(analysis)),
        Eligibility("APPEND_ONLY", _append_only(analysis)),
        Eligibility("ROW_BASED", _row_based(shape)),
        Eligibility("GROUP_AGGREGATE", _group_aggregate(shape)),
        Eligibility("WINDOW_FUNCTION", _window_function(shape)),
        Eligibility("COMPLETE_RECOMPUTE"),
    )


# what cannot be read can have no strategy; a missing key or a forbidden draw can be cured without a new shape
_FATAL = frozenset({"PARSE_ERROR", "EMPTY_QUERY", "NOT_ONE_STATEMENT", "NOT_A_SELECT", "TOO_DEEP"})


def _no_op(analysis: Analysis) -> tuple[Reason, ...]:
    """Nothing to do is possible as long as nothing but sources and solvable clock bounds can change the result."""
    found = []
    if analysis.shape.opaque:
        found.append(_OPAQUE)
    if any(c.level == Level.COMMAND or Level.COMMAND in c.levels for c in analysis.columns if not c.frozen):
        found.append(
            Reason("CLOCK_COLUMN", "an output column shows the clock, so it changes with every run (see freeze)")
        )
    return tuple(found)


def _common(shape: Shape) -> list[Reason]:
    checks = (
        (shape.opaque, _OPAQUE),
        (shape.limit, _LIMIT),
        (shape.sample, _SAMPLE),
        (shape.pivot, _PIVOT),
        (shape.subquery, _SUBQUERY),
    )
    return [reason for applies, reason in checks if applies]


def _row_wise(shape: Shape) -> list[Reason]:
    found = _common(shape)
    checks = (
        (shape.set_operation and not shape.union_all_only, _SET),
        (shape.distinct, _DISTINCT),
        (shape.aggregate and not shape.pivot, _AGGREGATE),
        (shape.window, _WINDOW),
    )
    return found + [reason for applies, reason in checks if applies]


def _append_only(analysis: Analysis) -> tuple[Reason, ...]:
    shape = analysis.shape
    found = _row_wise(shape)
    if shape.join:
        found.append(Reason("JOIN", "a join: a new row of one table can meet old rows of the other"))
    if analysis.clock_predicates:
        found.append(Reason("CLOCK_PREDICATE", "a predicate on the clock: rows leave and enter without an insert"))
    return tuple(found)


def _row_based(shape: Shape) -> tuple[Reason, ...]:
    return tuple(_row_wise(shape))


def _group_aggregate(shape: Shape) -> tuple[Reason, ...]:
    found = _common(shape)
    if not shape.aggregate and not shape.distinct:
        found.append(Reason("NO_GROUP_BY", "there is no GROUP BY"))
        return tuple(found)
    checks = (
        (shape.set_operation and not shape.union_all_only, _SET),
        (shape.window, _WINDOW),
        (shape.nested, _NESTED),
        (
            shape.grouping_sets,
            Reason("GROUPING_SETS", "ROLLUP, CUBE or GROUPING SETS: one row belongs to several groups"),
        ),
    )
    found += [reason for applies, reason in checks if applies]
    if shape.aggregate and not shape.pivot and not shape.nested and not shape.grouping_sets:
        if shape.group_keys is None:
            found.append(
                Reason("GROUP_KEY_NOT_IN_OUTPUT", "a GROUP BY key is not in the output, so a group is not found again")
            )
        elif not shape.group_keys:
            found.append(Reason("GLOBAL_AGGREGATE", "an aggregate without GROUP BY has one group: the whole source"))
    return tuple(found)


def _window_function(shape: Shape) -> tuple[Reason, ...]:
    found = _common(shape)
    if not shape.window:
        found.append(Reason("NO_WINDOW", "there is no window function"))
        return tuple(found)
    checks = (
        (shape.set_operation, _SET),
        (shape.aggregate and not shape.pivot, _AGGREGATE),
        (shape.distinct, _DISTINCT),
        (
            shape.unpartitioned_window,
            Reason("NO_PARTITION_BY", "OVER () without PARTITION BY has one partition: the whole source"),
        ),
    )
    found += [reason for applies, reason in checks if applies]
    if not shape.unpartitioned_window and not shape.partition_keys:
        found.append(
            Reason("PARTITION_KEY_NOT_IN_OUTPUT", "the windows share no PARTITION BY column that is in the output")
        )
    return tuple(found)
