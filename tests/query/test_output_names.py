"""Names of columns without an alias are Spark's, as far as they follow from the text and the types of columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

FIXTURE = Path(__file__).parent / "fixtures" / "output_names.txt"
TABLES = {
    "orders": {
        "id": "bigint",
        "customer_id": "bigint",
        "status": "string",
        "amount": "decimal(10,2)",
        "created_at": "timestamp",
        "order_date": "date",
        "updated_at": "timestamp",
        "note": "string",
        "tags": "array<string>",
        "attrs": "map<string,string>",
        "address": "struct<city:string,zip:string,geo:struct<lat:double,lon:double>>",
        "local_ts": "timestamp_ntz",
        "qty": "int",
        "expires": "date",
        "ttl_days": "int",
        "payload": "string",
        "epoch": "bigint",
        "epoch_ms": "bigint",
        "starts_at": "timestamp",
        "ends_at": "timestamp",
        "lines": "array<struct<sku:string,price:double,n:int>>",
    },
    "events": {
        "id": "bigint",
        "user_id": "bigint",
        "kind": "string",
        "ts": "timestamp",
        "props": "map<string,string>",
        "day": "date",
        "v": "variant",
    },
}


def cases() -> Iterator[tuple[str, list[str]]]:
    """(statement, names) per case of the fixture."""
    for block in FIXTURE.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines[0], [line.removeprefix("    ") for line in lines[1:]]


@pytest.mark.parametrize(("sql", "names"), list(cases()))
def test_names(sql: str, names: list[str]) -> None:
    found = [column.name for column in analyze(sql, schemas=TABLES).columns]
    assert [name.lower() for name in found] == [name.lower() for name in names]


WORDS = [
    "alter", "call", "cache", "comment", "commit", "copy", "create", "describe", "drop", "execute", "explain", "grant", "insert", "kill",
    "load", "merge", "optimize", "refresh", "revoke", "rollback", "set", "show", "truncate", "uncache", "use",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_begins_a_command_is_a_name_in_a_query(word: str) -> None:
    """As Spark has it. A package of Fivetran's calls a CTE `comment`."""
    schemas = {"t": {"id": "int", word: "int"}}
    alias = "d" if word == "describe" else word
    for sql in (
        f"select {word}, id from t",
        f"select {alias}.{word}, {alias}.id from t as {alias} where {alias}.{word} > 1",
        f"with {alias} as (select * from t) select {alias}.{word}, {alias}.id from {alias} group by 1, 2",
    ):
        found = analyze(sql, schemas=schemas, unique_key=("id",))
        assert ([column.name for column in found.columns], found.errors) == ([word, "id"], ()), sql
