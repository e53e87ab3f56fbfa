"""Commits to the state table: each takes a turn of its own, and says in its metadata whose it is."""

from __future__ import annotations

import uuid
from dataclasses import replace

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.maintenance.state import PUBLISHED
from spark_mv.maintenance.steps.kinds import Work
from spark_mv.spark.formats.remains import make_over_remains
from spark_mv.spark.formats.table_format import Publishing
from spark_mv.spark.formats.turn import Turn
from spark_mv.spark.run.current import CurrentRun, StepView
from spark_mv.spark.run.stamps import is_dead
from spark_mv.spark.session.own_catalogue import own_catalogue


def publish_state(run: CurrentRun, step: StepView, sql: str) -> None:
    """Make one commit to the state. Raises RunFailed where another run's came first."""
    assert run.plan.state is not None
    at = run.state_version or run.state_found
    record = replace(run.plan.state, run_id=uuid.uuid4().hex, base_version=at.id if at else None)
    if run.verb != "NO_OP":  # the model's table is published, and names this state
        record = replace(record, made_for=PUBLISHED)
    number = run.plan.state_turn if run.state_version is None else run.state_version.number + 1
    table = run.relations["state"]

    def publishing(number: int) -> Publishing:
        return Publishing(
            Turn(table, f"{run.app_id}:state", number, record.to_json(), record.run_id),
            base=record.base_version,
            branch=run.stamp,
            anew=bool(step.of.makes),
            dead=lambda stamp: is_dead(stamp, own_catalogue(run.session.mv_spark())),
        )

    def publish_as(statement: str, number: int) -> None:
        run.state_format.publish(publishing(number), run.session, run.ask, lambda: run.statement(statement))

    if step.of.work is Work.CLEAN:
        run.state_format.tidy(publishing(number), run.session, run.ask, lambda: run.statement(sql))
        return
    try:
        if step.kind == "create_table":
            make_over_remains(run.ask, run.plan.model, table, publish_as, sql, number)
        else:
            publish_as(sql, number)
    except TurnTaken as taken:
        raise RunFailed(
            "TURN_TAKEN",
            f"model {run.plan.model}: another run wrote to {table} while this one was working, so this one changed "
            "nothing. Run it again: it continues from the new state and pays no AI answer twice",
        ) from taken
    run.state_version = run.state_format.state_version(run.ask, table)


def state_number(run: CurrentRun) -> int | None:
    """The number of the newest version of the state that this run knows of; None for a model without a state."""
    known = run.state_version or (run.state_found if run.plan.state is not None else None)
    return known.number if known else None
