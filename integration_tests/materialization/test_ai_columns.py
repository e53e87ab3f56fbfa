"""AI columns: one call per distinct new input, ever; every other run reads the answers back."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import write_file

TICKETS = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select
  id,
  status,
  ai_classify(body, array('billing', 'shipping', 'other')) as topic,
  ai_analyze_sentiment(body) as mood,
  rand() as split
from {{ target.schema }}.src
where created_at > current_date() - interval 30 days
"""
OTHER = """
{{ config(materialized='nondeterministic_mv', unique_key='topic') }}
select ai_classify(body, array('billing', 'shipping', 'other')) as topic, count(*) as n
from {{ target.schema }}.src
group by ai_classify(body, array('billing', 'shipping', 'other'))
"""


MEANT = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai={'dedupe': {'semantic': 0.9}}) }}
select id, ai_classify(body, array('billing', 'shipping', 'other')) as topic
from values (1, 'The delivery was late and nobody answered'), (2, 'The delivery was late, and nobody answered.'), (3, 'I love it') as t(id, body)
"""

ANSWERED_BY = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai=var('ai', {})) }}
select id, ai_gen(concat('question ', id)) as answer from {{ target.schema }}.asked
"""


class TestAiColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": TICKETS, "topics.sql": OTHER, "meant.sql": MEANT, "answered_by.sql": ANSWERED_BY}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as select id, 'open' as status, "
            "concat('text ', id % 20) as body, timestamp'2026-01-20 00:00:00' as created_at from range(100)"
        )

    def test_paid_once(self, project: Any, mv: Any, sql: Any) -> None:
        first = mv.run()
        # 20 distinct texts, two functions
        assert first["ai_calls"] == 40
        assert "40 AI calls" in first["_message"]
        answers = mv.by_id("topic, mood, split")
        assert all(topic is not None and mood is not None for topic, mood, _ in answers.values())

        assert mv.run()["strategy"] == "NO_OP"

        # another column: no call, and the draws stay
        sql("update {schema}.src set status = 'closed' where id < 50")
        edited = mv.run()
        assert (edited["rows_updated"], edited["ai_calls"]) == (50, 0)
        assert mv.by_id("topic, mood, split") == answers

        # one new text: its two calls
        sql("update {schema}.src set body = 'something new' where id in (3, 4)")
        assert mv.run()["ai_calls"] == 2

        # a full refresh and changed SQL replay the answers
        before = mv.by_id("topic, mood, split")
        assert mv.run("2026-02-01 06:00:00", "--full-refresh")["ai_calls"] == 0
        write_file(TICKETS.replace("status,", "upper(status) as status,"), project.project_root, "models", "mv.sql")
        assert mv.run()["ai_calls"] == 0
        assert mv.by_id("topic, mood, split") == before

        # rows that leave the window cost nothing either
        gone = mv.run("2026-03-01 00:00:00")
        assert (gone["rows_evicted"], gone["ai_calls"]) == (100, 0)

    def test_answers_are_data_and_shared(self, project: Any, sql: Any) -> None:
        from conftest import Mv

        mv = Mv(sql)
        topics = Mv(sql, "topics")
        mv.run()
        grouped = topics.run()
        assert grouped["ai_calls"] == 0
        assert sum(n for _, n in topics.rows()) == 100

    def test_what_means_the_same_is_asked_once(self, project: Any, sql: Any) -> None:
        from conftest import Mv

        meant = Mv(sql, "meant")
        first = meant.run()
        assert (first["ai_calls"], first["ai_reused"]) == (2, 1)
        found = meant.by_id("topic")
        assert (None,) not in found.values() and found[1] == found[2]
        assert sql("select count(*), count(similarity) from {schema}.ai_similar") == [(3, 1)]
        assert meant.run("2026-02-02 06:00:00", "--full-refresh")["ai_calls"] == 0

    def test_another_model_keeps_the_answers_until_it_may_recompute_them(self, project: Any, sql: Any) -> None:
        from conftest import Mv

        model = Mv(sql, "answered_by")
        sql("create or replace table {schema}.asked using delta as select id from range(3)")
        assert model.run()["ai_calls"] == 3
        before = model.by_id("answer")
        kept = model.run(ai={"model": "new", "on_model_change": "keep"})
        assert (kept["ai_calls"], model.by_id("answer")) == (0, before)
        # what was kept is what another model said: it is asked anew, within the budget
        within = {"model": "new", "max_ai_calls": 2}
        assert [model.run(ai=within)["ai_calls"] for _ in range(3)] == [2, 1, 0]
        assert model.run(ai=within)["strategy"] == "NO_OP"


MISSPELT = "{{ config(materialized='nondeterministic_mv', unique_key='id', ai={'max_ai_cals': 3}) }} select 1 as id"


class TestNoProvider:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": TICKETS, "plain.sql": MISSPELT}

    def test_a_misspelt_word_of_a_model_that_asks_nothing(self, project: Any, sql: Any, operation: Any) -> None:
        from conftest import Mv

        said = Mv(sql, "plain").run(expect_pass=False)
        assert "did you mean 'max_ai_calls'?" in said
        said = operation("prune_ai_results", {}, expect_pass=False)
        assert "model plain: " in said and "did you mean 'max_ai_calls'?" in said

    def test_says_what_to_configure(self, project: Any, mv: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as select 1 as id, '' as status, '' as body, now() as created_at"
        )
        said = mv.run(expect_pass=False)
        assert "no provider is configured" in said and "provider: local" in said
