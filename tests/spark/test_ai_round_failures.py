"""What is said where a round of AI functions cannot go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError, RunFailed
from spark_mv.spark.run.current import StepView
from spark_mv.spark.run.failures import explained

pytestmark = pytest.mark.unit
RUN: Any = SimpleNamespace(
    plan=SimpleNamespace(model="m", strategy="COMPLETE_RECOMPUTE", record=None),
    relations={"target": "`a`.`m`"},
    columns_seen=(),
)

CAUSE = SimpleNamespace(getMessage=lambda: "Permission denied", getCause=lambda: None)


def step(kind: str) -> Any:
    return StepView(kind, {})


def test_a_table_of_answers_out_of_reach_is_one_sentence_with_the_cure() -> None:
    class Java(Exception):
        java_exception = SimpleNamespace(getMessage=lambda: "Job aborted.", getCause=lambda: CAUSE)

    said = explained(RUN, step("ai_round"), Java("An error occurred while calling o1.append.\n: at a.B.c(B.java:1)"))
    assert isinstance(said, RunFailed) and said.code == "AI_ROUND"
    assert "Permission denied" in str(said) and "may read and write it" in str(said) and "\n" not in str(said)


@pytest.mark.parametrize("error", [RefusedError("NO_PROVIDER", "no"), RunFailed("AI_CANARY", "no")])
def test_what_says_its_own_cure_stays(error: Exception) -> None:
    assert explained(RUN, step("ai_round"), error) is error


def test_other_steps_keep_their_error() -> None:
    error = RuntimeError("no")
    assert explained(RUN, step("stage_changes"), error) is error
