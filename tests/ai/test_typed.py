"""A typed answer that a column of its type would show as NULL is none, and what fits is kept with all its digits."""

from __future__ import annotations

import pytest

from spark_mv.ai.chat import chat_answer, reply_of
from spark_mv.ai.prompts import answer_text, checked_value, messages
from spark_mv.ai.protocol import ProviderError, Request
from spark_mv.ai.schemas import json_schema_of, value_kind
from spark_mv.ai.worker import Site

pytestmark = pytest.mark.unit


def _asked(ddl: str, reply: str) -> str | None:
    request = Request(
        "ai_query", {"request": "q"}, answer_type=ddl, type_schema=json_schema_of(ddl), kind=value_kind(ddl)
    )
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    return chat_answer(request, reply_of({"choices": [{"message": {"content": reply}}], "usage": usage})).value


@pytest.mark.parametrize(
    ("ddl", "reply", "kept"),
    [
        ("INT", '{"answer": 5.0}', "5"),
        ("BIGINT", '{"answer": 9223372036854775807}', "9223372036854775807"),
        ("ARRAY<INT>", '{"answer": [1.0, 2]}', "[1, 2]"),
        ("STRUCT<urgency: INT, why: STRING>", '{"urgency": 5.0, "why": "é"}', '{"urgency": 5, "why": "é"}'),
        ("DECIMAL(22,2)", '{"answer": 12345678901234567890.12}', "12345678901234567890.12"),
        ("STRUCT<total: DECIMAL(18,2)>", '{"total": 9999999999999999.99}', '{"total": 9999999999999999.99}'),
        ("DECIMAL(4)", '{"answer": 12.5}', "12.5"),
        ("MAP<STRING, DOUBLE>", '{"a": 0.1, "b": null}', '{"a": 0.1, "b": null}'),
        ("DATE", '{"answer": "2024-02-29"}', "2024-02-29"),
        ("TIMESTAMP", '{"answer": "2026-02-03T04:05:06.7Z"}', "2026-02-03T04:05:06.7Z"),
        (
            "TIMESTAMP",
            '{"answer": "2026-02-03 23:59:59.123456 Europe/Berlin"}',
            "2026-02-03 23:59:59.123456 Europe/Berlin",
        ),
        ("TIMESTAMP", '{"answer": "2026-02-03 4:05+01:00"}', "2026-02-03 4:05+01:00"),
        ("BOOLEAN", '{"answer": true}', "true"),
        ("ARRAY<STRING>", '{"answer": []}', "[]"),
        ("VARIANT", '{"answer": "123"}', '"123"'),
        ("VARIANT", '{"answer": {"n": 12345678901234567890.12}}', '{"n": 12345678901234567890.12}'),
        ("TIMESTAMP", '{"answer": "2026-02-03 4:05:06 PST"}', "2026-02-03 4:05:06 PST"),
        ("BINARY", '{"answer": "hi there!"}', "hi there!"),
        ("STRUCT<b: BINARY>", '{"b": "hi there!"}', '{"b": "aGkgdGhlcmUh"}'),
    ],
)
def test_what_fits(ddl: str, reply: str, kept: str) -> None:
    assert _asked(ddl, reply) == kept


@pytest.mark.parametrize(
    ("ddl", "reply", "why"),
    [
        ("INT", '{"answer": 3000000000}', "3000000000 is no INT"),
        ("TINYINT", '{"answer": 300}', "300 is no TINYINT"),
        ("STRUCT<a: ARRAY<SMALLINT>>", '{"a": [1, 40000]}', "a[1]: 40000 is no SMALLINT"),
        ("DECIMAL(4,2)", '{"answer": 123.5}', "123.5 is no DECIMAL(4,2)"),
        ("DECIMAL(4,2)", '{"answer": 99.995}', "99.995 is no DECIMAL(4,2)"),
        ("FLOAT", '{"answer": 1e300}', "is no FLOAT"),
        ("DATE", '{"answer": "next Tuesday"}', "is no DATE"),
        ("DATE", '{"answer": "2026-02-29"}', "is no DATE"),
        ("TIMESTAMP_NTZ", '{"answer": "2026-02-03 noon"}', "is no TIMESTAMP"),
        ("TIMESTAMP", '{"answer": "2026-02-28 25:00:00"}', "is no TIMESTAMP"),
        ("TIMESTAMP", '{"answer": "2026-02-28 10:61"}', "is no TIMESTAMP"),
        ("TIMESTAMP", '{"answer": "2026-02-28 10:00:99"}', "is no TIMESTAMP"),
        ("DOUBLE", '{"answer": 1e400}', "is no DOUBLE"),
        ("STRUCT<d: DOUBLE>", '{"d": NaN}', "is no DOUBLE"),
        ("VARIANT", '{"answer": [1e999]}', "no number that a column can hold"),
        ("TIMESTAMP", '{"answer": "2024-01-01 10:00:00 Foo/Bar"}', "is no TIMESTAMP"),
        ("TIMESTAMP", '{"answer": "2024-01-01 10:00:00 garbage"}', "is no TIMESTAMP"),
        ("TIMESTAMP", '{"answer": "999999-01-01 00:00:00"}', "is no TIMESTAMP"),
        ("STRUCT<at: TIMESTAMP_NTZ>", '{"at": "2024-01-01T00:00:00Z"}', "is no TIMESTAMP_NTZ"),
        ("MAP<STRING, BIGINT>", '{"a": 1e1000000}', "not of the schema"),
        ("DECIMAL(4,2)", '{"answer": NaN}', "is no DECIMAL"),
        ("INT", '{"answer": 5.5}', "not of the schema"),
    ],
)
def test_what_does_not(ddl: str, reply: str, why: str) -> None:
    with pytest.raises(ProviderError) as raised:
        _asked(ddl, reply)
    assert why in str(raised.value) and raised.value.spent == (5, 2)


@pytest.mark.parametrize(
    ("ddl", "value", "fits"),
    [
        ("INT", " 5", True),
        ("INT", "five", False),
        ("INT", "5.0", False),
        ("TINYINT", "300", False),
        ("DOUBLE", "1e5", True),
        ("DOUBLE", "1,5", False),
        ("DOUBLE", "1e400", False),
        ("DECIMAL(4,2)", "123.5", False),
        ("BOOLEAN", "Yes", True),
        ("BOOLEAN", '"maybe"', False),
        ("DATE", "2026-02-29", False),
        ("TIMESTAMP", "2026-02-03 04:05", True),
        ("STRUCT<a: INT>", '{"a": 1}', True),
        ("STRUCT<a: INT>", '{"a": "x"}', False),
        ("STRUCT<a: INT>", "{broken", False),
        ("STRUCT<b: BINARY>", '{"b": "aGk="}', True),
        ("STRUCT<b: BINARY>", '{"b": "hi there!"}', False),
        ("ARRAY<DATE>", '["2026-13-01"]', False),
        ("VARIANT", "{broken", False),
        ("VARIANT", '{"a": [1, null]}', True),
        ("BINARY", "hi", True),
        ("DECIMAL(10,2)", "1_000", False),
        ("INT", "５", False),
        ("DOUBLE", "\u00a05", False),
        ("DOUBLE", "NaN", True),
        ("FLOAT", "3.4028235e38", True),
        ("FLOAT", "1e39", False),
        ("TIMESTAMP", "2026-02-03 04:05 UTC", False),
        ("TIMESTAMP", "2026-02-03 04:05:06 UTC", True),
        ("TIMESTAMP", "2026-02-03 04:05:06 localtime", False),
        ("TIMESTAMP_NTZ", "2026-02-03T04:05:06Z", True),
        ("DATE", "5999999-01-01", False),
        ("STRUCT<t: DECIMAL(10,2)>", '{"t": "12.50"}', True),
        ("STRUCT<t: DECIMAL(10,2)>", '{"t": "many"}', False),
        ("STRUCT<at: TIMESTAMP>", '{"at": 1700000000}', True),
    ],
)
def test_values_of_other_providers(ddl: str, value: str, fits: bool) -> None:
    request = Request("ai_query", {"request": "q"}, answer_type=ddl, kind=value_kind(ddl))
    if fits:
        assert checked_value(request, value) == value
    else:
        with pytest.raises(ValueError):
            checked_value(request, value)


@pytest.mark.parametrize(
    ("function", "constant", "value", "fits"),
    [
        ("ai_classify", {"labels": ["yes", "no"]}, "ok", False),
        ("ai_classify", {"labels": ["yes", "no"]}, "no", True),
        ("ai_classify", {"labels": {"a": "b"}, "v": 2}, '{"response": ["a"]}', True),
        ("ai_analyze_sentiment", {}, "good", False),
        ("ai_analyze_sentiment", {}, None, True),
        ("ai_gen", {}, "anything", True),
    ],
)
def test_labels_of_other_providers(function: str, constant: dict[str, object], value: str | None, fits: bool) -> None:
    request = Request(function, {"content": "c"}, constant, answer_type="VARIANT" if constant.get("v") else "STRING")
    if fits:
        assert checked_value(request, value) == value
    else:
        with pytest.raises(ValueError, match="none of"):
            checked_value(request, value)


@pytest.mark.parametrize(
    ("ddl", "value", "kept"),
    [
        ("STRUCT<n: INT>", '{"n": 5.0}', '{"n": 5}'),
        ("ARRAY<INT>", "[1.0, 1e2]", "[1, 100]"),
        ("MAP<STRING, INT>", '{"a": 2.0}', '{"a": 2}'),
        ("VARIANT", '{"a": 1, "a": 2}', '{"a": 2}'),
        ("ARRAY<INT>", "null", None),
    ],
)
def test_what_is_kept_of_other_providers_json(ddl: str, value: str, kept: str | None) -> None:
    assert checked_value(Request("ai_query", {"request": "q"}, answer_type=ddl, kind=value_kind(ddl)), value) == kept


def test_digits_of_what_is_asked_and_answered() -> None:
    asked = Site("ai_query", "STRING", "m", "m", "h", {}, None, None, None, False).request(
        '{"constant":{},"function":"ai_query","row":[{"request":{"amount":12345678901234567890.12}}]}'
    )
    assert messages(asked)[0]["content"] == '{"amount": 12345678901234567890.12}'
    extract = Request(
        "ai_extract", {"content": "c"}, {"schema": {"n": {"type": "number"}}, "v": 2}, answer_type="VARIANT"
    )
    assert (
        answer_text(extract, '{"n": 12345678901234567890.12}')
        == '{"response": {"n": 12345678901234567890.12}, "error_message": null}'
    )
    for reply in ('{"n": NaN}', '{"n": 1e400}'):
        with pytest.raises(ValueError):
            answer_text(extract, reply)
    free = Request(
        "ai_query", {"request": "q"}, response_schema='{"type": "object", "properties": {"n": {"type": "number"}}}'
    )
    assert answer_text(free, '{"n": 12345678901234567.89}') == '{"n": 12345678901234567.89}'
