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
