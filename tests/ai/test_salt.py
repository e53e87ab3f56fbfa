"""Whose salt the hashes of the result table are made with, and what is refused."""

from __future__ import annotations

import pytest

from spark_mv.ai.salt import SALT, SALT_PROPERTY, check_salt
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.ai_calls.ai_plan import plan_ai

SQL = "SELECT id, ai_gen(body) AS a FROM t WHERE ai_classify(body, array('x', 'y')) = 'x'"


@pytest.mark.parametrize(
    ("property_", "table", "mark", "says"),
    [
        ("", "", None, None),
        ("m1", "s.salt", "m1", None),
        ("m1", "", None, "names no salt_table"),
        ("", "s.salt", "m1", "are not salted"),
        ("m1", "s.salt", "m2", "another salt"),
        ("m1", "s.salt", None, "has no salt"),
        ("", "s.salt", None, "has no salt"),
    ],
)
def test_answers_count_under_their_own_salt_alone(
    property_: str, table: str, mark: str | None, says: str | None
) -> None:
    properties = {SALT_PROPERTY: property_} if property_ else {}
    if says is None:
        check_salt("`r`", properties, table, mark)
        return
    with pytest.raises(RefusedError, match=says) as raised:
        check_salt("`r`", properties, table, mark)
    assert raised.value.code == "AI_SALT"


def test_every_hash_of_a_question_is_salted() -> None:
    plain, salted = (
        plan_ai(SQL, results_table="r", identity=settings.identity())
        for settings in (
            AiSettings.from_config({"provider": "scripted", "salt_table": name}) for name in (None, "s.salt")
        )
    )
    for before, now in zip(
        [plain.sql, *(c.request_sql for c in plain.calls)],
        [salted.sql, *(c.request_sql for c in salted.calls)],
        strict=True,
    ):
        assert before.count("sha2(") > 0 == before.count(SALT)
        assert now.count("sha2(") == 2 * before.count("sha2(") and now.count(SALT) == before.count("sha2(")


@pytest.mark.parametrize("name", ["", "..", 7, ["a"]])
def test_a_salt_table_has_a_name(name: object) -> None:
    with pytest.raises(AiConfigError, match="salt_table must be the name of a table"):
        AiSettings.from_config({"provider": "scripted", "salt_table": name})


def test_the_profile_alone_names_it() -> None:
    with pytest.raises(AiConfigError, match="belongs in the profile's ai block"):
        AiSettings.from_config({"provider": "scripted"}, {"salt_table": "s.salt"})
