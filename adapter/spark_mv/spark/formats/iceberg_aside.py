"""Write, audit, publish: settings of a session by which Iceberg writes the snapshots of some tables aside of their main branch, and reads
them from there. A run whose snapshot stands aside has published nothing, and what it kept is not found by the next one."""

from __future__ import annotations

from collections.abc import Mapping

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description
from spark_mv.spark.formats.session_settings import session_setting

ASKS = "write.wap.enabled"
"""The table's property without which the settings mean nothing to it."""
BRANCH, ID = "spark.wap.branch", "spark.wap.id"


def setting(query: Query) -> str:
    """The one that this session has; empty where it has none."""
    return next((name for name in (BRANCH, ID) if session_setting(query, name)), "")


def reads_aside(query: Query, description: Description) -> bool:
    """Whether the session reads a source from a branch."""
    asks = description.properties.get(ASKS, "").lower() == "true" or description.unclear
    return asks and bool(session_setting(query, BRANCH))


def refuse_aside(query: Query, table: str, there: bool = True, made_with: Mapping[str, str] | None = None) -> None:
    """Raises RefusedError where this session's commits to the table would stand aside. `there`: whether there is one, `made_with`: the
    properties that it is about to be given."""
    name = setting(query)
    if name and ((there and _asks(query, table)) or (made_with or {}).get(ASKS, "").lower() == "true"):
        raise _stands_aside(table, name)


def refuse_made_aside(query: Query, table: str) -> None:
    """Raises RefusedError where a table that was just made has no row in its main branch: its catalogue has given it the property."""
    if name := setting(query):
        raise _stands_aside(table, name)


def _stands_aside(table: str, name: str) -> RefusedError:
    return RefusedError(
        "WAP_SETTING",
        f"{table}: the session's setting {name} has Iceberg write aside of the table, where the next run would not find it. "
        f"Unset {name} for dbt (spark_config, sql_header, pre_hook), or set the table's property {ASKS} to false",
    )


def _asks(query: Query, table: str) -> bool:
    rows = query(f"show tblproperties {table}")
    return any(row["key"] == ASKS and str(row["value"]).lower() == "true" for row in rows)
