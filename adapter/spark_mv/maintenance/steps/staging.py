"""The steps that incremental strategies share: stage what changed, and stage the rows to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from spark_mv.maintenance.changes import stage_args
from spark_mv.maintenance.incremental_facts import IncrementalFacts
from spark_mv.maintenance.key_bound import has_bound
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.steps.ai_round import ai_steps
from spark_mv.maintenance.steps.last_steps import bounded, check_stage, counted, publish, publish_new, range_of_keys
from spark_mv.maintenance.steps.next_bound import NextBound, next_bound, row_ends
from spark_mv.maintenance.steps.rewrite_rows import is_large
from spark_mv.maintenance.steps.versions import at_versions
from spark_mv.query.delta.restrict import AffectedQuery, NotIncremental
from spark_mv.query.rewrite.pin import pin
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.table_name import quoted


@dataclass(frozen=True)
class Leaving:
    """The `condition` on the table's columns that tells the rows which the move of the clock takes. It may stand in REPLACE
    WHERE provided that `typed`, a condition without columns, is true."""

    condition: str
    typed: str


@dataclass(frozen=True)
class AffectedRows:
    """The affected rows as SELECTs: `rows` one for each anchor, `anchors` these alone, as often as a change touches them."""

    rows: str
    anchors: str


def stage_sources(known: IncrementalFacts) -> list[Step]:
    """What changed in each source, read once and written down: the feed of changes may be gone a moment later."""
    return [
        Step("stage_source_changes", stage_args(k, change, known.texts.facts[change.name.lower()]))
        for k, change in enumerate(known.changes.sources)
    ]


def stage_affected(sql: str) -> Step:
    """`sql` gives the affected anchors and, as `__mv_pre`, whether the table may have a row of them."""
    return Step("stage_query", {"into": "affected", "query": sql})


def publish_ready(known: IncrementalFacts, query: str) -> list[Step]:
    """Publish what `query` gives: rows as they are staged, with `__mv_op` and `__mv_n`. A row whose operation is `?` is not
    sure: the plan's fallback follows it."""
    staged = {"stage": "stage"}
    bound = next_bound(known)
    check = _check(known, {**staged, "sure": True, "next_change": bound.first})
    return [
        *bound.ahead(),
        Step("stage_query", {"into": "stage", "query": query}),
        *_range_of_keys(known),
        check,
        *_evicted(known),
        *bound.far(),
        *publish(known.columns, staged),
    ]


def append_rows(known: IncrementalFacts, query: str, leaves: Leaving | None = None) -> list[Step]:
    """Check that all rows of `query` are new, and append them. With `known.unstaged`, nothing is written in between.
    Rows of the table that leave go with the same commit."""
    evaluated = known.evaluate(query)
    args = _stage_args(known, evaluated.sql)
    staged: dict[str, Any] = {"inline": args} if known.unstaged else {"stage": "stage"}
    steps = ai_steps(evaluated.ai_rounds)
    if not known.unstaged:
        steps.append(Step("stage_changes", args))
    leave = {"target": "target", "leaves": leaves.condition, "typed": leaves.typed} if leaves else {}
    bound = next_bound(known)
    steps.append(_check(known, {**staged, **leave, **_asked(known, bound)}))
    if bounded(known.columns):
        steps.append(Step("key_range", {"target": "target", "keys": known.columns.keys}, when=When.NO_BOUND))
    steps.append(Step("check_new", {**_new(known), **staged, **leave}, when=When.UNPROVEN))
    publishing = publish_new(known.columns, staged)
    if leaves:
        args = {"relation": "target", "columns": known.columns.columns, "predicate": leaves.condition, **staged}
        publishing = [*_delete(leaves.condition), Step("replace_where", args, when=When.COME_AND_LEAVE), *publishing]
    return [*steps, *bound.far(), *publishing]


def evict_rows(known: IncrementalFacts, leaves: Leaving) -> list[Step]:
    """Delete the rows of the table that leave."""
    bound = next_bound(known)
    check = {"target": "target", "leaves": leaves.condition, **_asked(known, bound)}
    return [
        Step("check_leaving", {**check, **counted(known.columns, known.changes.target_rows)}),
        *bound.far(),
        *_delete(leaves.condition),
        Step("record_only", {"relation": "target"}, when=When.UNCHANGED),
    ]


def _asked(known: IncrementalFacts, bound: NextBound) -> dict[str, Any]:
    """What a check is asked of the next bound: of the rows themselves where they tell it, else of the sources."""
    ends = row_ends(known)
    return asdict(ends) if ends else {"next_change": bound.first}


def _delete(leaves: str) -> list[Step]:
    return [Step("delete_where", {"relation": "target", "predicate": leaves}, when=When.ONLY_LEAVE)]


def merge_rows(
    known: IncrementalFacts,
    query: str,
    anchors: Mapping[str, str],
    images: Mapping[str, str] | None = None,
    affected: AffectedRows | None = None,
) -> list[Step]:
    """Evaluate `query` (already restricted), stage where it differs from the table's rows of the affected `anchors`
    (column of the table → column of the affected rows), and publish. `images`: columns whose old values the affected
    rows have, so that they need not be read from the table. `affected` where the affected rows are not staged."""
    evaluated = known.evaluate(query)
    keys = {name.lower() for name in known.columns.keys}
    # no key of the table is NULL; <=> keeps Spark from the quickest of its joins
    listed = [{"column": c, "affected": k, "test": "=" if c.lower() in keys else "<=>"} for c, k in anchors.items()]
    args = {**_stage_args(known, evaluated.sql), "target": "target", "anchors": listed}
    args["affected"] = f"(\n{affected.rows}\n)" if affected else relation("affected")
    args["images"] = dict(images or {})
    if (failing := known.rewritten.failing_sql) is not None:
        args["failing"] = at_versions(failing, known.facts.sources) or failing
        args["failing_columns"] = known.rewritten.failing_columns
    steps = [*ai_steps(evaluated.ai_rounds), *_range_of_keys(known)]
    ranged = _ranged(known, listed)
    if ranged:
        within = f"(\n{affected.anchors}\n)" if affected else relation("affected")
        steps.append(Step("affected_range", {"affected": within, "anchors": ranged}))
    staged, bound = {"stage": "stage"}, next_bound(known)
    steps += [*bound.ahead(), Step("stage_changes", args), _check(known, {**staged, "next_change": bound.first})]
    if not {name.lower() for name in anchors} <= keys:
        steps.append(Step("check_new", {**_new(known), **staged}, when=When.INSERTED))
    return [*steps, *_evicted(known), *bound.far(), *publish(known.columns, staged)]


def rewrite_all(known: IncrementalFacts, query: str, doubt: str) -> list[Step]:
    """Compare `query`, which gives all rows of the result, with the whole table, and publish what differs. `doubt`: a query over
    the staged rows, true where they are not sure."""
    args = {**_stage_args(known, known.evaluate(query).sql), "target": "target"}
    staged, bound = {"stage": "stage"}, next_bound(known)
    check = _check(known, {**staged, "next_change": bound.first, "doubt": doubt})
    staging = [*bound.ahead(), Step("stage_changes", args), *_range_of_keys(known)]
    return [*staging, check, *bound.far(), *publish(known.columns, staged)]


def _stage_args(known: IncrementalFacts, sql: str) -> dict[str, Any]:
    return {
        "into": "stage",
        "query": sql,
        "columns": known.columns.columns,
        "target": None,
        "all_rows": False,
        "keep_missing": known.config.on_source_delete == "keep",
        "stays": known.columns.stays,
        "forget": (),
        "affected": None,
        "images": {},
        "anchors": [],
    }


def _ranged(known: IncrementalFacts, anchors: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The anchors whose range may spare reading the table: not worth a statement for a small one."""
    types = {c.name.lower(): c.type for c in known.columns.columns}
    large = is_large(known.changes.target_rows)
    return [anchor for anchor in anchors if large and has_bound(types.get(anchor["column"].lower(), ""))]


def _check(known: IncrementalFacts, args: Mapping[str, Any]) -> Step:
    """The check of the rows, which also looks for the next bound."""
    step = check_stage(known.columns, known.changes.target_rows)
    return replace(step, args={**step.args, **args})


def _range_of_keys(known: IncrementalFacts) -> list[Step]:
    return range_of_keys(known.columns, known.facts.target.record, known.changes.target_rows)


def _new(known: IncrementalFacts) -> dict[str, Any]:
    return {"target": "target", "keys": known.columns.keys}


def _evicted(known: IncrementalFacts) -> list[Step]:
    """Count the rows that the clock takes; none where that cannot be told."""
    unclocked = known.rewritten.unclocked_sql
    if not known.rewritten.clock or (unclocked is None and (known.move is None or known.clock_back)):
        return []
    query = None
    if known.changes.sources or known.clock_back:  # else nothing but the clock takes rows: no need to ask any query
        query = _unclocked(known, unclocked) if unclocked is not None else _still_there(known)
        if query is None:
            return []
    args = {
        "stage": "stage",
        "keys": known.columns.keys,
        "query": query,
        "is_relation": False,
        "as_of": known.rewritten.as_of_literal,
    }
    return [Step("count_evicted", args, when=When.DELETED)]


def _still_there(known: IncrementalFacts) -> str | None:
    """Of the rows to delete, those that the sources of this run give at the instant of the last one."""
    if known.move is None or known.rewritten.ai_rounds or known.rewritten.draw_sql:
        return None
    anchors = AffectedQuery("", known.columns.keys)
    keys = ", ".join(f"{quoted(key)} AS {anchor}" for key, anchor in anchors.columns.items())
    deleted = f"(SELECT {keys} FROM {relation('stage')} WHERE `__mv_op` = 'D')"
    try:
        text = known.texts.pinned(known.tree.among(deleted, anchors))
    except NotIncremental:
        return None
    at_once = pin(text, known.move.before).sql
    return f"SELECT *, {known.rewritten.as_of_literal} AS `__mv_valid_to` FROM (\n{at_once}\n)"


def _unclocked(known: IncrementalFacts, sql: str) -> str | None:
    if known.linear_source is None:
        return sql
    try:
        return known.texts.on_candidates(sql, known.moved_windows)
    except NotIncremental:  # a view stands between, which this text names
        return _still_there(known)
