"""That `freeze_where` is a condition which Spark can evaluate on rows of the model's result."""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.maintenance.facts import Column
from spark_mv.query.syntax.condition import is_one_condition
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.look_up import query_columns


def check_condition(query: Query, model: str, condition: str, columns: Sequence[Column]) -> None:
    """Asks Spark for the condition's type, without running it. Raises RefusedError."""
    if condition and (why := why_no_condition(query, condition, columns)):
        raise RefusedError(
            "FREEZE_WHERE", f"model {model}: freeze_where: {condition!r} {why}. The table was not touched"
        )


def why_no_condition(query: Query, condition: str, columns: Sequence[Column]) -> str:
    """Why a text is no condition on rows of these columns; empty: it is one. Asks Spark, without running it."""
    if not is_one_condition(condition):
        return "is not one condition"
    row = ", ".join(f"CAST(NULL AS {c.type}) AS {quoted(c.name)}" for c in columns)
    try:
        found = query_columns(query, f"SELECT (\n{condition}\n) AS condition FROM (SELECT {row})")[0].type
    except Exception as error:
        return f"cannot be evaluated on the query's columns: {first_line(error)}"
    return "" if found == "boolean" else f"gives {found}, and a condition has to be true or false"
