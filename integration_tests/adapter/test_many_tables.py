"""A schema with a thousand relations in it costs a run one statement more than an empty one, not a thousand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.adapters.events.types import SQLQuery
from dbt.tests.util import run_dbt
from dbt_common.events.event_catcher import EventCatcher


class TestFewRelations:
    #: views are made quicker than tables; dbt lists both the same way
    views, tables = 6, 4

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {"one.sql": "{{ config(materialized='table') }}\nselect 1 as id"}

    def test_relations_are_listed_by_one_statement(self, project: Any, spark: Any) -> None:
        for number in range(self.views):
            spark.sql(f"create view {project.test_schema}.v{number:04} as select 1 as id")
        for number in range(self.tables):
            spark.sql(f"create table {project.test_schema}.t{number:04} (id int) using parquet")
        queries = EventCatcher(event_to_catch=SQLQuery)
        run_dbt(["run"], callbacks=[queries.catch])
        statements = [
            re.sub(r"/\*.*?\*/", "", event.data.sql, flags=re.S).strip().lower() for event in queries.caught_events
        ]
        listing = [text for text in statements if text.startswith(("show table", "show views", "describe"))]
        assert len(listing) == 1, listing
        assert len(statements) <= 5, statements
        assert len(project.adapter.cache.relations) >= self.views + self.tables


@pytest.mark.slow
class TestThousandRelations(TestFewRelations):
    views, tables = 940, 60
