"""The name of a model's table: one that the catalogue takes, and that no other table has."""

from __future__ import annotations

from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.own_tables import OWN_TABLES, takes_name
from spark_mv.spark.run.invocation import Invocation


def check_name(adapter: Any, invocation: Invocation) -> None:
    """Raises RefusedError. `adapter` is asked for its session's catalogue."""
    if (shared := OWN_TABLES.get(invocation.identifier.lower())) is not None:
        raise RefusedError(
            "OWN_NAME",
            f"model {invocation.name}: its table would be called {invocation.identifier}, and that is {shared} of all models of a schema. "
            "Give it another alias. Nothing was changed",
        )
    if not takes_name(Ask(adapter.query, adapter.mv_spark()), invocation.identifier):
        raise RefusedError(
            "TABLE_NAME",
            f"model {invocation.name}: Spark's catalogue has no table called {invocation.identifier}: names there are of ASCII letters, digits and "
            "_. Give it an `alias` of these characters. Nothing was changed",
        )
    refuse_namesake(invocation, "table", invocation.identifier)


def refuse_namesake(invocation: Invocation, which: str, name: str) -> None:
    """Two nodes that write one table would take each other's rows for their own. `which`: that of the model ('table'), or its state's ('state')."""
    if (other := invocation.namesakes.get(which)) is not None:
        raise RefusedError(
            "OWN_NAME",
            f"model {invocation.name}: its {which} is called {name}, and so is the table of {other}: Spark's names do not differ by "
            "capital letters. Give one of the two another alias. Nothing was changed",
        )
