"""Rows of mv_runs: written once for all runs of an invocation, never in the way of the runs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from spark_mv.maintenance.plan import Candidate, Plan, Reason
from spark_mv.spark.run.run_history import COLUMNS, Done, RunHistory, past_runs

pytestmark = pytest.mark.unit
PLAN = Plan(
    "m",
    "ROW_BASED",
    (
        Candidate("NO_OP", False, (Reason("SOURCE_CHANGED", "db.t went from version 1 to 2"),)),
        Candidate("ROW_BASED", True, (Reason("CHANGED_ROWS", "it's 'linear'"),), 120.0),
    ),
)


def done(message: str = "MERGE +1", status: str = "success") -> Done:
    started = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=timezone.utc)
    as_of = "2026-01-02 00:00:00.000000"
    response = {"_message": message, "strategy": "APPEND_ONLY", "rows_inserted": 1, "as_of": as_of, "statements": 3}
    return Done(PLAN, "model.p.m", "i1", as_of, started, 1.25, status, message, response)


def test_a_run_that_was_stopped_before_it_had_a_plan_is_a_row_too() -> None:
    started = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    history, engine = RunHistory(), Engine()
    history.add("`a`", Done(None, "model.p.m", "i1", None, started, 0.5, "error", "[PER_ROW_IN_UNIQUE_KEY] no"))
    history.write(engine, pytest.fail)
    (insert,) = engine.sent
    assert (
        "cast(null as timestamp)" in insert
        and "'[PER_ROW_IN_UNIQUE_KEY] no'" in insert
        and "'error', '', '', '[]'" in insert
    )


class Engine:
    def __init__(self, *errors: str) -> None:
        self.errors, self.sent, self.looked = list(errors), list[str](), list[str]()
        self.format = "1"

    def __call__(self, sql: str) -> list[dict[str, Any]]:
        if sql.startswith("SHOW TBLPROPERTIES"):
            self.looked.append(sql)
            return [{"key": "spark_mv.format", "value": self.format}]
        self.sent.append(sql)
        if self.errors and (error := self.errors.pop(0)):
            raise RuntimeError(error)
        return []


def test_all_runs_of_a_schema_in_one_statement() -> None:
    history, engine = RunHistory(), Engine()
    history.add("`a`", done())
    history.add("`a`", done("it's\nover", "error"))
    assert history.waits
    history.write(engine, pytest.fail)
    (insert,) = engine.sent
    assert insert.startswith(f"insert into `a`.mv_runs ({', '.join(COLUMNS)}) values\n(")
    assert insert.count("'model.p.m'") == 2 and r"'it\'s" in insert and "cast(120.0 as double)" in insert
    # in any time zone of the session
    assert insert.count("timestamp'2026-01-02 00:00:00.000000 UTC'") == insert.count(" UTC'") / 2 == 2
    assert "timestamp'2026-01-02 03:04:05.678900 UTC'" in insert and "cast(null as bigint)" in insert
    assert not history.waits
    history.write(engine, pytest.fail)
    assert len(engine.sent) == 1
    history.add("`a`", done())
    history.write(engine, pytest.fail)
    assert len(engine.sent) == 2 and engine.looked == ["SHOW TBLPROPERTIES `a`.mv_runs"]


def test_the_table_of_a_later_release_is_left_as_it_is() -> None:
    history, engine, warnings = RunHistory(), Engine(), list[str]()
    engine.format = "2"
    history.add("`a`", done())
    history.write(engine, warnings.append)
    assert engine.sent == [] and "[NEWER_FORMAT]" in warnings[0] and "Install the release" in warnings[0]


def test_the_table_is_made_when_it_is_missing() -> None:
    history, engine = RunHistory(), Engine("[TABLE_OR_VIEW_NOT_FOUND] mv_runs")
    history.add("`a`", done())
    history.write(engine, pytest.fail)
    assert [s.split(" ", 1)[0] for s in engine.sent] == ["insert", "create", "insert"]


def test_the_table_is_made_by_another_process_meanwhile() -> None:
    history, engine = (
        RunHistory(),
        Engine("[TABLE_OR_VIEW_NOT_FOUND] mv_runs", "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] no"),
    )
    history.add("`a`", done())
    history.write(engine, pytest.fail)
    assert [s.split(" ", 1)[0] for s in engine.sent] == ["insert", "create", "create", "insert"]


def test_what_cannot_be_written_is_a_warning() -> None:
    history, engine, warnings = RunHistory(), Engine("no space\nleft"), list[str]()
    history.add("`a`", done())
    history.write(engine, warnings.append)
    assert warnings == ["the history of 1 runs was not written to `a`.mv_runs: no space"]


def test_no_runs_yet() -> None:
    assert past_runs(Engine("[TABLE_OR_VIEW_NOT_FOUND]"), "`a`", "model.p.m") == []
    with pytest.raises(RuntimeError, match="broken"):
        past_runs(Engine("broken"), "`a`", "model.p.m")


def test_a_table_of_others_is_left_as_it_is() -> None:
    class Others(Engine):
        def __call__(self, sql: str) -> Any:
            if sql.startswith("describe table"):
                return [{"col_name": "note"}]
            return super().__call__(sql)

    history, engine, warnings = RunHistory(), Others("[UNRESOLVED_COLUMN] model"), list[str]()
    history.add("`a`", done())
    history.write(engine, warnings.append)
    assert "[NOT_OURS] `a`.mv_runs is not the table of runs" in warnings[0] and not [
        s for s in engine.sent if "alter" in s
    ]
