"""Prompts, schemas and how a reply becomes the value that is kept."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from spark_mv.ai.asking import estimate_tokens
from spark_mv.ai.packing import divided
from spark_mv.ai.prompts import answer_text, messages, response_schema
from spark_mv.ai.protocol import Request
from spark_mv.ai.providers.openai import retry_after
from spark_mv.ai.schemas import json_schema_of
from spark_mv.ai.tokens import four_bytes, input_tokens


def content(function: str, **constant: Any) -> Request:
    return Request(function, {"content": "hello"}, constant)


ANSWERS = [
    (content("ai_classify", labels=["a", "b"]), {"label": "b"}, "b"),
    (content("ai_classify", labels=["a", "b"]), {"label": None}, None),
    (content("ai_classify", labels=["a"], v=2), {"label": "a"}, '{"response": ["a"], "error_message": null}'),
    (
        content("ai_classify", labels=["a", "b"], v=2, options={"multilabel": "true"}),
        {"labels": ["a", "b"]},
        '{"response": ["a", "b"], "error_message": null}',
    ),
    (content("ai_extract", labels=["who"]), {"who": None}, '{"who": null}'),
    (content("ai_extract", schema=["who"], v=2), {"who": "I"}, '{"response": {"who": "I"}, "error_message": null}'),
    (content("ai_analyze_sentiment"), {"sentiment": "mixed"}, "mixed"),
    (Request("ai_query", {"request": "x"}, answer_type="INT", type_schema={"type": "integer"}), {"answer": 3}, "3"),
    (
        Request("ai_filter", {"content": "x"}, {"condition": "is short"}, "BOOLEAN", type_schema={"type": "boolean"}),
        {"answer": True},
        "true",
    ),
    (
        Request("ai_query", {"request": "x"}, answer_type="ARRAY<INT>", type_schema=json_schema_of("ARRAY<INT>")),
        {"answer": [1]},
        "[1]",
    ),
    (
        Request(
            "ai_query", {"request": "x"}, answer_type="STRUCT<a: INT>", type_schema=json_schema_of("STRUCT<a: INT>")
        ),
        {"a": 1},
        '{"a": 1}',
    ),
]


@pytest.mark.parametrize(("request_", "reply", "value"), ANSWERS)
def test_replies_of_the_schema_become_values(request_: Request, reply: Any, value: str | None) -> None:
    schema = response_schema(request_)
    assert schema is not None
    assert schema["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(reply, schema)
    assert answer_text(request_, json.dumps(reply)) == value


def test_free_text_has_no_schema() -> None:
    for function in ("ai_summarize", "ai_translate", "ai_mask", "ai_fix_grammar"):
        request = Request(function, {"content": "c", "to_lang": "de"}, {"max_words": 5, "labels": ["x"]})
        assert response_schema(request) is None
        assert [m["role"] for m in messages(request)] == ["system", "user"]
        assert answer_text(request, " yes \n") == "yes"


def test_a_reply_that_could_not_be_used_is_told_what_it_was_to_be() -> None:
    free = Request("ai_gen", {"prompt": "hi"}, complaint="an empty answer")
    assert messages(free)[-1]["content"] == "Your last reply could not be used: an empty answer. Reply again."
    typed = Request("ai_classify", {"content": "hi"}, {"labels": ["a"]}, complaint="no label")
    assert messages(typed)[-1]["content"].endswith("no label. Reply again, with valid JSON of the schema only.")


def test_text_in_a_prompt_is_no_template() -> None:
    request = Request("f", {"a": "{b}", "b": "B"}, prompt='{"k": "{a}"} {b}')
    assert messages(request)[0]["content"] == '{"k": "{b}"} B'


def test_messages_of_a_struct_request_are_passed_on() -> None:
    given = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert messages(Request("ai_query", {"request": {"messages": given}})) == given
    assert messages(Request("ai_query", {"request": {"q": 1}}))[0]["content"] == '{"q": 1}'


def test_retry_after() -> None:
    assert retry_after(None) is None
    assert retry_after("2.5") == 2.5
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("soon") is None
    assert retry_after("Mon, 01 Jan 99999 00:00:00 GMT") is None


def test_tokens_of_a_batch_are_divided_without_rest() -> None:
    assert divided(10, [1, 1, 1]) == [3, 3, 4]
    assert divided(5, [0, 0]) == [0, 0]


def test_a_file_goes_with_the_question() -> None:
    picture = Request("ai_query", {"request": "what is it?", "files": "/9j/4AAQ\r\nSkZJ"})
    (said,) = messages(picture)
    url = {"url": "data:image/jpeg;base64,/9j/4AAQSkZJ"}
    assert said["content"] == [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": url}]
    address = Request("ai_query", {"request": "what is it?", "files": "url:https://example.com/a.png"})
    assert messages(address)[0]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "https://example.com/a.png"},
    }
    (document,) = messages(Request("ai_query", {"request": "read it", "files": "JVBERi0xLjQK"}))
    assert document["content"][1]["file"]["file_data"] == "data:application/pdf;base64,JVBERi0xLjQK"
    system = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is it?"}]
    spoken = messages(Request("ai_query", {"request": {"messages": system}, "files": "iVBORw0KGgo"}))
    assert spoken[0] == system[0]
    assert [part["type"] for part in spoken[1]["content"]] == ["text", "image_url"]
    large = Request("ai_query", {"request": "what is it?", "files": "iVBORw0KGgo" + "A" * 1_000_000}, model="m")
    assert input_tokens(large, four_bytes) < 1_100 > estimate_tokens(large)
