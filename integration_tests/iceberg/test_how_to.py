"""The model of the page about Iceberg, as it stands there: its table, what it keeps, and what leaves."""

from __future__ import annotations

from typing import Any

import pytest
from blocks import ROOT, blocks
from dbt.tests.util import run_dbt

(MODEL,) = blocks("sql", (ROOT / "docs" / "how-to" / "iceberg.md",))
ORDERS = """
{{ config(materialized='table', file_format='iceberg') }}
select id as order_id, 'new' as status, timestamp'2026-02-20 08:00:00' + make_dt_interval(cast(id as int)) as ordered_at from range(9)
"""


class TestHowTo:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "recent_orders.sql": MODEL.text}

    def test_the_model_of_the_page(self, project: Any, mv: Any, sql: Any) -> None:
        mv.name = MODEL.title.rpartition("/")[2].removesuffix(".sql")
        run_dbt(["run", "--select", "orders"])
        assert mv.run("2026-03-01 06:00:00")["rows_inserted"] == 9
        tokens = {row[0]: row[1] for row in sql("select order_id, order_token from {schema}.recent_orders")}
        sql("insert into {schema}.orders values (100, 'new', timestamp'2026-03-22 00:00:00')")
        done = mv.run("2026-03-23 12:00:00")
        assert (done["rows_inserted"], done["rows_deleted"]) == (1, 2)
        after = {row[0]: row[1] for row in sql("select order_id, order_token from {schema}.recent_orders")}
        assert set(after) == {*range(2, 9), 100} and all(after[key] == tokens[key] for key in range(2, 9))
        provider = sql("describe table extended {schema}.recent_orders")
        assert "iceberg" in {row[1] for row in provider if row[0] == "Provider"}
