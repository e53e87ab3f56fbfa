"""The last steps of every strategy: check the staged rows, and publish them in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.key_bound import has_bound
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.steps.rewrite_rows import FEW_KEYS, is_large


def check_stage(columns: ColumnPlan, target_rows: int | None, counted_in: str | None = None) -> Step:
    """`target_rows`: rows of the table before this run, where it is known; else they are counted in this relation."""
    args = {
        "stage": "stage",
        "keys": columns.keys,
        "bound": bounded(columns),
        **counted(columns, target_rows),
        "count_target": counted_in if target_rows is None else None,
    }
    return Step("check_stage", args)


def range_of_keys(columns: ColumnPlan, record: RunRecord | None, rows: int | None) -> list[Step]:
    """Ask the table for its highest and lowest key, which decide how rows of a large one (`rows`) are replaced. None where the last run knew
    them, as all do but the first, which sees no row."""
    unknown = record is not None and record.key_bound is None and is_large(rows) and bounded(columns)
    return [Step("key_range", {"target": "target", "keys": columns.keys})] if unknown else []


def bounded(columns: ColumnPlan) -> bool:
    """Whether the highest key is worth knowing."""
    types = {c.name.lower(): c.type for c in columns.columns}
    return len(columns.keys) == 1 and has_bound(types.get(columns.keys[0].lower(), ""))


def counted(columns: ColumnPlan, target_rows: int | None) -> dict[str, Any]:
    """What tells the rows of the table after the run from those before it."""
    return {"keeps": columns.keeps, "target_rows": target_rows}


def publish_new(columns: ColumnPlan, staged: Mapping[str, Any]) -> list[Step]:
    """As `publish`, where all staged rows are new."""
    to = {"relation": "target", "stage": "stage", "columns": columns.columns}
    return [
        Step("append", {**to, **staged}, when=When.ONLY_NEW),
        Step("record_only", {"relation": "target"}, when=When.UNCHANGED),
    ]


def publish(columns: ColumnPlan, staged: Mapping[str, Any], whole: bool = False) -> list[Step]:
    """One commit, whatever it takes. What the check of the staged rows found decides which of these steps is due. `whole`: all
    rows of the table are staged, and take its place where some of them differ."""
    to = {"relation": "target", "stage": "stage", "columns": columns.columns}
    append, unchanged = publish_new(columns, staged)
    if whole:
        return [append, Step("replace_where", {**to, "predicate": "true"}, when=When.REWRITTEN), unchanged]
    return [
        append,
        Step("gone_keys", {"stage": "stage", "keys": columns.keys}, when=When.FEW_GONE),
        Step("replace_using", {**to, "keys": columns.keys}, when=When.BY_JOIN),
        Step("staged_keys", {"stage": "stage", "keys": columns.keys, "limit": FEW_KEYS + 1}, when=When.BY_LIST),
        Step("replace_where", {**to, "keys": columns.keys}, when=When.FEW_KEYS),
        Step("merge_into", {**to, "keys": columns.keys}, when=When.MANY_KEYS),
        unchanged,
    ]
