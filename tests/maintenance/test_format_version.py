"""What a later release wrote is refused, wherever it stands; what an earlier one wrote, and what is none of ours, is not."""

from __future__ import annotations

import json

import pytest

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.forget import ForgetRequest, request_text, waiting, withdrawal_text
from spark_mv.maintenance.format_version import FORMAT, FORMAT_PROPERTY, check_rows, check_table
from spark_mv.maintenance.record import RunRecord, SourceVersion, read_record
from spark_mv.maintenance.state import StateRecord, read_state_record

pytestmark = pytest.mark.unit
RECORD = RunRecord("q", "c", "2026-01-01", "UTC", {"s": SourceVersion(1, "t")})


def written(text: str, **more: object) -> str:
    return json.dumps({**json.loads(text), **more})


def test_records_of_this_format() -> None:
    assert read_record(RECORD.to_json()) == RECORD
    assert read_record(written(RECORD.to_json(), forgotten=[])) == RECORD  # earlier releases wrote it
    older = {
        name: value for name, value in json.loads(RECORD.to_json()).items() if name not in ("turn", "result", "pace")
    }
    assert read_record(json.dumps(older)) == RECORD
    for text in (
        None,
        "",
        "spark_mv",
        "[]",
        '{"spark_mv": true}',
        '{"spark_mv": "2"}',
        '{"spark_mv": 0}',
        '{"spark_mv_forget": 1}',
    ):
        assert read_record(text) is None


@pytest.mark.parametrize("more", [{"spark_mv": FORMAT + 1}, {"to_come": 1}])
def test_records_of_a_later_release(more: dict[str, int]) -> None:
    with pytest.raises(RefusedError, match=r"NEWER_FORMAT.*Install the release"):
        read_record(written(RECORD.to_json(), **more))


def test_states_of_a_later_release() -> None:
    for more in ({"spark_mv_state": FORMAT + 1}, {"to_come": 1}):
        with pytest.raises(RefusedError, match=r"NEWER_FORMAT.*state table"):
            read_state_record(written(StateRecord("1").to_json(), **more))


def test_requests_of_a_later_release() -> None:
    for text in (request_text(ForgetRequest("1", ("a",))), withdrawal_text()):
        with pytest.raises(RefusedError, match=r"NEWER_FORMAT.*request to forget"):
            waiting([written(text, spark_mv_forget=FORMAT + 1)])


def test_tables_beside_the_models() -> None:
    check_table("t", {}, {"A": "string", "b": "bigint"}, {"a": "STRING", "b": "INT", "c": "STRING"})
    check_table("t", {FORMAT_PROPERTY: str(FORMAT)}, {"a": "string"}, {"a": "STRING"})
    for properties, columns in (
        ({FORMAT_PROPERTY: str(FORMAT + 1)}, ["a"]),
        ({FORMAT_PROPERTY: "x"}, ["a"]),
        ({}, ["a", "d"]),
    ):
        with pytest.raises(RefusedError, match=r"NEWER_FORMAT.*t ") as refused:
            check_table("t", properties, dict.fromkeys(columns, "string"), {"a": "STRING"})
        assert ("If somebody has added d to t, drop that" in str(refused.value)) is ("d" in columns)


def test_tables_of_others_beside_the_models() -> None:
    with pytest.raises(RefusedError, match=r"NOT_OURS.*t has the name .*it has no key\)"):
        check_table("t", {}, {"ticket": "int"}, {"key": "STRING"})
    with pytest.raises(RefusedError, match=r"TABLE_CHANGED.*b is int, not string"):
        check_table("t", {}, {"a": "string", "b": "int"}, {"a": "STRING", "b": "STRING"})


def test_tables_for_reading() -> None:
    for rows in ([], [("a", "9")], [(FORMAT_PROPERTY, str(FORMAT))]):
        check_rows("t", rows)
    for value in (str(FORMAT + 1), "x"):
        with pytest.raises(RefusedError, match=r"NEWER_FORMAT.*t is in format"):
            check_rows("t", [("a", "1"), (FORMAT_PROPERTY, value)])


@pytest.mark.parametrize("more", [{"columns": None}, {"where": 1}, {"id": ""}])
def test_requests_that_do_not_say_what_they_ask_for(more: dict[str, object]) -> None:
    with pytest.raises(RefusedError, match=r"FORGET_UNREADABLE.*withdraw: true"):
        waiting([written(request_text(ForgetRequest("1", ("a",))), **more)])
    with pytest.raises(RefusedError, match="FORGET_UNREADABLE"):
        waiting(['{"spark_mv_forget": 1}'])
    assert waiting([written(request_text(ForgetRequest("1", ("a",))), **more), withdrawal_text()]) == ()
