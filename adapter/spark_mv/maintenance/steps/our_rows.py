"""The table as our runs left it, where somebody else has written to it since: what a run reads the kept values from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.query.syntax.table_name import quoted

TARGET, OUR_ROWS, ONE_PER_KEY = "target", "our_rows", "one_per_key"
"""Names of relations in a plan: the table as it is; as it was before others wrote; as it is, without what no run of ours
can have left in it."""


def kept_in(target: TargetFacts) -> tuple[str, ...]:
    """The relations that a run may read its kept values from, best first: a version may not be readable any more."""
    if target.intact:
        return (TARGET,)
    return (OUR_ROWS, ONE_PER_KEY) if target.clean else (ONE_PER_KEY,)


def our_rows(target: TargetFacts, table: str, keys: Sequence[str]) -> Mapping[str, str]:
    """The relations as items of FROM. Keys are neither NULL nor repeated in any of them."""
    if not target.exists or target.intact:
        return {}
    found = {ONE_PER_KEY: f"({_one_per_key(table, _listed(target.columns), keys)})"}
    if target.clean:
        wanted = _of_any(target)
        (first, columns), *others = ((f"{table} VERSION AS OF {v}", _at(target, v, wanted)) for v in target.clean)
        rows = f"SELECT {columns} FROM {first}"
        for other, columns in others:
            same = " AND ".join(f"__mv_b.{quoted(key)} = __mv_a.{quoted(key)}" for key in keys)
            rows = (
                f"{rows} UNION ALL SELECT * FROM ({_one_per_key(other, columns, keys)}) __mv_b "
                f"LEFT ANTI JOIN (SELECT * FROM {first}) __mv_a ON {same}"
            )
        found[OUR_ROWS] = f"({rows})"
    return found


def _listed(columns: Iterable[Column]) -> str:
    return ", ".join(quoted(column.name) for column in columns)


def _of_any(target: TargetFacts) -> Mapping[str, Column]:
    """The columns that the table has or had, by name in lower case: somebody else may have added, renamed or dropped some."""
    then = (column for version in target.clean for column in target.columns_then.get(version, ()))
    return {column.name.lower(): column for column in (*then, *target.columns)}


def _at(target: TargetFacts, version: int, wanted: Mapping[str, Column]) -> str:
    """These columns of that version, NULL where it has none of that name."""
    there = {column.name.lower() for column in target.columns_then.get(version, target.columns)}
    return ", ".join(
        quoted(column.name) if name in there else f"CAST(NULL AS {column.type}) AS {quoted(column.name)}"
        for name, column in wanted.items()
    )


def _one_per_key(table: str, columns: str, keys: Sequence[str]) -> str:
    """Which row of a key stays is told by its content: the next attempt takes the same one."""
    names = ", ".join(quoted(key) for key in keys)
    known = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in keys)
    return (
        f"SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {names} ORDER BY to_json(struct({columns}), "
        f"map('ignoreNullFields', 'false'))) AS __mv_nth FROM {table} WHERE {known}) WHERE __mv_nth = 1"
    )
