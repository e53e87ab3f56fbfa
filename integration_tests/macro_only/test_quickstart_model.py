"""The quickstart's model, with AI functions that the engine answers, and a join: by turns with the adapter and by macros alone. One table,
one set of kept values, every answer paid once; macros follow the change feed where the adapter would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODEL = Path(__file__).parents[2] / "examples" / "quickstart" / "models" / "review_triage.sql"
SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: drug_reviews}]
"""
_JOINED = """
{{ config(materialized='nondeterministic_mv', unique_key='review_id') }}
select r.review_id, d.maker, rand() as draw
from {{ source('raw', 'drug_reviews') }} r join {{ target.schema }}.drugs d on r.drug = d.drug
"""
FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
NOTHING = {"review_triage": "NO_OP", "joined": "NO_OP"}


class TestQuickstartModel:
    @pytest.fixture(scope="class")
    def ai(self, unique_schema: str) -> dict[str, Any]:
        functions = {"ai_analyze_sentiment": f"{unique_schema}.sentiment", "ai_classify": f"{unique_schema}.topic"}
        return {"provider": "native", "model": "engine", "options": functions}

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "review_triage.sql": MODEL.read_text(encoding="utf-8"),
            "joined.sql": _JOINED,
            "sources.yml": SOURCES,
        }

    @pytest.fixture(scope="class")
    def tables(self) -> tuple[str, ...]:
        # an answer of its own at each call: a second one to the same text would be seen in the table
        return (
            "create function {s}.sentiment(x string) returns string not deterministic return concat('good ', uuid())",
            "create function {s}.topic(x string, labels array<string>) returns string not deterministic "
            "return case when x like '%nothing%' then null else concat(labels[length(x) % 6], ' ', uuid()) end",
            f"create table {{s}}.drug_reviews (review_id bigint, drug string, reviewed_on date, useful_count int, review string) {FEED}",
            "insert into {s}.drug_reviews select id, 'd', date_add(date'2026-01-02', cast(id as int)), 0, "
            "concat('it''s \\\\ \"text\" ', id % 4) from range(8)",
            f"create table {{s}}.drugs {FEED} as select 'd' as drug, 'm' as maker",
        )

    def test_by_turns(self, sql: Any, run: Any, plan: Any) -> None:
        def rows() -> dict[int, tuple[Any, ...]]:
            found = sql("select review_id, useful_count, sentiment, topic, split, row_id from {s}.review_triage")
            return {row[0]: row[1:] for row in found}

        def joined() -> dict[int, tuple[Any, ...]]:
            return {row[0]: row[1:] for row in sql("select review_id, maker, draw from {s}.joined")}

        def paid() -> dict[str, int]:
            return dict(sql("select function, count(*) from {s}.ai_results where status = 'ok' group by 1"))

        def once(by: str, day: int = 1) -> dict[str, str]:
            said = json.dumps({"as_of": f"2026-02-0{day} 06:00:00"})
            results = run_dbt(["run", "--target", by, "--vars", said], expect_pass=None).results
            return {
                one.node.name: one.adapter_response.get("strategy") or str(one.message).split()[0] for one in results
            }

        made = plan()
        assert made.exit_code == 0 and made.output.count(": planned") == 2, made.output
        assert once("plain") == dict.fromkeys(NOTHING, "COMPLETE_RECOMPUTE")
        first, draws = rows(), joined()
        assert len(first) == 7 and paid() == {"ai_analyze_sentiment": 4, "ai_classify": 4}
        assert len({row[1] for row in first.values()}) == 4 and len(draws) == 8
        assert once("ours") == NOTHING

        # new rows, by macros: new texts are paid once, an answer that is NULL is one
        sql(
            "insert into {s}.drug_reviews values (20, 'd', date'2026-01-31', 0, 'new'), (21, 'd', date'2026-01-31', 0, 'new'), "
            "(22, 'd', date'2026-01-31', 0, 'nothing'), (23, 'd', date'2026-01-31', 0, 'it''s \\\\ \"text\" 3')"
        )
        assert once("plain") == dict.fromkeys(NOTHING, "APPEND_ONLY")
        second = rows()
        assert {key: second[key] for key in first} == first and second.keys() - first.keys() == {20, 21, 22, 23}
        assert second[20][1:3] == second[21][1:3] and second[22][2] is None and second[23][1:3] == first[7][1:3]
        assert paid() == {"ai_analyze_sentiment": 6, "ai_classify": 6}
        assert once("ours") == NOTHING

        # other changes: what did not change keeps its values and its answers
        sql("update {s}.drug_reviews set useful_count = 5 where review_id = 7")
        sql("delete from {s}.drug_reviews where review_id in (6, 22)")
        assert once("plain") == dict.fromkeys(NOTHING, "ROW_BASED")
        third = rows()
        assert third == {**{k: v for k, v in second.items() if k not in (6, 22)}, 7: (5, *second[7][1:])}
        assert {key: row for key, row in joined().items() if key < 20} == {k: v for k, v in draws.items() if k != 6}
        assert once("ours") == NOTHING

        # the window takes rows, and the adapter goes on from there
        assert once("plain", 3)["review_triage"] == "COMPLETE_RECOMPUTE"
        fourth = rows()
        assert 0 < len(fourth) < len(third) and fourth == {key: third[key] for key in fourth}
        assert once("ours", 3) == NOTHING and paid() == {"ai_analyze_sentiment": 6, "ai_classify": 6}
