"""Whether a name means a table of Spark's own catalogue, in which the classes of the JVM look every name up whatever catalogue it has."""

from __future__ import annotations

from typing import Any

from spark_mv.query.syntax.table_name import parts_of, quoted

SESSION_CATALOGUE = "spark_catalog"


def in_session_catalogue(spark: Any, table: str) -> bool:
    """Whether the table, or its path (``delta.`/p` ``), is found there. Raises where the session has no JVM in this process."""
    parts = parts_of(table)
    if len(parts) > 2:
        return parts[0].lower() == SESSION_CATALOGUE and len(parts) == 3
    if "/" in parts[-1]:
        return True
    return str(spark._jsparkSession.sessionState().catalogManager().currentCatalog().name()) == SESSION_CATALOGUE


def table_identifier(spark: Any, table: str) -> Any:
    """The name as those classes take it. Raises ValueError for a table of another catalogue, which they would look up in Spark's own."""
    if not in_session_catalogue(spark, table):
        raise ValueError(f"{table} is a table of another catalogue than Spark's own")
    name = ".".join(quoted(part) for part in parts_of(table)[-2:])
    return spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name)
