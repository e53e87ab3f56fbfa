"""`explain_mv` says what the next run would do, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

RECENT = """
{{ config(materialized='ephemeral') }}
select id, name, d from {{ target.schema }}.src where d > current_date() - interval 5 days
"""
MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', on_row_update={'split': 'redraw'}) }}
{% if is_incremental() %}this is never compiled{% endif %}
with tagged as (select *, rand() as draw from {{ ref('recent') }})
select id, upper(name) as name, d, floor(draw * {{ var('buckets', 10) }}) as split, uuid() as row_id
from tagged
"""
REFUSED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select floor(rand() * 3) as id, count(*) as n from {{ target.schema }}.src group by 1
"""


class TestExplain:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "run_history": True}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"recent.sql": RECENT, "mv.sql": MODEL, "refused.sql": REFUSED}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create table {schema}.src using delta as select id, concat('n', id) as name, "
            "date'2026-02-01' - cast(id % 9 as int) as d from range(40)"
        )

    def test_before_and_after_the_first_run(self, project: Any, mv: Any, sql: Any, operation: Any) -> None:
        at = "2026-02-01 06:00:00"
        text = operation("explain_mv", {"model": "mv"}, as_of=at)
        assert "mv: COMPLETE_RECOMPUTE, as of 2026-02-01 06:00:00" in text
        assert "FIRST_RUN" in text
        assert "d > current_date() - interval 5 days" in text
        assert sql("show tables in {schema} like 'mv*'") == []

        found = self.explained(operation, at)
        assert found["strategy"] == "COMPLETE_RECOMPUTE"
        levels = {c["name"]: (c["level"], c["kept"]) for c in found["columns"]}
        assert levels == {
            "id": ("deterministic", False),
            "name": ("deterministic", False),
            "d": ("deterministic", False),
            "split": ("nondeterministic", True),
            "row_id": ("nondeterministic", True),
        }
        cause = next(c["cause"] for c in found["columns"] if c["name"] == "split")
        assert cause["function"].lower() == "rand"
        (predicate,) = [p for p in found["predicates"] if p["clock"]]
        assert predicate["solved"] and predicate["valid_to"]

        mv.run(at)
        version = mv.version()
        after = self.explained(operation, at)
        assert after["strategy"] == "NO_OP" and after["steps"] == []
        later = self.explained(operation, "2026-02-03 06:00:00")
        assert later["strategy"] != "NO_OP"
        assert "BOUND_CROSSED" in {r["code"] for s in later["strategies"] for r in s["reasons"] if s["name"] == "NO_OP"}
        assert mv.version() == version

        runs = after["runs"]
        assert [(r["status"], r["strategy"], r["reasons"]) for r in runs] == [
            ("success", "COMPLETE_RECOMPUTE", "FIRST_RUN")
        ]
        assert runs[0]["seconds"] > 0 and runs[0]["message"].startswith("CREATE +")
        mv.run(at)
        ((model, strategy, candidates),) = sql(
            "select model, strategy, candidates from {schema}.mv_runs where strategy = 'NO_OP'"
        )
        assert model.endswith(".mv") and strategy == "NO_OP"
        assert json.loads(candidates)[0]["reasons"][0]["code"] == "NOTHING_CHANGED"
        assert "last runs (mv_runs)" in operation("explain_mv", {"model": "mv"}, as_of=at)

    def test_what_it_refuses(self, operation: Any) -> None:
        text = operation("explain_mv", {"model": "refused"}, expect_pass=False)
        assert "rand" in text and "line 2" in text
        text = operation("explain_mv", {"model": "nothing"}, expect_pass=False)
        assert "no nondeterministic_mv named 'nothing'; this project has: mv, refused" in text

    def explained(self, operation: Any, as_of: str) -> dict[str, Any]:
        output = operation("explain_mv", {"model": "mv", "format": "json"}, as_of=as_of)
        return dict(json.JSONDecoder().raw_decode(output[output.index("{\n") :])[0])
