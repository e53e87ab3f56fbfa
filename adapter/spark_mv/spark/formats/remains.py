"""Files where a new table is to be, without a table in the catalogue: a first run was killed while it wrote them or before the
catalogue knew of them, or the table was dropped and its files were not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.spark.formats.commits import Query, commits

OWNER_PROPERTY = "spark_mv.model"
"""Table property that marks a table as made by this materialization."""
_NOT_EMPTY = re.compile(r"DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION.*?location \('([^']+)'\) is not empty", re.DOTALL)

_NO_TABLE = "is not a Delta table"
"""What Delta says of a folder in which no commit of a table was finished."""


@dataclass(frozen=True)
class Remains:
    """The files, and what DESCRIBE DETAIL says of the Delta table that they are; None where no commit of one was finished."""

    location: str
    detail: Mapping[str, Any] | None

    @property
    def path(self) -> str:
        return f"delta.`{self.location}`"


def find_remains(query: Query, table: str, error: Exception) -> Remains | None:
    """Those that an `error` of CREATE TABLE speaks of; None where it speaks of none. Raises TurnTaken where the table has come meanwhile,
    whose files they were."""
    found = _NOT_EMPTY.search(str(error))
    if found is None:
        return None
    if _is_there(query, table):
        raise TurnTaken(table) from error
    remains = Remains(found[1], None)
    try:
        return replace(remains, detail=query(f"describe detail {remains.path}")[0])
    except Exception as no_table:
        if _NO_TABLE not in str(no_table):  # a log that is there and cannot be read is somebody's
            raise
        return remains


def make_over_remains(
    query: Query, model: str, table: str, make: Callable[[str, int], None], statement: str, number: int
) -> None:
    """`make` a table of a model by its CREATE TABLE AS SELECT, in the turn of that number; where remains are in the way, in their place
    by CREATE OR REPLACE and in the turn behind theirs. Raises as `after_remains` does."""
    try:
        make(statement, number)
    except Exception as error:
        behind = after_remains(query, model, table, error)
        if behind is None:
            raise
        make(statement.replace("create table", "create or replace table", 1), behind)


def after_remains(query: Query, model: str, table: str, error: Exception) -> int | None:
    """The number of the turn in which CREATE OR REPLACE of a model's table may take the place of its remains; None where there are none.
    Another first run that is writing these files has the same turn, so that one of the two publishes.
    Raises as `find_remains` does, and RunFailed where they are those of somebody else's table."""
    found = find_remains(query, table, error)
    if found is None or found.detail is None:
        return None if found is None else 0
    if OWNER_PROPERTY not in str(found.detail["properties"]):
        raise RunFailed(
            "REMAINS",
            f"model {model}: {found.location}, where the table is to be, holds a Delta table that nondeterministic_mv did not make "
            "and that no catalogue knows. Nothing was changed. Move its files away, or give the model another location",
        ) from error
    return int(commits(query, found.path, 1)[0]["version"]) + 1


def _is_there(query: Query, table: str) -> bool:
    try:
        query(f"describe table {table}")
    except Exception:
        return False
    return True
