"""Plans as snapshots: which strategy, why, and its steps with their arguments. They are reviewed as diffs; `UPDATE_PLANS=1
pytest tests/maintenance/test_plans.py` writes them anew. What the cases of plans/*.yml mean says plan_cases.py."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import pytest
from plan_cases import FOLDER, cases, plan_of, readable, text_of

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.plan import STRATEGIES
from spark_mv.maintenance.steps.kinds import KINDS
from spark_mv.query.syntax.select_tree import NotIncremental

pytestmark = pytest.mark.unit

SOURCE = Path(__file__).parents[2] / "adapter" / "spark_mv"
HINT = "if the new plans are right: UPDATE_PLANS=1 pytest tests/maintenance/test_plans.py"
UNSAID = {
    "TOO_MANY_READS": "takes a query of hundreds of reads: tests/query/test_one_parser.py",
    "RECURSIVE": "the verdict calls it opaque first: tests/query/test_one_parser.py",
    "UNKNOWN_TABLE": "every table of a query is looked at: tests/query/test_incremental.py",
    "UNKNOWN_COLUMNS": "as above, for columns",
    "AI_CALLS": "a call that was taken out of the query, and cannot be of the query over changed rows",
    "SET_OPERATION": "UNION ALL is followed, and other set operations are refused where they stand",
    "SOURCE_ROLLED_BACK": "of an Iceberg source's history: tests/spark/test_iceberg.py",
    "SOURCE_UNREADABLE_AT_VERSION": "of an Iceberg source without a snapshot, or with other columns: integration_tests/iceberg",
    "WINDOW_COLUMN": "a column of a window that other rules have not refused before",
}
"""Codes that no plan says today, and why."""
GROUPS = ("rows", "clock", "groups", "complete")


def snapshot(case: dict[str, Any]) -> Any:
    try:
        return readable(plan_of(case))
    except RefusedError as error:
        return {"refused": str(error)}


@pytest.mark.parametrize("group", GROUPS)
def test_plans(group: str) -> None:
    file = FOLDER / f"{group}.plans.yml"
    found = text_of({case["name"]: snapshot(case) for case in cases(group)})
    if os.environ.get("UPDATE_PLANS"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), (
        "if the new plans are right: UPDATE_PLANS=1 pytest tests/maintenance/test_plans.py"
    )


def codes_of_the_source() -> set[str]:
    """Reason codes as they stand in the engine: the first argument of Reason(…) and NotIncremental(…)."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        decides = file.relative_to(SOURCE).parts[0] in ("maintenance", "spark")
        names = {"NotIncremental", "Reason"} if decides else {"NotIncremental"}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in names and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found


def test_reasons() -> None:
    file = FOLDER / "reasons.plans.yml"
    found = text_of({case["name"]: snapshot(case).get("why") for case in cases("reasons")})
    if os.environ.get("UPDATE_PLANS"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), HINT


def test_all_strategies_and_publishing_statements_are_covered() -> None:
    plans = [plan_of(case) for group in GROUPS for case in cases(group)]
    assert {plan.strategy for plan in plans} == {*STRATEGIES}
    kinds = {step.kind for plan in plans for step in (*plan.steps, *(plan.fallback.steps if plan.fallback else ()))}
    assert kinds == {*KINDS}


def test_all_reasons_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that lead from one way of a strategy to another, which only its sentence shows."""
    said: set[str] = set()
    init = NotIncremental.__init__

    def heard(error: NotIncremental, code: str, sentence: str) -> None:
        said.add(code)
        init(error, code, sentence)

    monkeypatch.setattr(NotIncremental, "__init__", heard)
    for case in (case for group in (*GROUPS, "reasons") for case in cases(group)):
        said.update(reason.code for candidate in plan_of(case).candidates for reason in candidate.reasons)
    assert codes_of_the_source() - said - UNSAID.keys() == set(), "add a case to plans/reasons.yml"
    assert said & UNSAID.keys() == set()
