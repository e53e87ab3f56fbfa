"""Delta's INSERT … REPLACE USING, for which Spark 4.1 has no SQL: the rows of the table that share their key with a written
row go, and all written rows come, in one commit. Delta finds the old rows by a join, so that no list of keys is needed and
the table is not shuffled where the written rows are few."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

_COMMAND = "org.apache.spark.sql.delta.commands.DeltaInsertReplaceOnOrUsingCommand"
logger = AdapterLogger("Spark")


def can_replace_using(spark: Any, keys: Sequence[str]) -> bool:
    """Whether the session can replace rows by these keys: its JVM is in reach and has Delta 4.4 or newer, and no key has a
    name that the option splits. Asked of the class behind the option, because an older Delta takes no notice of options
    that it does not know, and would overwrite the table."""
    if not all(re.fullmatch(r"\w+", key) for key in keys):
        return False
    try:
        spark._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_COMMAND)
    except Exception:  # no session here (AttributeError), Spark Connect (its own error), no such class (Py4JJavaError)
        return False
    return True


def replace_using(spark: Any, rows: str, table: str, keys: Sequence[str]) -> None:
    """Write what the query `rows` gives, in the order of the table's columns."""
    logger.debug(f"insert into {table} replace using ({', '.join(keys)})\n{rows}")
    writer = spark.sql(rows).write.format("delta").mode("overwrite").option("replaceUsing", ", ".join(keys))
    writer.insertInto(table)
