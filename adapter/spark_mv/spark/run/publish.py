"""The step that publishes: one commit with the rows and with the record, in the run's turn."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.errors import TurnTaken
from spark_mv.maintenance.record import RunRecord, SourceVersion
from spark_mv.maintenance.second_reading import found_wrong
from spark_mv.maintenance.steps.versions import MOVED
from spark_mv.query.syntax.reserved import filled, relation
from spark_mv.spark.formats.remains import make_over_remains
from spark_mv.spark.formats.replace_using import PARSED_AS, replace_using
from spark_mv.spark.formats.session_settings import OVERWRITES
from spark_mv.spark.formats.table_format import Publishing
from spark_mv.spark.formats.turn import Turn
from spark_mv.spark.run.answers import pending
from spark_mv.spark.run.aside import made_way
from spark_mv.spark.run.current import CurrentRun, StepView
from spark_mv.spark.run.failures import turn_taken
from spark_mv.spark.run.publish_state import state_number
from spark_mv.spark.run.retaining import retain, retainable
from spark_mv.spark.run.stamps import is_dead
from spark_mv.spark.session.own_catalogue import own_catalogue

PREDICATE = relation("predicate")
"""Stands for the predicate in the rendered statement, so that thousands of keys do not pass through Jinja."""
CHECK_WRITTEN = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
"""Delta's test of every written row against the predicate, compiled with all its keys. Here the predicate is made of the
keys of the very rows that are written."""
WHOLE = {OVERWRITES: "static"}
"""Under `dynamic`, REPLACE WHERE true leaves the partitions that no row is written to, and REPLACE USING is refused."""


def publish(run: CurrentRun, step: StepView, sql: str) -> None:
    """Make the commit that publishes the run. Raises RunFailed where another run's came first."""
    assert run.plan.record is not None
    record = _completed(run, run.plan.record, step)
    if run.in_the_way is not None:  # the table that is made has no history
        record = replace(record, turn=0, base_version=None)
    settings = {"replace_where": {CHECK_WRITTEN: "false", **WHOLE}, "replace_using": {**PARSED_AS, **WHOLE}}
    more = settings.get(step.kind, {})
    statement = filled(sql, {"predicate": run.key_texts.listed}) if step.kind == "replace_where" else sql
    send = _replace_using(run, step) if step.kind == "replace_using" else None

    def publish_as(statement: str, number: int) -> None:
        text = replace(record, turn=number).to_json()
        turn = Turn(run.relations["target"], run.app_id, number, text, record.run_id)
        asked = Publishing(
            turn,
            base=record.base_version,
            branch=run.stamp,
            anew=bool(step.of.makes),
            part=bool(step.args.get("part")),
            settings=more,
            properties=step.args.get("properties") or {},
            dead=lambda stamp: is_dead(stamp, own_catalogue(run.session.mv_spark())),
        )
        run.format.publish(asked, run.session, run.ask, lambda: run.statement(statement, send))

    if not step.of.makes:
        for amendment in run.amend.before():
            run.statement(amendment)
    try:
        with made_way(run) if step.of.makes else nullcontext():
            if step.kind == "create_table":
                make_over_remains(run.ask, run.plan.model, run.relations["target"], publish_as, statement, record.turn)
            else:
                publish_as(statement, record.turn)
    except TurnTaken as taken:
        raise turn_taken(run) from taken
    if "inline" in step.args and step.of.makes:
        run.staged = replace(run.staged, inserted=_rows_made(run, record), checked=True)
    if not step.args.get("part") and (record.retained or (run.follows is not None and run.follows.retained)):
        retain(run, record)
    # which statement does a merge best (MERGE, INSERT, REPLACE WHERE, DELETE) is not the reader's concern
    run.verb = step.of.makes or "MERGE"


def _rows_made(run: CurrentRun, record: RunRecord) -> int:
    """Rows of a table that was made of rows which were counted nowhere: its commit has."""
    found = run.format.history(run.ask, run.relations["target"], run.model_id)
    newest = found.record if found is not None else None
    if newest is not None and newest.run_id == record.run_id and newest.target_rows is not None:
        return newest.target_rows
    return int(run.statement(f"select count(*) as n from {run.relations['target']}")[0]["n"])


def drop(run: CurrentRun, relation: str) -> None:
    """Drop a table or view, whichever it is."""
    try:
        run.statement(f"drop table if exists {relation}")
    except Exception as error:
        if "DROP VIEW" not in str(error):
            raise
        run.statement(f"drop view if exists {relation}")


def _completed(run: CurrentRun, record: RunRecord, step: StepView) -> RunRecord:
    """The record with what the steps found out, and with the names that make it this run's and nobody else's."""
    anew = bool(step.of.makes)
    if run.plan.audit and step.kind != "record_only":
        record = found_wrong(record, record.strategy)
    bound, floor = run.staged.keys.after(replaced=anew)
    to_come, ask_at = pending(run, record)
    sources = {n: SourceVersion(MOVED, "") if n in run.moved else v for n, v in record.sources.items()}
    return replace(
        record,
        sources=sources,
        retained=retainable(run, replace(record, sources=sources)),
        model=run.model_id,
        run_id=uuid.uuid4().hex,
        next_change_at=run.next_change_at,
        ai_pending=to_come,
        ai_retry_at=ask_at,
        target_rows=run.staged.remaining if anew else run.staged.target_rows,
        clock_rows=run.staged.rows if _compared_by_clock(run, record, anew) else record.clock_rows,
        key_bound=bound,
        key_floor=floor,
        state_version=state_number(run),
        state_gone=run.staged.state_deletes,
    )


def _compared_by_clock(run: CurrentRun, record: RunRecord, anew: bool) -> bool:
    """Whether the run found the rows that differ from those of an earlier instant."""
    return not anew and not run.plan.audit and run.follows is not None and run.follows.pins != record.pins


def _replace_using(run: CurrentRun, step: StepView) -> Callable[[str], list[dict[str, Any]]]:
    def send(rows: str) -> list[dict[str, Any]]:
        replace_using(run.session.mv_spark(), rows, run.relations["target"], step.args["keys"], run.key_texts.gone)
        return []

    return send
