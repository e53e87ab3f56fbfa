"""What a run learns from the steps that look before they write: counts, bounds, and what keeps it from publishing.

Each function executes one kind of step, and sets the counts (CurrentRun.counts) that decide which later steps are due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_mv.maintenance.columns import Role
from spark_mv.maintenance.errors import NotFollowed, RunFailed
from spark_mv.maintenance.key_bound import bound_text
from spark_mv.maintenance.row_limit import row_limit
from spark_mv.maintenance.steps.publish import FEW_KEYS, LARGE
from spark_mv.spark.formats.replace_using import Gone, can_replace_using
from spark_mv.spark.run import planning
from spark_mv.spark.run.answers import ai_round
from spark_mv.spark.run.as_of import instant_text
from spark_mv.spark.run.audit_checks import AUDIT_CHECKS
from spark_mv.spark.run.current import CurrentRun, StepView
from spark_mv.spark.run.literals import between, in_list, literal


def check_stage(run: CurrentRun, step: StepView, sql: str | None) -> None:
    row = run.statement(sql or "")[0]
    if row.get("unsure"):
        raise NotFollowed(f"model {run.plan.model}: {row['unsure']:,} groups have to be recomputed")
    if not row.get("typed", True):
        raise NotFollowed(
            f"model {run.plan.model}: a window compares a column with a value of another type. The table was not "
            "touched. Cast the value to the type of the column, or run once with refresh: auto"
        )
    if row["duplicate_keys"] or row["null_keys"]:
        found = []
        if row["duplicate_keys"]:
            found.append(f"{row['duplicate_keys']:,} rows share a key with another, e.g. {row['duplicate_example']}")
        if row["null_keys"]:
            found.append(f"{row['null_keys']:,} rows have a NULL in it, e.g. {row['null_example']}")
        raise _wrong_keys(run, step, "; ".join(found))
    violated = {name[9:]: n for name, n in row.items() if name.startswith("violates ") and n}
    if violated:
        broken = "; ".join(f"{n:,} rows violate {name}" for name, n in violated.items())
        raise RunFailed(
            f"model {run.plan.model}: the contract does not hold: {broken}. The table was not touched. Correct the "
            "query or its sources, or change the constraint"
        )
    if step.args.get("into") == "state":
        run.counts["state_changed"], run.counts["state_updated"] = (
            int(row["inserted"] + row["updated"]),
            int(row["updated"]),
        )
        run.counts["state_unchanged"] = int(run.counts["state_changed"] == 0)
        return
    for name in ("inserted", "updated", "deleted", "remaining"):
        run.counts[name] = int(row[name])
    run.counts["changes"] = int(row.get("changes", row["updated"]))
    if row.get("of_the_table") is not None:
        table = json.loads(row["of_the_table"])
        bounds = [found for found in (row["next_change"], table.get("next_change")) if found is not None]
        row = {**row, "leaving": table["leaving"], "next_change": min(bounds, default=None)}
    _count_leaving(run, int(row.get("leaving") or 0))
    run.counts["only_new"] = int(run.counts["changed"] == run.counts["inserted"] > 0)
    _count_target(run, row.get("target_rows", step.args["target_rows"]), step.args["keeps"])
    _found_next(run, row)
    run.keys.staged(row)
    _choose_rewrite(run, int(row["deleted"]), step.args["keys"])
    run.counts["no_bound"] = int(run.keys.need_bound)
    _prove_new(run)


def check_leaving(run: CurrentRun, step: StepView, sql: str | None) -> None:
    run.counts.update(inserted=0, updated=0, deleted=0, changes=0)
    row = run.statement(sql or "")[0]
    _count_leaving(run, int(row["leaving"]))
    _found_next(run, row)
    _count_target(run, step.args["target_rows"], step.args["keeps"])


def _count_leaving(run: CurrentRun, leaving: int) -> None:
    """Rows of the table that go without being staged."""
    counts = run.counts
    counts["deleted"] += leaving
    if leaving:
        counts["evicted"] = leaving
    counts["changed"] = sum(counts[name] for name in ("inserted", "updated", "deleted"))
    counts["unchanged"] = int(counts["changed"] == 0)
    counts["only_leave"] = int(counts["changed"] == leaving > 0)
    counts["come_and_leave"] = int(counts["changed"] > leaving > 0)


def _count_target(run: CurrentRun, before: int | None, keeps: bool) -> None:
    """Rows of the table after this run, from those `before` it, and how many of them kept their values."""
    if before is not None:
        run.counts["rows_before"] = int(before)
        run.counts["target_rows"] = int(before) + run.counts["inserted"] - run.counts["deleted"]
        if keeps and run.plan.record and run.plan.record.base_version is not None:
            run.counts["kept"] = int(before) - run.counts["deleted"]


def check_limit(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Rows that only come do not count."""
    counts, limit = run.counts, row_limit(step.args["limit"])
    assert limit is not None
    if "target" in step.args:
        before = step.args["rows_before"]
        if before is None:
            before = run.statement(f"select count(*) as n from {step.args['target']}")[0]["n"]
        counts = {"changes": counts["state_updated"], "deleted": 0, "rows_before": int(before)}
    changed, before = counts["changes"] + counts["deleted"], counts.get("rows_before", 0)
    if changed <= limit.most(before):
        return
    of = f" of {before:,}" if before else ""
    evicted = f", {counts['evicted']:,} of them by the clock" if counts.get("evicted") else ""
    raise RunFailed(
        f"model {run.plan.model}: this run would change {counts['changes']:,} and delete {counts['deleted']:,} rows{evicted}: "
        f"{changed:,}{of}, and max_rows_changed is {limit.written} ({limit.most(before):,} rows). Nothing was published. Look whether "
        "the sources arrived complete; if this is right, let it pass once with "
        """--vars '{"max_rows_changed": "100%"}'"""
    )


def affected_range(run: CurrentRun, step: StepView, sql: str | None) -> None:
    row = run.statement(sql or "")[0]
    names = [anchor["column"] for anchor in step.args["anchors"] if not row[f"nulls {anchor['column']}"]]
    keys = [column.name for column in run.plan.columns if column.role is Role.KEY]
    ends = {name: (row[f"low {name}"], row[f"high {name}"]) for name in names}
    ranges = [
        between(n, low, high, "r.") for n, (low, high) in ends.items() if [n] != keys or not run.keys.far(low, high)
    ]
    run.keys.affected = " AND ".join(text for text in ranges if text is not None)


def key_range(run: CurrentRun, step: StepView, sql: str | None) -> None:
    row = run.statement(sql or "")[0]
    run.keys.bound, run.keys.floor = bound_text(row["highest"]), bound_text(row["lowest"])
    _prove_new(run)


def _choose_rewrite(run: CurrentRun, gone: int, keys: Sequence[str]) -> None:
    """By which statement rows of the table are written anew. A join finds them quickest, and a list of keys where it
    spares most of a large table. `gone` of the staged rows are not written."""
    counts, rows = run.counts, run.counts.get("target_rows", 0)
    written = counts["inserted"] + counts["updated"]
    rewritten = written + gone > counts["inserted"]
    small = rows < LARGE or written + gone > FEW_KEYS
    join = (
        rewritten
        and (gone == 0 or (len(keys) == 1 and gone <= FEW_KEYS and written > 0))
        and (small or not run.keys.range(keys[0]) or run.keys.spread)
        and can_replace_using(run.session.mv_spark(), keys)
    )
    counts["by_join"], counts["few_gone"] = int(join), int(join and gone > 0)
    counts["by_list"] = counts["many_keys"] = int(rewritten and not join)


def gone_keys(run: CurrentRun, step: StepView, sql: str | None) -> None:
    found = run.statement(sql or "")
    name = step.args["keys"][0]
    listed = in_list(name, [row["key"] for row in found if row["gone"]])
    written = literal(next(row["key"] for row in found if not row["gone"]))
    if listed is None or written is None:  # a type without exact literals
        run.counts["by_join"], run.counts["by_list"], run.counts["many_keys"] = 0, 1, 1
    else:
        run.keys.gone = Gone(listed, written)


def _prove_new(run: CurrentRun) -> None:
    run.counts["unproven"] = int(run.counts["inserted"] > 0 and not run.keys.proven_new)


def check_new(run: CurrentRun, step: StepView, sql: str | None) -> None:
    row = run.statement(sql or "")[0]
    if row["duplicate_keys"]:
        raise _wrong_keys(
            run, step, f"{row['duplicate_keys']:,} rows share a key with another, e.g. {row['duplicate_example']}"
        )
    if row["returned_keys"]:
        raise NotFollowed(
            f"model {run.plan.model}: {row['returned_keys']:,} new rows have the key of a row that leaves its window "
            "in this run, whose kept values they take over. The table was not touched. Run once with refresh: auto"
        )


def staged_keys(run: CurrentRun, step: StepView, sql: str | None) -> None:
    if len(step.args["keys"]) == 1 and run.counts["changed"] < int(step.args["limit"]):
        key = step.args["keys"][0]
        run.keys.listed = in_list(key, [row[key] for row in run.statement(sql or "")]) or ""
    run.counts["few_keys"] = int(bool(run.keys.listed))
    run.counts["many_keys"] = int(not run.keys.listed)


def _wrong_keys(run: CurrentRun, step: StepView, found: str) -> RunFailed:
    return RunFailed(
        f"model {run.plan.model}: unique_key ({', '.join(step.args['keys'])}) does not identify the rows of the "
        f"query: {found}. The table was not touched. Remove the repeats in the query (for example with "
        "row_number() = 1 per key), or name the columns that do identify a row"
    )


def count_evicted(run: CurrentRun, step: StepView, sql: str | None) -> None:
    run.counts["evicted"] = int(run.statement(sql or "")[0]["evicted"])


def next_change(run: CurrentRun, step: StepView, sql: str | None) -> None:
    micros = None
    for query in (step.args.get("near"), sql):
        if query and micros is None:
            micros = run.statement(_micros(query))[0]["next_change"]
    _changes_next(run, micros)


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
        _changes_next(run, row["next_change"])
        run.counts["far"] = int(row["next_change"] is None)


def _changes_next(run: CurrentRun, micros: int | None) -> None:
    """As a number: rows carry timestamps in the local time of this process, whatever the session's zone is."""
    run.next_change_at = None if micros is None else instant_text(micros)


CHECKS: Mapping[str, Callable[[CurrentRun, StepView, str | None], None]] = AUDIT_CHECKS | {
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
    )
}
