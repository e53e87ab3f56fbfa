"""Near duplicates: what the config says, which of several texts leads, and which rows are answers for whom."""

from __future__ import annotations

import pytest

from spark_mv.ai.dedupe import Dedupe, dedupe_of, near_key_sql, problem_of_dedupe
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.query.ai_calls.ai_plan import plan_ai

SQL = "SELECT ai_classify(t, array('a', 'b')) AS k, ai_mask(t, array('name')) AS m FROM x"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("case", "must be like"),
        ({"normalise": ["case"]}, "unknown word 'normalise'"),
        ({"normalize": "case"}, "must be a list of case and whitespace"),
        ({"normalize": []}, "must be a list"),
        ({"normalize": ["white space"]}, "did you mean 'whitespace'?"),
        ({"semantik": 0.98}, "unknown word 'semantik'"),
        ({"semantic": 0.5}, "must be a cosine from 0.8 to below 1"),
        ({"semantic": True}, "must be a cosine"),
        ({"semantic": 0.98, "normalize": []}, "must be a list"),
    ],
)
def test_what_the_config_may_not_say(value: object, why: str) -> None:
    assert why in (problem_of_dedupe(value) or "")
    with pytest.raises(AiConfigError, match="dedupe"):
        AiSettings.from_config({"provider": "scripted", "dedupe": value})


def test_what_it_says() -> None:
    assert dedupe_of({}) is None
    assert dedupe_of({"normalize": ["whitespace", "case"]}) == Dedupe(("case", "whitespace"))
    profile = {"provider": "scripted", "dedupe": {"normalize": ["case"]}}
    assert AiSettings.from_config(profile).identity().answered == ("ok", "near")
    assert AiSettings.from_config(profile, {"dedupe": {}}).identity().answered == ("ok",)
    assert dedupe_of({"semantic": 0.98}) == Dedupe((), 0.98)
    assert AiSettings.from_config(profile, {"dedupe": {"semantic": 0.98}}).identity().answered == (
        "ok",
        "near",
        "similar",
    )


def test_keys_and_statements_without_it_are_those_that_they_were() -> None:
    plain = AiSettings.from_config({"provider": "scripted"}).identity()
    folding = AiSettings.from_config({"provider": "scripted", "dedupe": {"normalize": ["case"]}}).identity()
    assert repr(plain) == repr(folding)
    one, other = (plan_ai(SQL, results_table="r", identity=who) for who in (plain, folding))
    assert [c.request_sql for c in one.calls] == [c.request_sql for c in other.calls]
    assert [c.identity_hash for c in one.calls] == [c.identity_hash for c in other.calls]
    assert "near" not in one.sql
    assert other.sql.count("status IN ('ok', 'near')") == 2
    assert near_key_sql(one.calls, Dedupe(("case",))).count("NULL") == 1  # of ai_mask, which repeats the text
