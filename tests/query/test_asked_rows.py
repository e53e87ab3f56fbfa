"""Marks of requests in the place of AI answers, and for which calls there is none."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.asked_rows import with_requests

IDENTITY = {"model": "m", "model_version": "1"}


def marked(sql: str) -> tuple[str, list[str]]:
    text, calls = with_requests(sql, results_table="r", identity=IDENTITY)
    return text, [call.function for call in calls]


@pytest.mark.parametrize(
    "sql",
    [
        "select id, ai_analyze_sentiment(body) as mood from s",
        "with a as (select id, ai_analyze_sentiment(body) as mood from s) select * from a",
        "with a as (select id, ai_analyze_sentiment(body) as mood from s) select a.id, a.mood from a where mood = 'x'",
        "select id, case when n > 1 then ai_analyze_sentiment(body) end as mood from s",
        "select id, case when n > 1 then ai_analyze_sentiment(body) else 'none' end as mood from s",
        "select id, ai_analyze_sentiment(body) as mood from s union all select id, mood from t",
    ],
)
def test_an_answer_that_is_a_columns_value_is_marked(sql: str) -> None:
    text, functions = marked(sql)
    assert functions == ["ai_analyze_sentiment"]
    assert "'mvAI:0:'" in text and "FROM r" not in text


@pytest.mark.parametrize(
    "sql",
    [
        "select id, upper(ai_analyze_sentiment(body)) as mood from s",
        "select id, greatest(ai_analyze_sentiment(a), ai_analyze_sentiment(b)) as mood from s",
        "select id, case when ai_analyze_sentiment(a) = 'x' then ai_gen(b) end as said from s",
        "with a as (select id, ai_analyze_sentiment(body) as mood from s) select id, upper(mood) as mood from a",
        "select id, max(mood) as mood from (select id, ai_analyze_sentiment(body) as mood from s) group by id",
        "select id from s where ai_analyze_sentiment(body) = 'positive'",
        "select id, body from s",
        "select id, ai_classify(body) as wrong from s",
        "select id, ai_analyze_sentiment(",
    ],
)
def test_an_answer_that_goes_into_something_else_is_not(sql: str) -> None:
    text, functions = marked(sql)
    assert functions == [] and "mvAI" not in text


def test_columns_of_the_arguments() -> None:
    _, calls = with_requests(
        "select id, ai_gen(concat(t.title, ': ', body)) as said from s t", results_table="r", identity=IDENTITY
    )
    assert [sorted(call.columns) for call in calls] == [["body", "title"]]
