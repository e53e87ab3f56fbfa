"""provider: native: the SQL in which the engine answers, by its own functions or by those that the user names."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.ai.native import ask_by_statements, call_sql
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.query.ai_calls.ai_plan import AiCall, plan_ai

pytestmark = pytest.mark.unit

SQL = "select ai_classify(t, array('it''s', 'b')) as c, ai_query('m', t) as q, ai_gen(t) as g from s"


def settings(**options: Any) -> AiSettings:
    return AiSettings.from_config({"provider": "native", "model": "engine", "options": options})


def calls(sql: str = SQL, **more: Any) -> dict[str, AiCall]:
    found = plan_ai(sql, results_table="r", identity={"model": "engine", **more}, schemas={"s": {"t": "string"}})
    assert not found.errors
    return {call.function: call for call in found.calls}


def test_functions_of_your_own_are_called_in_the_place_of_the_engines() -> None:
    found = calls()
    assert call_sql(found["ai_classify"]).startswith("ai_classify(")
    assert (
        call_sql(found["ai_classify"], "llm.topic")
        == "`llm`.`topic`(" + call_sql(found["ai_classify"]).split("(", 1)[1]
    )
    assert "endpoint => 'm'" in call_sql(found["ai_query"])
    assert call_sql(found["ai_query"], "f").startswith("`f`('m', get_json_object(request,")
    (asked,) = calls("select ai_query('m', t) as q from s", parameters={"temperature": 0}).values()
    with pytest.raises(AiConfigError, match="the call has parameters"):
        call_sql(asked, "f")


def test_the_names_are_checked() -> None:
    assert settings(ai_gen="llm.gen").sql_function("ai_gen") == "llm.gen"
    assert settings(ai_gen="llm.gen").sql_function("ai_mask") == ""
    with pytest.raises(AiConfigError, match="did you mean 'ai_classify'"):
        settings(ai_clasify="llm.topic")
    for wrong in ("a(b", "a; drop table t", "", 3, "a.b.c.d"):
        with pytest.raises(AiConfigError, match="must be the name of a SQL function"):
            settings(ai_gen=wrong)


def test_over_plain_sql_a_statement_asks_what_a_call_lacks() -> None:
    sent: list[str] = []

    def execute(sql: str) -> list[tuple[Any, ...]]:
        sent.append(sql)
        return [(0, 3), (2, 5)]

    found = list(calls().values())
    done = ask_by_statements(execute, found, settings(), "r", "2026-01-01 UTC", "i", "p", 6)
    assert (done.calls, done.ok, len(sent)) == (6, 6, 3)
    assert "LIMIT" not in sent[1] and "AND site = 0" in sent[1]
    assert "AND site = 2 ORDER BY old_at NULLS FIRST, result_key LIMIT 3" in sent[2]
    assert all(sql.startswith("INSERT INTO r (result_key, ") for sql in sent[1:])
