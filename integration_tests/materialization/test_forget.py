"""forget_values: a request is checked when it is said, can be withdrawn, and never stops a model."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from integration_tests.under_format import FORMAT

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, name, rand() as split, uuid() as row_id from {{ target.schema }}.src
"""


class TestForget:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    def test_a_request_is_checked_when_it_is_said(self, project: Any, mv: Any, sql: Any, operation: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, concat('n', id) as name from range(20)")
        mv.run()
        before, version = mv.by_id("split, row_id"), mv.version()

        def forget(where: str, *columns: str, expect_pass: bool = True) -> str:
            args = {"model": "mv", "columns": columns or ["split"], "where": where}
            return str(operation("forget_values", args, expect_pass=expect_pass))

        for where, word in (
            ("idd < 5", "idd"),
            ("id < ", "where"),
            ("rand() < 0.5", "rand"),
            ("id in (select 1)", "subquery"),
            ("raise_error(name) is null", "cannot be evaluated"),
            ("true) or (true", "where"),
        ):
            assert word in forget(where, expect_pass=False), where
        assert mv.version() == version
        # conditions with comments, OR, and the clock (which is read when the request is made)
        said = forget("id < 2 or id = 7 and current_date() > date'2020-01-01' -- bad ones")
        assert "3 rows" in said
        mv.run()
        after = mv.by_id("split, row_id")
        assert {k for k in before if before[k] != after[k]} == {0, 1, 7}

        # withdrawn
        operation("forget_values", {"model": "mv", "columns": ["split"]})
        assert "1 request" in operation("forget_values", {"model": "mv", "withdraw": True})
        assert mv.run()["strategy"] == "NO_OP"

        # of a table that somebody else has changed, the next run takes the rows as they were
        sql("update {schema}.mv set name = 'mine' where id = 3")
        said = forget("name = 'mine'")
        assert "1 rows now; the table has changes of others, which the next run undoes first" in said
        mv.run()
        assert mv.by_id("split, row_id") == after
        assert mv.run()["strategy"] == "NO_OP"

        # a request that became impossible since does not stop the model, and says so
        forget("name = 'n1'")
        forget("id = 2", "row_id")
        write_file(MODEL.replace("name, rand() as split", "rand() as other"), project.project_root, "models", "mv.sql")
        assert "split" in " ".join(mv.run()["notes"])
        assert {k for k, v in mv.by_id("row_id").items() if v[0] != after[k][1]} == {2}
        forget("id < 2", "other")
        if FORMAT == "delta":
            sql("alter table {schema}.mv set tblproperties ('delta.columnMapping.mode' = 'name')")
        # and one that waits outlives what stops the model
        sql("alter table {schema}.mv rename column id to no")
        assert "[KEPT_COLUMN_GONE]" in run_dbt(["run"], expect_pass=False)[0].message
        sql("alter table {schema}.mv rename column no to id")
        others = mv.by_id("other")
        mv.run()
        assert {k for k, v in mv.by_id("other").items() if v != others[k]} == {0, 1}
        assert mv.run()["strategy"] == "NO_OP"
