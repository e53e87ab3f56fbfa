"""The rounds of AI calls within a run: counts for its response, what its record says of answers still to come."""

from __future__ import annotations

from datetime import datetime, timezone

from spark_mv.maintenance.errors import RunFailed
from spark_mv.maintenance.record import RunRecord
from spark_mv.spark.run.as_of import utc_text
from spark_mv.spark.run.current import CurrentRun, StepView

ASK_AGAIN = "dbt run-operation recompute_ai --args '{{model: {0}, errors_only: true}}'"


def ai_round(run: CurrentRun, step: StepView, sql: str | None) -> None:
    """Ask for what is missing. Raises RunFailed under `on_ai_error: fail`."""
    assert run.ai_round is not None
    outcome = run.ai_round(step.args["calls"])
    run.ai += outcome
    failed = outcome.errors + outcome.blocked
    if not failed:
        return
    final = outcome.refused + outcome.gave_up
    again = ASK_AGAIN.format(run.plan.model)
    if run.on_ai_error == "fail":
        raise RunFailed(
            "AI_FAILED",
            f"model {run.plan.model}: {failed:,} AI calls failed and on_ai_error is fail, so nothing was changed. Answers "
            "that came are kept and will not be paid again. See the errors in the result table, and run again once their "
            f"cause is gone; inputs that were refused ({final:,}) or have to wait are asked again at once after `{again}`",
        )
    later = failed - final
    said = f"{later:,} have failed, now or earlier, and are asked again by later runs" if later else ""
    ended = (
        f"{final:,} are refused, or failed too often, and are not asked again by themselves (`{again}`)"
        if final
        else ""
    )
    kept = "rows keep the values that they had, and new ones are NULL"
    asked_again = (
        run.follows is not None and run.plan.record is not None and run.plan.record.ask_again != run.follows.ask_again
    )
    until = kept if run.on_ai_error == "keep_old" or asked_again else "their values are NULL"
    run.session.warn(
        f"model {run.plan.model}: of its AI calls, {' and '.join(text for text in (said, ended) if text)}; {until} "
        "until there is an answer (see status and error in the result table)"
    )


def pending(run: CurrentRun, record: RunRecord) -> tuple[int, str | None]:
    """How many answers are still to come after this run, and when the first of them is asked for (UTC; None: by the next
    run). A run that looked at some rows only has seen nothing of the others' answers: what the last one said still holds.
    """
    found = run.ai.pending
    due = None if run.ai.due_at is None else utc_text(datetime.fromtimestamp(run.ai.due_at, timezone.utc))
    whole = run.plan.strategy == "COMPLETE_RECOMPUTE" and not run.plan.audit
    if whole or not record.ai_pending:
        return found, due
    if not found:
        return record.ai_pending, record.ai_retry_at
    both = (due, record.ai_retry_at)
    return found + record.ai_pending, None if None in both else min(at for at in both if at is not None)
