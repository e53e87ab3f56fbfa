"""A typed answer that a column of its type would show as NULL is none, and what fits is kept with all its digits."""

from __future__ import annotations

import pytest

from spark_mv.ai.chat import chat_answer, reply_of
from spark_mv.ai.protocol import ProviderError, Request
from spark_mv.ai.schemas import json_schema_of, value_kind

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
        ("MAP<STRING, BIGINT>", '{"a": 1e1000000}', "not of the schema"),
        ("DECIMAL(4,2)", '{"answer": NaN}', "is no DECIMAL"),
        ("INT", '{"answer": 5.5}', "not of the schema"),
    ],
)
def test_what_does_not(ddl: str, reply: str, why: str) -> None:
    with pytest.raises(ProviderError) as raised:
        _asked(ddl, reply)
    assert why in str(raised.value) and raised.value.spent == (5, 2)
