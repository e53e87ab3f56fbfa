"""Unit tests of models: given values in place of answers and draws."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.given import with_given

pytestmark = pytest.mark.unit


def test_draws_of_all_kinds() -> None:
    sql = (
        "select rand() as r, uuid() as u, 'rand()' as text, uniform(0, 9) as n, b.rand as f from s where rand(3) < 0.5"
    )
    assert with_given(sql, {}, {"RAND": 0.25, "uuid": "it's", "uniform": None}) == (
        "select 0.25D as r, 'it\\'s' as u, 'rand()' as text, null as n, b.rand as f from s where 0.25D < 0.5"
    )


def test_a_name_that_nobody_calls_is_misspelt() -> None:
    with pytest.raises(ValueError, match=r"rnad, .*did you mean 'rand'"):
        with_given("select rand() as r from s", {}, {"rnad": 0.25})
    with pytest.raises(ValueError, match="ai_clasify"):
        with_given("select id from s", {"ai_clasify": "a"}, {})
    assert with_given("select dice() as r from s", {"ai_gen": "a"}, {"dice": 3, "uuid": "x"}) == "select 3 as r from s"


def test_answers_by_their_first_argument() -> None:
    found = with_given(
        "select ai_similarity(a, 'x') as s, ai_gen(b) as g from t", {"ai_similarity": {"up": 0.5}, "AI_GEN": "z"}, {}
    )
    assert "case cast(a as string) when 'up' then try_cast('0.5' AS FLOAT) else raise_error(" in found
    assert "case when cast(a as string) is null then null" in found
    assert "('z') as g" in found


def test_answers_within_answers_and_of_types() -> None:
    found = with_given(
        "select ai_gen(ai_gen(b)) as g, ai_extract(b, array('city')) as e from t",
        {"ai_gen": {"in": "out"}, "ai_extract": {"in": {"city": "Bern"}}},
        {},
    )
    assert found.count("when 'in' then 'out'") > 1
    assert 'from_json(\'{"city": "Bern"}\', \'STRUCT<' in found


def test_a_call_without_an_answer_is_refused_with_the_cure() -> None:
    with pytest.raises(ValueError, match=r"ai_gen at line 1 has no answer.*ai_answers"):
        with_given("select ai_gen(b) as g from t", {}, {"rand": 1})
    assert with_given("select 1 as one", {}, {}) == "select 1 as one"
