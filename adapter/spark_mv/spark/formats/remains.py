"""Files where a new table is to be, without a table in the catalogue: a first run was killed while it wrote them or before the
catalogue knew of them, or the table was dropped and its files were not."""

from __future__ import annotations

import re

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.spark.formats.commits import Query, commits

OWNER_PROPERTY = "spark_mv.model"
"""Table property that marks a table as made by this materialization."""
_NOT_EMPTY = re.compile(r"DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION.*?location \('([^']+)'\) is not empty", re.DOTALL)


def after_remains(query: Query, model: str, table: str, error: Exception) -> int | None:
    """The number of the turn in which CREATE OR REPLACE may take the place of the files that an `error` of CREATE TABLE speaks
    of; None where it speaks of none. Another first run that is writing these files has the same turn, so that one of the two publishes.
    Raises TurnTaken where the table has come meanwhile, whose files they were, and RunFailed where they are those of somebody else's table."""
    found = _NOT_EMPTY.search(str(error))
    if found is None:
        return None
    if _is_there(query, table):
        raise TurnTaken(table) from error
    path = f"delta.`{found[1]}`"
    try:
        detail, newest = query(f"describe detail {path}")[0], commits(query, path, 1)[0]
    except Exception:  # no log: no table of Delta's was ever finished here
        return 0
    if OWNER_PROPERTY not in str(detail["properties"]):
        raise RunFailed(
            "REMAINS",
            f"model {model}: {found[1]}, where the table is to be, holds a Delta table that nondeterministic_mv did not make "
            "and that no catalogue knows. Nothing was changed. Move its files away, or give the model another location",
        ) from error
    return int(newest["version"]) + 1


def _is_there(query: Query, table: str) -> bool:
    try:
        query(f"describe table {table}")
    except Exception:
        return False
    return True
