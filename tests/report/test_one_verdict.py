"""What `explain` says of a model is what its runs do: the decision, asked with the facts of each situation, agrees."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_mv.explain.analysis import explain_data
from spark_mv.explain.judgement import Judgement, judge
from spark_mv.maintenance.changes import Changes
from spark_mv.maintenance.decide import begin, decide
from spark_mv.maintenance.situation import Situation as Known
from spark_mv.maintenance.supposed_runs import Supposed, SupposedRun
from spark_mv.query.delta.restrict import kept_spans
from spark_mv.query.rewrite.clock_split import split_clock

pytestmark = pytest.mark.unit
QUERIES = Path(__file__).parents[1] / "query"
TPCH = json.loads((QUERIES / "tpch" / "tables.json").read_text(encoding="utf-8"))
SMALL = {
    "t": {"id": "int", "k": "int", "x": "int", "ts": "timestamp"},
    "u": {"k": "int", "y": "int"},
    "e": {"id": "int", "z": "int"},
}


def corpus() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, SQL and what else is known: the fixture files of verdicts, TPC-H, and queries over joins and the clock."""
    spec = importlib.util.spec_from_file_location("sql_cases_of_verdicts", QUERIES / "sql_cases.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = [
        (c.place, c.sql, {"unique_key": c.key, "schemas": c.tables, "functions": c.functions, "freeze": c.freeze, "views": c.views})
        for c in module.cases()
    ]  # fmt: skip
    for file in sorted((QUERIES / "tpch").glob("q*.sql")):
        found.append((file.stem, file.read_text(encoding="utf-8"), {"schemas": TPCH}))
    for block in (QUERIES / "fixtures" / "delta_queries.sql").read_text(encoding="utf-8").split("\n-- ")[1:]:
        head, _, sql = block.partition("\n")
        if "|" in head and sql.strip():
            name, key = head.split(" | ")[:2]
            found.append((name, sql.strip(), {"unique_key": [k.strip() for k in key.split(",")], "schemas": SMALL}))
    return found


def decided(known: Supposed, situation: SupposedRun) -> dict[str, bool]:
    """Strategy → whether it applies, by the decision of a run with the run's own look at the query."""
    facts = known.facts(situation)
    opening = begin(Known(facts, known.analysis, known.config, known.rewritten, known.pins, ai=known.ai))
    plan = decide(opening, Changes(situation.changes, (), dict.fromkeys(known.schemas, 1000), 1000))
    return {candidate.strategy: candidate.applies for candidate in plan.candidates}


@pytest.mark.parametrize(("name", "sql", "known"), corpus(), ids=lambda value: value if isinstance(value, str) else "")
def test_explain_says_what_a_run_decides(name: str, sql: str, known: dict[str, Any]) -> None:
    judged = judge(sql, **known)
    assert [s.strategy for s in judged.strategies] == [
        "NO_OP", "APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION", "COMPLETE_RECOMPUTE"
    ]  # fmt: skip
    if judged.model is None:
        assert judged.errors and not any(s.applies for s in judged.strategies)
        return
    if judged.analysis.errors == () or {e.code for e in judged.analysis.errors} == {"MISSING_UNIQUE_KEY"}:
        model = replace(judged.model, analysis=replace(judged.model.analysis, errors=()))
        for situation in (model.general(True), model.general(False), *model.situations()):
            found = decided(model, situation)
            for said in judged.strategies[1:-1]:
                asked = situation.grows == (said.strategy == "APPEND_ONLY") or not situation.changes
                # what applies in general need not where less goes on: nothing came, say
                if not found["NO_OP"] and asked and (not said.applies or situation.when == "anything changes"):
                    assert found[said.strategy] == (said.applies or situation.when in said.when), (situation, said)
        assert decided(model, SupposedRun("nothing"))["NO_OP"] == judged.strategies[0].applies
    if not known.get("views"):
        _same_bounds(judged, sql)


def _same_bounds(judged: Judgement, sql: str) -> None:
    assert judged.model is not None
    model = judged.model
    split = split_clock(sql, model.schemas, "UTC", kept=kept_spans(sql, model.analysis))
    of_run = Counter((p.text, p.valid_from, p.valid_to, p.guard) for p in split.predicates if p.solved)
    shown = explain_data(judged)["predicates"]
    assert Counter((p["text"], p["valid_from"], p["valid_to"], p["guard"]) for p in shown if p["solved"]) == of_run
