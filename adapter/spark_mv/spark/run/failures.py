"""What a statement's failure means for a run, where Spark's own words do not say what to do."""

from __future__ import annotations

import re

from spark_mv.maintenance.errors import RunFailed, TurnTaken, first_line
from spark_mv.maintenance.steps.stage_texts import VALUE_REFUSED
from spark_mv.spark.run.current import CurrentRun, StepView
from spark_mv.spark.run.look_up import describe
from spark_mv.spark.session.ended import spark_has_ended
from spark_mv.spark.session.error_texts import readable

_FILES_GONE = re.compile(r"FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND|DELTA_CHANGE_DATA_FILE_NOT_FOUND|FileNotFoundException")
ROWS_REFUSED = "__mv_rows_refused"
"""What the statement that makes a table raises for rows that may not be in it."""
_VALUE_REFUSED = re.compile(rf"{VALUE_REFUSED}<(.*?)>")
_NO_DATE = re.compile(r"year -?\d+ is out of range|ordinal must be >= 1|(date value|timestamp) out of range")
"""What Python says of a date or timestamp that Spark has and it has not."""
_TABLE_GONE = re.compile(
    r"\[(?:TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND)\].*?((?:`[^`]+`|[\w.])+) cannot be found"
)


def explained(run: CurrentRun, step: StepView, error: Exception) -> Exception:
    """The error itself, or one that says why and what to do: another run was quicker, files of an older version are gone, or the
    model's own table, or that takes no changes."""
    if not step.of.publishes and not isinstance(error, TurnTaken) and _overtaken(run):
        return turn_taken(run)  # its rows were taken for those of the version that this run started from
    if not step.of.makes and not isinstance(error, RunFailed | ValueError) and _other_columns(run):
        return RunFailed(
            "TURN_TAKEN",
            f"model {run.plan.model}: the columns of {run.relations['target']} were changed by somebody else while this run was working, so this "
            "one changed nothing. Run it again: kept values stay, and no AI answer is paid twice",
        )
    if (lost := _VALUE_REFUSED.search(str(error))) is not None:
        return RunFailed("VALUE_DOES_NOT_FIT", f"model {run.plan.model}: {_lost(run, lost[1])}")
    first = first_line(error)
    if not step.of.publishes and run.plan.strategy != "COMPLETE_RECOMPUTE" and _FILES_GONE.search(str(error)):
        return RunFailed(
            "FILES_GONE",
            f"model {run.plan.model}: {run.plan.strategy} stopped at {step.kind}: files of an older version that it "
            f"compares with are gone (VACUUM?): {first}. Nothing was changed. refresh: "
            "incremental does not recompute by itself: run once with --full-refresh",
        )
    if not step.of.publishes and _not_for_python(error):
        return RunFailed(
            "DATE_OUT_OF_RANGE",
            f"model {run.plan.model}: a key or group of the query is a date or timestamp before year 1 or after year 9999, which Python cannot "
            f"hold ({first}). The table was not touched. Leave such rows out, or make the key a text: cast(day as string)",
        )
    if step.of.publishes and "DELTA_CANNOT_MODIFY_APPEND_ONLY" in str(error):
        return RunFailed(
            "APPEND_ONLY_TABLE",
            f"model {run.plan.model}: the table has the property delta.appendOnly, and this run changes or removes rows. "
            "Nothing was published. Take the property out of tblproperties, and off the table: "
            f"alter table {run.relations['target']} unset tblproperties ('delta.appendOnly')",
        )
    gone = _TABLE_GONE.search(str(error))
    if gone and f".{_plain(gone[1])}".endswith(f".{_plain(run.relations['target'])}"):
        return RunFailed(
            "TABLE_GONE",
            f"model {run.plan.model}: {run.relations['target']} was dropped or renamed while this run worked ({step.kind}). "
            "Nothing was published. Bring it back (its kept values are in it), or run again: it is then made anew",
        )
    if step.kind == "ai_round" and not isinstance(error, RunFailed | ValueError) and not spark_has_ended(error):
        return RunFailed(
            "AI_ROUND",
            f"model {run.plan.model}: AI functions could not be asked, or their answers not be kept: {'; '.join(readable(error).splitlines())}. The table was not touched, and "
            "answers that are kept are not paid again. See that ai_results is there, and that whoever runs dbt may read and write it",
        )
    return error


def _lost(run: CurrentRun, name: str) -> str:
    """What is said of a column that has a value which another type cannot hold."""
    column = next((c for c in run.plan.columns if c.name == name), None)
    if column is not None and column.retyped:
        return (
            f"column {name} has a kept value of the table's type {column.given} that the query's type {column.type} cannot hold. The table was not "
            f"touched. Give the source its former type again, or let the values go: dbt run-operation forget_values --args "
            f"'{{model: {run.plan.model}, columns: [{name}]}}'"
        )
    types = (
        f"of the query's type {column.given} that the table's type {column.type} cannot hold"
        if column is not None
        else ""
    )
    return (
        f"column {name} has a value {types}, and on_schema_change keeps the table's type. The table was not touched. Run with --full-refresh, set "
        "on_schema_change: sync_all_columns, or cast the column in the query"
    )


def not_tidied(run: CurrentRun, error: Exception) -> str:
    """What is said where the state table could not be tidied up: the model's own table is published, and the next run finds the state as it is."""
    state = run.relations["state"]
    return (
        f"model {run.plan.model}: its table is published, but what {state} has no more use for stays there for now: {first_line(error)}. The next "
        "run that has something to do drops it"
    )


def rows_refused(error: Exception) -> bool:
    """Whether a statement that checks the rows which it writes has refused them (macro mv_checked_row), or may have: the words are those of
    one of Spark's tasks, which some sessions tell as the cause, and some do not tell."""
    said = f"{error}\n{readable(error)}"
    return ROWS_REFUSED in said or "TASK_WRITE_FAILED" in said


def _not_for_python(error: BaseException | None) -> bool:
    """Whether a value of a row could not be made Python's. An error of Spark's that says the same is of a function of the user's."""
    while error is not None:
        if isinstance(error, ValueError | OverflowError) and _NO_DATE.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def turn_taken(run: CurrentRun) -> RunFailed:
    """What is said of a run that came second: to another run, or to somebody else's statement. A run that makes the table anew shows
    in its history before its record does."""
    if _overtaken(run) is False:
        return RunFailed(
            "TURN_TAKEN",
            f"model {run.plan.model}: {run.relations['target']} was changed while this run was publishing, by somebody else's statement or by "
            "a run that is not done yet (its history says which), so this one changed nothing. Run it again: kept values stay, and no AI "
            "answer is paid twice",
        )
    return RunFailed(
        "TURN_TAKEN",
        f"model {run.plan.model}: another run published a new version of the table while this one was working, "
        "so this one changed nothing. Run it again: it continues from the new state and pays no AI answer twice",
    )


def _overtaken(run: CurrentRun) -> bool | None:
    """Whether another run has published since this one looked. None: not known."""
    base = run.plan.record.base_version if run.plan.record else None
    if base is None or run.in_the_way is not None:
        return None
    try:
        history = run.format.history(run.ask, run.relations["target"], run.model_id)
    except Exception:  # the first error says more
        return None
    if history is None:
        return None
    newest = history.record
    return newest is not None and newest != run.follows and newest.invocation_id != run.invocation_id


def _other_columns(run: CurrentRun) -> bool:
    """Whether the table has other columns than when this run looked."""
    if not run.columns_seen:
        return False
    try:
        found = describe(run.ask, run.relations["target"])
    except Exception:  # the first error says more
        return False
    return found is not None and found.columns != run.columns_seen


def _plain(name: str) -> str:
    return name.replace("`", "").lower()
