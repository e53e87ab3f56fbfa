"""The table `mv_runs` beside the models: what each run did and why, one row a run, for people and for `explain_mv`.

What a run needs to know is in the commits of its own table; these rows are for reading. So they are collected and
written once per dbt invocation, in one commit, and a failure to write them is a warning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any

from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.maintenance.format_version import TABLE_PROPERTIES, ask_format, check_rows
from spark_mv.maintenance.plan import Plan
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.delta import Delta
from spark_mv.spark.formats.own_tables import RUNS, make_table
from spark_mv.spark.formats.table_format import TableFormat

TABLE = RUNS
COLUMNS = {
    "model": "string",
    "invocation_id": "string",
    "as_of": "timestamp",
    "started_at": "timestamp",
    "seconds": "double",
    "status": "string",
    "strategy": "string",
    "reasons": "string",
    "candidates": "string",
    "estimated_cost": "double",
    "statements": "int",
    "rows_inserted": "bigint",
    "rows_updated": "bigint",
    "rows_deleted": "bigint",
    "rows_evicted": "bigint",
    "values_kept": "bigint",
    "ai_calls": "bigint",
    "ai_errors": "bigint",
    "message": "string",
    "audit_differences": "bigint",
    "audit": "string",
    "ai_reused": "bigint",
    "estimated_seconds": "double",
}
"""`status`: success or error. `strategy`: empty where a run was stopped before it had a plan. `candidates`: JSON, every strategy with whether
it applies, reason codes and sentences, and estimated cost (rows and seconds). `estimated_cost`, `estimated_seconds`: of the chosen one; `seconds`: what the run took, from its first look to its end. `audit_differences`: rows that an audit found
to differ from a complete recompute (NULL: no audit); `audit`: JSON about them, with a few keys. `ai_reused`: answers that were there."""
FIRST_COLUMNS = frozenset(["model", "invocation_id", "started_at", "status", "strategy", "reasons"])
"""Those that each release wrote."""


@dataclass(frozen=True)
class Done:
    """One run that ended. `plan` and `as_of`: None where it was stopped before it had one. `response`: fields of MvResponse, empty after an error."""

    plan: Plan | None
    model: str
    invocation_id: str
    as_of: str | None
    started_at: datetime
    seconds: float
    status: str
    message: str
    response: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        chosen = self.plan.chosen if self.plan else None
        candidates = [
            {
                "strategy": c.strategy,
                "applies": c.applies,
                "cost": c.cost,
                "seconds": c.seconds,
                "reasons": [{"code": r.code, "sentence": r.sentence} for r in c.reasons],
            }
            for c in (self.plan.candidates if self.plan else ())
        ]
        return {
            "model": self.model,
            "invocation_id": self.invocation_id,
            "started_at": f"{self.started_at:%Y-%m-%d %H:%M:%S.%f} UTC",
            "seconds": round(self.seconds, 3),
            "status": self.status,
            "strategy": self.plan.strategy if self.plan else "",
            "reasons": ", ".join(r.code for r in chosen.reasons) if chosen else "",
            "candidates": json.dumps(candidates, ensure_ascii=False),
            "estimated_cost": chosen.cost if chosen else None,
            "estimated_seconds": chosen.seconds if chosen else None,
            "message": self.message,
            **{name: self.response[name] for name in COLUMNS if name in self.response},
            "as_of": f"{self.as_of} UTC" if self.as_of else None,  # a response says it without its time zone
        }


class RunHistory:
    """Rows that wait to be written, by schema. Shared by the threads of one invocation."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Done]] = {}
        self._checked: set[str] = set()
        self._lock = Lock()

    def add(self, schema: str, done: Done) -> None:
        """`schema` is rendered, as in front of a table's name."""
        with self._lock:
            self._waiting.setdefault(schema, []).append(done)

    def write(self, query: Query, warn: Callable[[str], None], own_format: Callable[[], TableFormat] = Delta) -> None:
        """Append all that waits: one statement per schema, and the first time one that looks at the table, which is made in the format that
        `own_format` tells. That of a later release is left as it is."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for schema, rows in waiting.items():
            table = f"{schema}.{TABLE}"
            try:
                if table not in self._checked:
                    _check(query, table)
                _append(query, table, rows, own_format)
                self._checked.add(table)
            except Exception as error:
                warn(f"the history of {len(rows)} runs was not written to {schema}.{TABLE}: {first_line(error)}")

    @property
    def waits(self) -> bool:
        return bool(self._waiting)


def _check(query: Query, table: str) -> None:
    """Raises RefusedError for the table of a later release."""
    try:
        check_rows(table, [tuple(row.values()) for row in query(ask_format(table))])
    except Exception as error:
        if "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
            raise


def _append(query: Query, table: str, rows: list[Done], own_format: Callable[[], TableFormat]) -> None:
    values = ",\n".join(
        "(" + ", ".join(_literal(row.get(name), kind) for name, kind in COLUMNS.items()) + ")"
        for row in (done.values() for done in rows)
    )
    insert = f"insert into {table} ({', '.join(COLUMNS)}) values\n{values}"
    try:
        query(insert)
    except Exception as error:
        if "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
            if not _add_columns(query, table):
                raise
            query(insert)
            return
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        made = own_format()
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in made.growing().items())
        create = (
            f"create table if not exists {table} ({columns}) using {made.name} "
            f"comment 'What each run of a nondeterministic_mv did and why' tblproperties ({properties}, {TABLE_PROPERTIES})"
        )
        make_table(query, table, create)
        query(insert)


def _add_columns(query: Query, table: str) -> bool:
    """Whether the table, of an earlier release, lacked columns and has got them."""
    there = {str(row["col_name"]).lower() for row in query(f"describe table {table}")}
    if there and not there >= FIRST_COLUMNS:
        raise RefusedError(
            "NOT_OURS",
            f"{table} is not the table of runs, so it is left as it is. Give it another name, or set run_history: false in the profile",
        )
    missing = [f"{name} {kind}" for name, kind in COLUMNS.items() if name not in there]
    if there and missing:
        query(f"alter table {table} add columns ({', '.join(missing)})")
    return bool(there and missing)


def past_runs(query: Query, schema: str, model: str, limit: int = 5) -> list[Mapping[str, Any]]:
    """The newest runs of a model, newest first; none where nothing was written yet."""
    try:
        return list(
            query(
                "select date_format(started_at, 'yyyy-MM-dd HH:mm:ss') as started_at, seconds, status, strategy, reasons, "
                f"estimated_cost, message from {schema}.{TABLE} where model = {string_literal(model)} "
                f"order by mv_runs.started_at desc limit {limit}"
            )
        )
    except Exception as error:
        if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
            return []
        raise


def _literal(value: Any, kind: str) -> str:
    if value is None:
        return f"cast(null as {kind})"
    if kind == "timestamp":
        return f"timestamp'{value}'"
    if kind == "string":
        return string_literal(str(value))
    return f"cast({value} as {kind})"
