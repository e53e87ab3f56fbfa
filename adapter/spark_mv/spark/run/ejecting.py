"""Eject: a nondeterministic_mv's table becomes a plain one again, with all its rows, and the model one of `incremental`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_mv.maintenance.config import OWN_WORDS
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.delta import FORGET_PROPERTY
from spark_mv.spark.formats.remains import OWNER_PROPERTY
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import ASK_AGAIN_PROPERTY, OUR_CHECKS, target_facts
from spark_mv.spark.run.prepare import look

OURS = OWN_WORDS - {"file_format", "partition_by"}
"""Config words that say nothing to another materialization."""


@dataclass(frozen=True)
class Ejection:
    """`config` is that of the model as `incremental`, `remarks` what it will not do any more."""

    invocation: Invocation
    config: Mapping[str, Any]
    remarks: tuple[str, ...]

    def text(self, applied: bool) -> str:
        """For the console."""
        table = self.invocation.target.replace("`", "")
        state = f"; {self.invocation.identifier}__state is dropped" if self.invocation.state_exists else ""
        head = "is a plain table now" if applied else "can be a plain table; nothing was changed (--apply does it)"
        return f"model {self.invocation.name}: {table} {head}, with all its rows{state}"


def examine(adapter: Any, invocation: Invocation, profile: Mapping[str, Any]) -> Ejection:
    """Raises RefusedError where the table is not that of a nondeterministic_mv."""
    query = Ask(adapter.query, adapter.mv_spark())
    table = target_facts(query, invocation.target, invocation.target_exists, invocation.unique_id)
    if not table.exists or not table.ours:
        raise RefusedError(
            "NOT_OURS_TO_EJECT", f"model {invocation.name}: {invocation.target} is no table of a nondeterministic_mv"
        )
    seen = look(adapter, invocation.by_any_strategy(), profile)
    asked = [c.name for c in seen.analysis.columns if Level.AI in c.levels]
    excluded = [c.name for c in seen.analysis.columns if c.kept or c.name in asked]
    config = {
        "materialized": "incremental",
        "incremental_strategy": "merge",
        "unique_key": seen.config.unique_key,
        "merge_exclude_columns": excluded,
        "on_schema_change": "append_new_columns",
    }
    remarks = []
    if seen.rewritten.clock:
        remarks.append("Rows do not leave the window of WHERE by themselves any more: delete them in a post_hook.")
    elif any(Level.COMMAND in c.levels and not c.kept for c in seen.analysis.columns):
        remarks.append("Columns that show the clock are renewed only in rows that the query gives.")
    remarks.append("Rows that a source has lost stay.")
    if seen.analysis.rows_level is Level.NONDETERMINISTIC:
        remarks.append("The random filter draws again at each run: rows that passed once stay, and others join them.")
    if asked:
        remarks.append(
            f"The AI functions of {', '.join(asked)} are asked for every row at each run, by Spark itself: only Databricks has them."
        )
    return Ejection(invocation, config, tuple(remarks))


def apply(adapter: Any, found: Ejection) -> None:
    """Take the marks of this materialization from the table. Its rows, and the answers in ai_results, stay."""
    invocation = found.invocation
    names = ", ".join(map(string_literal, (OWNER_PROPERTY, OUR_CHECKS, ASK_AGAIN_PROPERTY, FORGET_PROPERTY)))
    adapter.query(f"alter table {invocation.target} unset tblproperties if exists ({names})")
    if invocation.state_exists:
        adapter.query(f"drop table if exists {invocation.state_table}")
