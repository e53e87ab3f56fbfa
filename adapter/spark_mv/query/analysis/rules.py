"""Where a per-row value may not stand (contract, section 3), and the words of the refusal.

The walk down from `unique_key` follows Flink's check of non-deterministic updates: a value that is drawn per row can
be kept only per unique key, so nothing that decides how rows are matched or grouped may depend on it.
"""

from __future__ import annotations

from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import Origin, Taint
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.level import Level

_RULES: dict[str, tuple[str, str, str]] = {
    # clause: (code, what it cannot be, why)
    "GROUP BY": (
        "PER_ROW_IN_GROUP_BY",
        "A drawn value cannot be a grouping key",
        "the groups would change whenever it is drawn again",
    ),
    "DISTINCT": (
        "PER_ROW_IN_DISTINCT",
        "A drawn value cannot stand in SELECT DISTINCT",
        "it decides which rows count as equal",
    ),
    "JOIN": (
        "PER_ROW_IN_JOIN",
        "A drawn value cannot be a join condition",
        "a changed row could not find its partners again",
    ),
    "PARTITION BY": (
        "PER_ROW_IN_WINDOW",
        "A drawn value cannot partition a window",
        "the partitions would change whenever it is drawn again",
    ),
    "window ORDER BY": (
        "PER_ROW_IN_WINDOW",
        "A drawn value cannot order a window",
        "the order of all rows of the partition would change with one draw",
    ),
    "ORDER BY … LIMIT": (
        "PER_ROW_IN_LIMIT",
        "A drawn value cannot decide which rows a LIMIT keeps",
        "the choice would change whenever it is drawn again",
    ),
    "unique_key": (
        "PER_ROW_IN_UNIQUE_KEY",
        "A drawn value cannot be part of the unique key",
        "kept values are found by the key, which would be another one in each run",
    ),
    "generator": (
        "PER_ROW_IN_GENERATOR",
        "A drawn value cannot decide how many rows a row becomes",
        "there would be others whenever it is drawn again",
    ),
    "AI argument": (
        "PER_ROW_IN_AI_ARGUMENT",
        "An AI function cannot be asked about a drawn value",
        "where its answer is looked up, it is drawn again: there would be none, and each run would pay for others",
    ),
    "LIMIT": (
        "PER_ROW_IN_LIMIT",
        "A drawn value cannot be the number of rows",
        "the choice would change whenever it is drawn again",
    ),
    "set operation": (
        "PER_ROW_IN_SET_OPERATION",
        "A drawn value cannot be an input of a set operation",
        "the rows of its inputs are put together or matched without regard to the unique key",
    ),
}
_CURES = {
    "GROUP BY": "group that",
    "DISTINCT": "select the distinct rows of that",
    "JOIN": "join that",
    "PARTITION BY": "put the window over that",
    "window ORDER BY": "put the window over that",
    "ORDER BY … LIMIT": "take the LIMIT of that",
    "LIMIT": "number the rows of that",
    "generator": "take that apart",
    "AI argument": "ask about its column",
    "unique_key": "key this model by columns of its source",
}


def way(walk: Walk, origin: Origin) -> str:
    """`(line 7, column 12, through CTE draws.bucket)`."""
    steps = []
    for step in origin.path:
        head = step.split(".")[0]
        kind = "CTE " if head in walk.cte_names else "view " if step.lower() in walk.view_names else ""
        steps.append(f"{kind}{step}")
    through = f", through {', '.join(steps)}" if steps else ""
    return f"(line {origin.line}, column {origin.column}{through})"


def written(origin: Origin) -> str:
    """The call as messages name it: `rand()`; a keyword form or clause as it is."""
    return origin.function if origin.function.isupper() else f"{origin.function}()"


def forbid_per_row(walk: Walk, clause: str, taint: Taint, what: str = "", keys: str = "") -> None:
    """Record the refusal if `taint` has a per-row value. The error stands at the call; the clause is named."""
    origin = taint.worst(Level.NONDETERMINISTIC) if Level.NONDETERMINISTIC in taint.levels else None
    if origin is None:
        return
    code, cannot, why = _RULES[clause]
    place = what or clause
    if clause == "set operation":
        cure = "Draw it above the set operation: SELECT u.*, the draw FROM (… UNION ALL …) AS u."
    elif clause == "unique_key":
        cure = f"Put it in its own column and {_CURES[clause]}."
    else:
        cure = f"Put it in its own nondeterministic_mv keyed by {keys or 'a key of its rows'} and {_CURES[clause]}."
    if walk.level(origin.function) is None and not origin.function.isupper():
        cure += f" If {written(origin)} always gives the same for the same arguments, declare it deterministic."
    walk.error(
        code,
        f"{place} depends on {written(origin)} {way(walk, origin)}. {cannot}, because {why}. {cure}",
        (origin.line, origin.column),
    )


def rows_key(scope: Scope, walk: Walk) -> str:
    """A guess at the key of the drawn rows, for the cure: the unique key where the rows have it, else a column named
    id or …_id."""
    names = [f.name for _, relation in scope.visible() for f in relation.fields if not f.taint]
    lower = {name.lower(): name for name in names}
    if walk.unique_key and all(key.lower() in lower for key in walk.unique_key):
        return ", ".join(walk.unique_key)
    return next((name for name in names if name.lower() == "id" or name.lower().endswith("_id")), "")
