"""What a run by macros alone sends to `type: databricks`: the quickstart's model with the platform's AI functions, its first run and one that
follows the change feed. Review databricks.sql as a diff; UPDATE_PLANS=1 writes it anew."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from dbt_world import Warehouse, planned, statements

from spark_mv.ai.results import COLUMNS
from spark_mv.maintenance.macro_only import INSTANTS, VERSIONS
from spark_mv.spark.run.macro_incremental import LOW

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent
GOLDEN = HERE / "databricks.sql"
MODEL = HERE.parents[1] / "examples" / "quickstart" / "models" / "review_triage.sql"
REVIEWS = {"review_id": "bigint", "drug": "string", "reviewed_on": "date", "useful_count": "int", "review": "string"}
RESULT = {**REVIEWS, "sentiment": "string", "topic": "string", "split": "string", "row_id": "string"}
CONFIG = {"materialized": "nondeterministic_mv", "unique_key": "review_id"}
AI = {"provider": "native", "model": "databricks-meta-llama-3-3-70b-instruct"}


def test_the_statements_of_two_runs() -> None:
    answers = {name: kind.lower() for name, kind, _ in COLUMNS}
    tables = {"raw.drug_reviews": REVIEWS, "mart.ai_results": answers, "mart.review_triage": RESULT}
    warehouse = Warehouse(tables, RESULT)
    sql = MODEL.read_text(encoding="utf-8").split("}}", 1)[1].strip()
    source = "{{ source('raw', 'drug_reviews') }}"
    plans = planned(warehouse, "review_triage", sql.replace(source, "`raw`.`drug_reviews`"), CONFIG, AI)
    sql = sql.replace(source, "`main`.`raw`.`drug_reviews`")
    ((_, plan),) = plans["tables"].items()
    assert set(plan["incremental"]["raw.drug_reviews"]) == {"append", "any"}, plan.get("needs_adapter")

    stand_ins = [*LOW, *(low + 1 for low in LOW), *VERSIONS, *(instant.year for instant in INSTANTS)]
    assert not [number for number in stand_ins if str(number) in json.dumps(plans)]

    warehouse.counts = [
        {"missing_0": 2, "missing_1": 2, "waiting": 0, "unclaimed": 0},
        {"inserted": 3, "updated": 0, "deleted": 0, "remaining": 3, "duplicate_keys": 0, "null_keys": 0},
        {"next_change": 1772323200000000},
    ]
    made = {"version": 0, "timestamp": "2026-02-01 05:00:00", "operation": "CREATE TABLE AS SELECT"}
    warehouse.history["mart.review_triage"] = [{**made, "userMetadata": _run_id()}]
    first = statements(warehouse, plans, sql, CONFIG, "databricks", there=False)
    record = _record(first)

    # the source gained rows since
    warehouse.asked.clear()
    commit = {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "operationMetrics": {},
        "userMetadata": None,
    }
    warehouse.history["raw.drug_reviews"] = [
        {"version": 5, "timestamp": "2026-01-31 12:00:00", **commit},
        {"version": 4, "timestamp": "2026-01-31 00:00:00", **commit},
    ]
    warehouse.history["mart.review_triage"] = [{**made, "userMetadata": record}]
    warehouse.detail["mart.review_triage"] = {
        "properties": {"spark_mv.model": "model.p.review_triage"},
        "partitionColumns": [],
    }
    warehouse.detail["raw.drug_reviews"] = {"properties": {"delta.enableChangeDataFeed": "true"}}
    warehouse.counts = [
        {"missing_0": 0, "missing_1": 1, "waiting": 0, "unclaimed": 1},
        {
            "inserted": 1,
            "updated": 0,
            "deleted": 0,
            "remaining": 1,
            "duplicate_keys": 0,
            "null_keys": 0,
            "next_change": 1772323200000000,
        },
        {"duplicate_keys": 0, "returned_keys": 0},
    ]
    second = statements(warehouse, plans, sql, CONFIG, "databricks", there=True)
    assert second[-1].startswith("-- APPEND_ONLY by macros (a source changed)")
    found = "\n".join(f"{one};\n" if not one.startswith("--") else f"{one}\n" for one in [*first, *second])
    if os.environ.get("UPDATE_PLANS"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


def _record(sent: list[str]) -> str:
    """What the run's commit carries."""
    (text,) = (sql for sql in sent if "commitInfo.userMetadata` = " in sql)
    return re.split("` = `", text)[1][:-1].replace("``", "`")


def _run_id() -> str:
    """The id of the run, which it looks for in the history."""
    import hashlib

    return json.dumps({"run_id": hashlib.md5(b"0a1b model.p.review_triage").hexdigest()})


def test_what_macros_do_not_follow() -> None:
    """Changed rows stand in a UNION, over which Spark plans a subquery among the columns only with a setting of the session."""
    tables = {"raw.t": {"id": "bigint", "k": "int"}, "raw.u": {"id": "bigint", "v": "int"}}
    queries = {
        "select id, (select max(v) from raw.u where u.id = t.id) as m from raw.t": set(),
        "select id, k + 1 as m from raw.t": {"raw.t"},
    }
    for sql, followed in queries.items():
        ((_, plan),) = planned(
            Warehouse(tables, {"id": "bigint", "m": "int"}), "m", sql, {**CONFIG, "unique_key": "id"}, {}
        )["tables"].items()
        assert set(plan["incremental"]) == followed, plan


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "select id, (select max(v) from raw.u where u.id = t.id) as m from (select * from raw.t order by k limit 3) t",
            "a LIMIT and",
        ),
        (
            "select id, (select max(v) from raw.u where u.id = t.id) as m from raw.t union all select id, 1 from raw.t",
            "a UNION and",
        ),
    ],
)
def test_what_spark_plans_with_a_setting_alone(sql: str, said: str) -> None:
    """Nothing in a session of the macros' own can set it."""
    tables = {"raw.t": {"id": "bigint", "k": "int"}, "raw.u": {"id": "bigint", "v": "int"}}
    found = planned(Warehouse(tables, {"id": "bigint", "m": "int"}), "m", sql, {**CONFIG, "unique_key": "id"}, {})
    assert said in str(found)
