"""Schemas that no answer can be of are found out before anything is asked."""

from __future__ import annotations

import pytest

from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import AiPlan, plan_ai

pytestmark = pytest.mark.unit


def plan(call: str) -> AiPlan:
    identity = AiSettings.from_config({"provider": "scripted"}).identity()
    return plan_ai(f"SELECT id,\n  {call} AS x FROM r", results_table="t", identity=identity)


def query(schema: str) -> str:
    return f"ai_query('m', t, responseFormat => '{schema}')"


WRONG = [
    (query('{"type": "objekt"}'), "responseFormat that is no JSON schema: $.type: 'objekt' is not valid"),
    (query('{"type": "object", "properties": ["a"]}'), "no JSON schema: $.properties: ['a']"),
    (query('{"type": "json_object"}'), "no JSON schema: $.type"),
    (query('{"type": "string", "pattern": "("}'), "no JSON schema: $.pattern"),
    (query('{"$schema": ["x"]}'), "no JSON schema: TypeError"),
    (query('{"properties": {"a": {"$ref": "#/$defs/a"}}}'), "there is no '#/$defs/a'"),
    (query('{"$ref": "https://example.com/a.json"}'), "has to have all in itself"),
    (query('{"json_schema": []}'), "its json_schema has no schema"),
    (query('{"json_schema": {"name": "a"}}'), "its json_schema has no schema"),
    (query('{"schema": "a"}'), "its schema is no JSON object"),
    ('ai_extract(t, \'{"a": {"type": "enum", "labels": 5}}\')', "schema that no answer can be asked for by"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_a_schema_that_is_none_is_a_wrong_argument(call: str, message: str) -> None:
    found = plan(call)
    (error,) = found.errors
    assert (error.code, error.line, error.column, found.rounds) == ("AI_WRONG_ARGUMENTS", 2, 3, ())
    assert message in error.message


OBJECT = (
    '{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}'
)
RIGHT = [
    query(OBJECT),
    query(f'{{"type": "json_schema", "json_schema": {{"name": "a", "schema": {OBJECT}}}}}'),
    query('{"type": "object", "properties": {"$ref": {"type": "string"}}}'),
    query("STRUCT<a: INT>"),
    "ai_query('m', t)",
    'ai_extract(t, \'{"a": {"type": "enum", "labels": ["b"]}}\')',
    'ai_classify(t, \'{"a": "what a is", "b": ""}\')',
]


@pytest.mark.parametrize("call", RIGHT)
def test_a_schema_that_is_one_is_asked_for(call: str) -> None:
    assert (plan(call).errors, len(plan(call).calls)) == ((), 1)
