"""The steps that only an audit has: what it learns of the rows that differ."""

from __future__ import annotations

from spark_mv.maintenance.errors import NotFollowed
from spark_mv.spark.run.current import CurrentRun, StepView


def audit_keys(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Rows of the table that no key tells from others. Raises NotFollowed where there are any."""
    row = run.statement(sql or "")[0]
    repeated = int(row["repeated"])
    run.found["repeated"] = repeated
    if repeated:
        run.found["examples"] = [{"key": _shown(run, row["example"]), "what": "repeated, or no key"}]
        raise NotFollowed("TABLE_REPEATS", f"{repeated:,} rows of the table repeat a key, or have none")


def audit_examples(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Rows in which the table and its recompute differ."""
    found = [{"key": _shown(run, row["key"]), "what": row["what"]} for row in run.statement(sql or "")]
    run.found["examples"] = [*run.found.get("examples", ()), *found]


def _shown(run: CurrentRun, key: str) -> str:
    return key if run.shows_keys else "a key that is not shown"


def audit_watched(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """How many rows differ only in columns that may."""
    run.found["unordered"] = int(run.statement(sql or "")[0]["unordered"])


AUDIT_CHECKS = {f.__name__: f for f in (audit_keys, audit_examples, audit_watched)}
