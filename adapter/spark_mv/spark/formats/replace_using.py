"""Delta's INSERT … REPLACE USING, for which Spark 4.1 has no SQL: the rows of the table that share their key
with a written row go, and all written rows come, in one commit. Delta finds the old rows by a join, so that no list of keys
is needed and the table is not shuffled where the written rows are few. Told as REPLACE ON with the same condition: the option
for REPLACE USING reads names without backticks, and has none for a key named `clé` or `1e5`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import log_and_snapshot
from spark_mv.spark.session.jvm import load_class

VECTORS = "delta.enableDeletionVectors"
_COMMAND = "org.apache.spark.sql.delta.commands.DeltaInsertReplaceOnOrUsingCommand"
logger = AdapterLogger("Spark")

TABLE, WRITTEN = "__mv_table", "__mv_written"
"""Names in the condition. Delta takes them for columns where there are columns of these names."""
PARSED_AS = {"spark.sql.ansi.enforceReservedKeywords": "false"}
"""For the statement: Delta writes names of columns without backticks into texts that it goes on to parse, where a key named `order` would be an error."""


@dataclass(frozen=True)
class Gone:
    """Rows of the table that go without another in their place: `listed` is the condition that holds for them, over TABLE, `written` the key
    of any written row, as literals. For the join they count as rows of that key."""

    listed: str
    written: tuple[str, ...]

    def condition(self, keys: Sequence[str]) -> str:
        return " AND ".join(
            f"CASE WHEN {self.listed} THEN {value} ELSE {TABLE}.{quoted(key)} END = {WRITTEN}.{quoted(key)}"
            for key, value in zip(keys, self.written, strict=True)
        )


def can_replace_using(spark: Any, table: str) -> bool:
    """Whether the session can replace rows of the table by their keys: its JVM is in reach and has Delta 4.4 or newer, and the table has
    deletion vectors. Asked of the class behind the option, because an older Delta takes no notice of options that it does not know, and would
    overwrite the table.

    Without deletion vectors Delta asks for the old rows' files by input_file_name() above its join, which has no answer where the written
    rows are too many to be broadcast: DELTA_FILE_TO_OVERWRITE_NOT_FOUND."""
    try:
        load_class(spark, _COMMAND)
        found = log_and_snapshot(spark, table)[1].metadata().configuration().get(VECTORS)
        return bool(found.isDefined()) and str(found.get()).lower() == "true"
    except Exception:  # no session here (AttributeError), Spark Connect (its own error), no such class (Py4JJavaError)
        return False


def replace_using(spark: Any, rows: str, table: str, keys: Sequence[str], gone: Gone | None = None) -> None:
    """Write what the query `rows` gives, in the order of the table's columns."""
    same = gone.condition(keys) if gone else " AND ".join(f"{TABLE}.{quoted(k)} = {WRITTEN}.{quoted(k)}" for k in keys)
    options = {"replaceOn": same, "targetAlias": TABLE}
    logger.debug(
        f"insert into {table} replace using ({', '.join(keys)}){' and rows that are gone' if gone else ''}\n{rows}"
    )
    spark.sql(rows).alias(WRITTEN).write.format("delta").mode("overwrite").options(**options).insertInto(table)
