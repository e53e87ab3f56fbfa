"""The steps that incremental strategies share: stage what changed, stage the rows to write, check them, publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_mv.maintenance.changes import relation, stage_args
from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.incremental_facts import IncrementalFacts
from spark_mv.maintenance.key_bound import has_bound
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.versions import at_versions

LARGE = 500_000
"""Rows of a table from which on a statement to prune its files is worth its time."""
FEW_KEYS = 20_000
"""Staged keys up to which they are written into the statement (REPLACE WHERE key IN …) instead of a MERGE."""


def stage_sources(known: IncrementalFacts) -> list[Step]:
    """What changed in each source, read once and written down: the feed of changes may be gone a moment later."""
    sources = {s.name.lower(): s for s in known.facts.sources}
    return [
        Step("stage_source_changes", stage_args(k, change, sources[change.name.lower()]))
        for k, change in enumerate(known.changes.sources)
    ]


def stage_affected(sql: str) -> Step:
    """`sql` gives the affected anchors and, as `__mv_pre`, whether the table may have a row of them."""
    return Step("stage_affected", {"into": "affected", "query": sql})


def stage_rows(
    known: IncrementalFacts, query: str, anchors: Mapping[str, str] | None, images: Mapping[str, str] | None = None
) -> list[Step]:
    """Evaluate `query` (already restricted) and stage where it differs from the table's rows of the affected
    `anchors` (column of the table → column of the affected table); None: all its rows are new. `images`: columns whose
    old values the affected table has, so that they need not be read from the table."""
    sql, first, rounds = known.evaluate(query)
    keep = known.config.on_source_delete == "keep"
    args: dict[str, Any] = {
        "into": "stage",
        "query": sql,
        "columns": known.columns.columns,
        "target": "target" if anchors is not None else None,
        "all_rows": False,
        "keep_missing": keep,
        "forget": (),
        "affected": "affected" if anchors is not None else None,
        "images": dict(images or {}),
        "anchors": [{"column": c, "affected": k} for c, k in (anchors or {}).items()],
    }
    steps = [Step("ai_round", {"round": first + i}) for i in range(rounds)]
    ranged = _ranged(known, args["anchors"])
    if ranged:
        steps.append(Step("affected_range", {"affected": "affected", "anchors": ranged}))
    steps.append(Step("stage_changes", args))
    steps.append(check_stage(known.columns, known.changes.target_rows))
    keys = {name.lower() for name in known.columns.keys}
    if anchors is None:
        if bounded(known.columns):
            steps.append(Step("key_range", {"target": "target", "keys": known.columns.keys}, when="no_bound"))
        steps.append(Step("check_new", _new(known), when="unproven"))
    elif not {name.lower() for name in anchors} <= keys:
        steps.append(Step("check_new", _new(known), when="inserted"))
    return steps


def _ranged(known: IncrementalFacts, anchors: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The anchors whose range may spare reading the table: not worth a statement for a small one."""
    types = {c.name.lower(): c.type for c in known.columns.columns}
    large = known.changes.target_rows >= LARGE
    return [anchor for anchor in anchors if large and has_bound(types.get(anchor["column"].lower(), ""))]


def bounded(columns: ColumnPlan) -> bool:
    """Whether the highest key is worth knowing."""
    types = {c.name.lower(): c.type for c in columns.columns}
    return len(columns.keys) == 1 and has_bound(types.get(columns.keys[0].lower(), ""))


def check_stage(columns: ColumnPlan, target_rows: int | None, count: bool = False) -> Step:
    """`target_rows`: rows of the table before this run, where it is known; else they are counted with `count`."""
    args = {
        "stage": "stage",
        "keys": columns.keys,
        "bound": bounded(columns),
        "keeps": bool(columns.kept),
        "target_rows": target_rows,
        "count_target": "target" if count and target_rows is None else None,
    }
    return Step("check_stage", args)


def _new(known: IncrementalFacts) -> dict[str, object]:
    return {"stage": "stage", "target": "target", "keys": known.columns.keys}


def finish(known: IncrementalFacts) -> list[Step]:
    """Count what the clock took, find the next bound, publish in one commit."""
    rewritten = known.rewritten
    steps: list[Step] = []
    if rewritten.clock and rewritten.unclocked_sql:
        steps.append(
            Step(
                "count_evicted",
                {
                    "stage": "stage",
                    "keys": known.columns.keys,
                    # where no source changed, nothing but the clock takes rows: no need to ask the whole query
                    "query": _unclocked(known, rewritten.unclocked_sql),
                    "is_relation": False,
                    "as_of": rewritten.as_of_literal,
                },
                when="deleted",
            )
        )
    if rewritten.next_change_sql:
        steps.append(Step("next_change", _next_change(known, rewritten.next_change_sql, rewritten.near_change_sql)))
    publish = {"relation": "target", "stage": "stage", "columns": known.columns.columns}
    return [
        *steps,
        Step("staged_keys", {"stage": "stage", "keys": known.columns.keys, "limit": FEW_KEYS + 1}, when="rewritten"),
        Step("append", publish, when="only_new"),
        Step("replace_where", {**publish, "keys": known.columns.keys}, when="few_keys"),
        Step("merge_into", publish, when="many_keys"),
        Step("record_only", {"relation": "target"}, when="unchanged"),
    ]


def _back(known: IncrementalFacts) -> bool:
    """Whether the clock went back: rows that are not valid yet have to go then."""
    record = known.facts.target.record
    return record is None or known.facts.as_of < record.as_of


def _unclocked(known: IncrementalFacts, sql: str) -> str | None:
    if not known.changes.sources and not _back(known):
        return None
    return known.texts.on_candidates(sql, known.moved_windows) if known.linear_source is not None else sql


def _next_change(known: IncrementalFacts, sql: str, near: str | None) -> dict[str, object]:
    """The next bound. Where only rows of one source came and went, those that came can only bring it forward (an
    instant that is too early costs one run that finds nothing)."""
    record = known.facts.target.record
    if known.linear_source is None or known.move is not None or record is None:
        pinned = [at_versions(text, known.facts.sources) or text if text else None for text in (sql, near)]
        return {"query": pinned[0], "near": pinned[1]}
    came = known.texts.on_changes(sql, came=True)
    if record.next_change_at is None:
        return {"query": came, "near": None}
    return {"query": f"SELECT least(TIMESTAMP'{record.next_change_at} UTC', (\n{came}\n))", "near": None}


__all__ = ["finish", "relation", "stage_affected", "stage_rows", "stage_sources"]
