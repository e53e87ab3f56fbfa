"""Failures that only dbt's own run_results.json tells of."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from project_facts import NOW, model, run

from spark_mv.report.condition import Condition, health
from spark_mv.report.dbt_results import failures, with_failure

pytestmark = pytest.mark.unit
AT = 1769910000.0  # 2026-02-01 01:40:00 UTC
NODE = "model.desk.tickets"


def written(which: str = "run", **more: Any) -> str:
    timing = [{"name": "compile", "started_at": "2026-02-01T01:40:00Z", "completed_at": "2026-02-01T01:40:01Z"}]
    failed = {
        "unique_id": NODE, "status": "error", "timing": timing, "execution_time": 1.5, "message": "Compilation Error\n  boom",
        "relation_name": "analytics.tickets", **more,
    }  # fmt: skip
    worked = {**failed, "unique_id": "model.desk.other", "status": "success", "message": "OK"}
    skipped = {**failed, "unique_id": "model.desk.below", "status": "skipped", "timing": []}
    metadata = {"invocation_id": "i-new", "generated_at": "2026-02-01T01:40:02Z"}
    return json.dumps({"metadata": metadata, "args": {"which": which}, "results": [worked, failed, skipped]})


def test_what_failed_and_nothing_else() -> None:
    found = failures(written())
    assert set(found) == {NODE}
    failed = found[NODE]
    assert (failed.run.started_at, failed.run.invocation_id, failed.run.seconds) == (AT, "i-new", 1.5)
    assert failed.run.failed and failed.run.strategy == "" and "boom" in failed.run.message
    assert failed.relation == "analytics.tickets"
    assert failures(written(timing=[]))[NODE].run.started_at == AT + 2


@pytest.mark.parametrize("text", [written("test"), written("compile"), written("generate"), "", "{}", "[1]", "no json"])
def test_results_of_other_commands_and_other_files_say_nothing(text: str) -> None:
    assert failures(text) == {}


def test_it_counts_until_something_comes_after_it() -> None:
    failed = failures(written())[NODE]
    before = (run(AT - 60),)
    assert with_failure(before, failed, "analytics.tickets", None) == (failed.run, *before)
    assert with_failure((), failed, "analytics.tickets", None) == (failed.run,)
    after = (run(AT + 60),)
    assert with_failure(after, failed, "analytics.tickets", None) == after
    assert with_failure((), failed, "analytics.tickets", AT + 60) == ()  # runs are not kept, and a commit came after it
    assert with_failure((), failed, "analytics.tickets", AT - 60) == (failed.run,)
    told = (run(AT + 1, invocation_id="i-new", status="error"),)
    assert with_failure(told, failed, "analytics.tickets", None) == told  # mv_runs tells of it already
    assert with_failure(before, failed, "other.tickets", None) == before  # it was of another target


def test_the_model_is_said_to_have_failed() -> None:
    failed = failures(written())[NODE].run
    found = health(model(runs=(failed, run(AT - 60))), NOW)
    assert found.condition is Condition.FAILED and "before it had a plan" in found.sentence
    assert health(model(exists=False, record=None, runs=(failed,)), NOW).condition is Condition.FAILED
