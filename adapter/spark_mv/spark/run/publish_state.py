"""Commits to the state table: each takes a turn of its own, and says in its metadata whose it is."""

from __future__ import annotations

import uuid
from dataclasses import replace

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.maintenance.state import PUBLISHED
from spark_mv.maintenance.steps.kinds import Work
from spark_mv.spark.formats.history import latest_version
from spark_mv.spark.formats.turn import Turn, tagged, take
from spark_mv.spark.run.current import CurrentRun, StepView


def publish_state(run: CurrentRun, step: StepView, sql: str) -> None:
    """Make one commit to the state. Raises RunFailed where another run's came first."""
    assert run.plan.state is not None
    record = replace(run.plan.state, run_id=uuid.uuid4().hex, base_version=state_version(run))
    if run.verb != "NO_OP":  # the model's table is published, and names this state
        record = replace(record, made_for=PUBLISHED)
    number = run.plan.state_turn if run.state_version is None else run.state_version + 1
    turn = Turn(step.args["relation"], f"{run.app_id}:state", number, record.to_json(), record.run_id)
    if step.of.work is Work.CLEAN:
        with tagged(run.session, turn.settings):
            run.statement(sql)
        return
    try:
        take(turn, run.session, run.ask, lambda: run.statement(sql))
    except TurnTaken as taken:
        raise RunFailed(
            "TURN_TAKEN",
            f"model {run.plan.model}: another run wrote to {turn.table} while this one was working, so this one changed "
            "nothing. Run it again: it continues from the new state and pays no AI answer twice",
        ) from taken
    latest = latest_version(run.ask, turn.table)
    run.state_version = latest.version if latest else None


def state_version(run: CurrentRun) -> int | None:
    """The newest version of the state that this run knows of."""
    if run.state_version is not None or run.plan.state is None:
        return run.state_version
    return run.plan.state.base_version
