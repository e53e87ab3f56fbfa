"""What a run learns from the steps that look before they write: counts, bounds, and what keeps it from publishing.

Each function executes the kind of step of its name (steps.kinds), and says in CurrentRun.staged what decides which later steps are due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.columns import Role
from spark_mv.maintenance.errors import NotFollowed, RunFailed
from spark_mv.maintenance.key_bound import bound_text
from spark_mv.maintenance.row_limit import row_limit
from spark_mv.maintenance.staged import Staged
from spark_mv.maintenance.steps.rewrite_rows import Rewrite, RowCounts, listable, rewrite_of
from spark_mv.query.syntax.literals import between, in_list, in_rows, literal
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.formats.replace_using import TABLE, Gone, can_replace_using
from spark_mv.spark.run import planning
from spark_mv.spark.run.answers import ai_round
from spark_mv.spark.run.as_of import instant_text
from spark_mv.spark.run.audit_checks import AUDIT_CHECKS
from spark_mv.spark.run.current import CurrentRun, StepView


def check_stage(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """The staged rows: keys, limits and counts, from which the publishing statement follows. Raises RunFailed or NotFollowed."""
    row = run.statement(sql or "")[0]
    _refuse_rows(run, step, row)
    if step.args.get("into") == "state":
        inserted, updated, deleted = int(row["inserted"]), int(row["updated"]), int(row["deleted"])
        run.staged = replace(
            run.staged,
            state_rows=inserted + updated,
            state_updates=updated,
            state_deletes=deleted,
            state_checked=True,
        )
        return
    of_table = json.loads(row["of_the_table"]) if row.get("of_the_table") is not None else None
    if of_table is not None:
        bounds = [found for found in (row["next_change"], of_table.get("next_change")) if found is not None]
        row = {**row, "leaving": of_table["leaving"], "next_change": min(bounds, default=None)}
    staged = replace(
        run.staged,
        inserted=int(row["inserted"]),
        updated=int(row["updated"]),
        deleted=int(row["deleted"]),
        remaining=int(row["remaining"]),
        changes=int(row.get("changes", row["updated"])),
        keys=run.staged.keys.staged(row),
    ).with_leaving(int(row.get("leaving") or 0))
    run.staged = _of_target(run, staged, row.get("target_rows", step.args["target_rows"]), step.args["keeps"])
    _found_next(run, row)
    _choose_rewrite(run, int(row["deleted"]), step.args["keys"])


def _refuse_rows(run: CurrentRun, step: StepView, row: Mapping[str, Any]) -> None:
    """Raises NotFollowed or RunFailed for staged rows that cannot be published."""
    if row.get("unsure"):
        raise NotFollowed("GROUPS_UNSURE", f"model {run.plan.model}: {row['unsure']:,} groups have to be recomputed")
    if row.get("doubt"):
        raise NotFollowed(
            "TOP_ROWS_UNSURE",
            f"model {run.plan.model}: rows that the LIMIT left out may take the place of rows that went or moved back, and only the "
            "whole query tells which",
        )
    if not row.get("typed", True):
        raise NotFollowed(
            "WINDOW_TYPE",
            f"model {run.plan.model}: a window compares a column with a value of another type. The table was not "
            "touched. Cast the value to the type of the column, or run once with refresh: auto",
        )
    if row["duplicate_keys"] or row["null_keys"]:
        found = []
        if row["duplicate_keys"]:
            example = run.example(row["duplicate_example"])
            found.append(f"{_sharing(row['duplicate_keys'])}, {example}")
        if row["null_keys"]:
            number = row["null_keys"]
            found.append(
                f"{number:,} {'row has' if number == 1 else 'rows have'} a NULL in it, {run.example(row['null_example'])}"
            )
        raise _wrong_keys(run, step, "; ".join(found), _cure(step, row))
    violated = {name[9:]: n for name, n in row.items() if name.startswith("violates ") and n}
    if violated:
        broken = "; ".join(f"{n:,} rows violate {name}" for name, n in violated.items())
        raise RunFailed(
            "CONTRACT",
            f"model {run.plan.model}: the contract does not hold: {broken}. The table was not touched. Correct the "
            "query or its sources, or change the constraint",
        )


def check_leaving(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """How many rows of the table leave by the clock, and when the next one does."""
    row = run.statement(sql or "")[0]
    found = run.staged.with_leaving(int(row["leaving"]))
    run.staged = _of_target(run, found, step.args["target_rows"], step.args["keeps"])
    _found_next(run, row)


def _of_target(run: CurrentRun, found: Staged, before: int | None, keeps: bool) -> Staged:
    """With the rows of the table `before` this run, and how many of them keep their values."""
    if before is None:
        return found
    record = run.plan.record
    kept = int(before) - found.deleted if keeps and record and record.base_version is not None else None
    return replace(found, rows_before=int(before), kept=kept)


def check_limit(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """RowCounts that only come do not count."""
    limit = row_limit(step.args["limit"])
    assert limit is not None
    changes, deleted, before = run.staged.changes, run.staged.deleted, run.staged.rows_before or 0
    if "target" in step.args:  # of the state table: what changes in it would change in the model's
        known = step.args["rows_before"]
        if known is None:
            known = run.statement(f"select count(*) as n from {step.args['target']}")[0]["n"]
        changes, deleted, before = run.staged.state_updates, 0, int(known)
    changed = changes + deleted
    if changed <= limit.most(before):
        return
    run.settle()
    of = f" of {before:,}" if before else ""
    evicted = f", {run.staged.evicted:,} of them by the clock" if run.staged.evicted else ""
    raise RunFailed(
        "MAX_ROWS_CHANGED",
        f"model {run.plan.model}: this run would change {changes:,} and delete {deleted:,} rows{evicted}: "
        f"{changed:,}{of}, and max_rows_changed is {limit.written} ({limit.most(before):,} rows). Nothing was published. Look whether "
        "the sources arrived complete; if this is right, let it pass once with "
        """--vars '{"max_rows_changed": "100%"}'""",
    )


def affected_range(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Between which values the affected rows lie: the table's rows outside need not be read."""
    if not run.shows_keys:
        return
    row = run.statement(sql or "")[0]
    names = [anchor["column"] for anchor in step.args["anchors"] if not row[f"nulls {anchor['column']}"]]
    keys = [column.name for column in run.plan.columns if column.role is Role.KEY]
    ends = {name: (row[f"low {name}"], row[f"high {name}"]) for name in names}
    ranges = [
        between(n, low, high, "r.")
        for n, (low, high) in ends.items()
        if [n] != keys or not run.staged.keys.far(low, high)
    ]
    run.key_texts = replace(run.key_texts, affected=" AND ".join(text for text in ranges if text is not None))


def key_range(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Between which keys those of the table lie, asked of the table where no record says it, and may say it."""
    if not run.shows_keys:
        return
    row = run.statement(sql or "")[0]
    keys = replace(run.staged.keys, bound=bound_text(row["highest"]), floor=bound_text(row["lowest"]))
    run.staged = replace(run.staged, keys=keys)


def _choose_rewrite(run: CurrentRun, gone: int, names: Sequence[str]) -> None:
    found = run.staged
    rows = RowCounts(found.inserted, found.updated, gone, found.target_rows or 0)
    offered = run.format.replaces_by_key and any(step.kind == "replace_using" for step in run.plan.steps)
    can = offered and can_replace_using(run.session.mv_spark(), run.relations["target"])
    rewrite = rewrite_of(rows, found.keys, tuple(names), can)
    if rewrite is Rewrite.LIST and not run.format.replaces_by_key:
        rewrite = Rewrite.MERGE
    run.staged = replace(found, rewrite=rewrite)


def gone_keys(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """The keys of rows that go, as a list, where they are few enough to be written down."""
    if not run.shows_keys:
        run.staged = replace(run.staged, rewrite=Rewrite.LIST)
        return
    found = run.statement(sql or "")
    names = step.args["keys"]
    gone, kept = (
        [tuple(row[name] for name in names) for row in found if row["__mv_gone"] is which] for which in (True, False)
    )
    listed = in_rows(names, gone, f"{TABLE}.")
    written = tuple(text for value in kept[0] if (text := literal(value)) is not None)
    if listed is None or len(written) < len(names):  # a type without exact literals, or too many rows to compare
        run.staged = replace(run.staged, rewrite=Rewrite.LIST)
    else:
        run.key_texts = replace(run.key_texts, gone=Gone(listed, written))


def _sharing(rows: int) -> str:
    """Of rows of the query, or of new rows whose key the table has."""
    return "1 row shares a key with another" if rows == 1 else f"{rows:,} rows share a key with another"


def check_new(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """That no appended row has a key of the table, nor of another. Raises RunFailed or NotFollowed."""
    row = run.statement(sql or "")[0]
    if row["duplicate_keys"]:
        raise _wrong_keys(
            run,
            step,
            f"{_sharing(row['duplicate_keys'])}, {run.example(row['duplicate_example'])}",
        )
    if row["returned_keys"]:
        raise NotFollowed(
            "KEY_RETURNS",
            f"model {run.plan.model}: {row['returned_keys']:,} new rows have the key of a row that leaves its window "
            "in this run, whose kept values they take over. The table was not touched. Run once with refresh: auto",
        )


def staged_keys(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """The keys of the staged rows, as a list, where they are few."""
    listed, keys = None, step.args["keys"]
    if run.shows_keys and listable(tuple(keys), run.staged.rows):
        listed = in_list(keys[0], [row[keys[0]] for row in run.statement(sql or "")])
    run.key_texts = replace(run.key_texts, listed=listed or "")
    run.staged = replace(run.staged, rewrite=Rewrite.LISTED if listed else Rewrite.MERGE)


_REPEATS = "Remove the repeats in the query (for example with row_number() = 1 per key), or name the columns that do identify a row"
_OF_ALL_INSTANTS = (
    "on_source_delete: keep remembers the rows of all instants by unique_key, also those that are still to enter. Where rows of one key follow "
    "each other, name the column in which their windows begin in unique_key, too, or set on_source_delete: delete. Else remove the repeats in the query"
)
_ONLY_NULLS = "Leave such rows out of the query (WHERE … IS NOT NULL), or give them a key (coalesce)"


def _cure(step: StepView, row: Mapping[str, Any]) -> str:
    if not row["duplicate_keys"]:
        return _ONLY_NULLS
    return _OF_ALL_INSTANTS if step.args.get("of_all_instants") else _REPEATS


def _wrong_keys(run: CurrentRun, step: StepView, found: str, cure: str = _REPEATS) -> RunFailed:
    if run.ai.pending:
        cure = f"{run.ai.pending:,} AI answers are still to come, and rows have NULL in their place: run again when they are there. Else: {cure}"
    return RunFailed(
        "KEY_REPEATED",
        f"model {run.plan.model}: unique_key ({', '.join(step.args['keys'])}) does not identify the rows of the "
        f"query: {found}. The table was not touched. {cure}",
    )


def count_evicted(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """How many of the rows that go are the clock's. Nothing but reports needs it, so it is counted while the rows are published; not
    where it reads a table that the run goes on to write."""
    written = any(run.relations[name] in (sql or "") for name in ("target", "state"))
    ahead = None if written else planning.ask_ahead(run.session.mv_spark(), sql or "")
    if ahead is None:
        run.staged = replace(run.staged, evicted=int(run.statement(sql or "")[0]["evicted"]))
        return
    run.statements += 1
    run.counting = ahead


def next_change(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """The next instant at which a row enters or leaves."""
    _take_next(run, run.statement(_micros(step.args["query"]))[0]["next_change"])


def ask_ahead(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """The next bound, while other statements run. Where that cannot be, the check of the rows asks for it."""
    run.asked = planning.ask_ahead(run.session.mv_spark(), _micros(step.args["next_change"]))
    run.statements += run.asked is not None


def _micros(query: str) -> str:
    return f"select unix_micros((\n{query}\n)) as next_change"


def _found_next(run: CurrentRun, row: Mapping[str, Any]) -> None:
    """What a check says of the next bound, if it was asked."""
    if run.asked is not None:
        row = run.asked.result()[0]
    if "next_change" in row:
        _take_next(run, row["next_change"])


def _take_next(run: CurrentRun, micros: int | None) -> None:
    """As a number: rows carry timestamps in the local time of this process, whatever the session's zone is."""
    run.next_change_at = None if micros is None else instant_text(micros)
    run.staged = replace(run.staged, far=micros is None)


def confirm_sources(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Which sources were written to while the run read them."""
    for name, version in step.args["versions"].items():
        table_format = format_of(run.providers.get(name, ""))
        latest = table_format.newest(run.ask, quoted_name(name)) if table_format else None
        if latest is None or latest.version != version:
            run.moved.add(name)


HANDLERS: Mapping[str, Callable[[CurrentRun, StepView, str | None], None]] = AUDIT_CHECKS | {
    f.__name__: f
    for f in (
        ai_round,
        check_stage,
        check_leaving,
        check_limit,
        affected_range,
        key_range,
        gone_keys,
        check_new,
        staged_keys,
        count_evicted,
        ask_ahead,
        next_change,
        confirm_sources,
    )
}
