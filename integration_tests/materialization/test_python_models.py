"""A Python model as nondeterministic_mv: its frame is a source that is read whole, and frozen columns keep their values."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Mv

MODEL = """
from pyspark.sql import functions as f

def model(dbt, session):
    dbt.config(materialized="nondeterministic_mv", unique_key="id", freeze=["drawn", "asked"])
    rows = session.table(f"{dbt.this.schema}.src")
    return rows.withColumn("drawn", f.rand()).withColumn("asked", f.concat(f.lit("answer "), f.uuid()))
"""
PANDAS = """
def model(dbt, session):
    dbt.config(materialized="nondeterministic_mv", unique_key=["a", "b"])
    frame = session.table(f"{dbt.this.schema}.src").toPandas()
    frame["a"], frame["b"] = frame["id"] % 3, frame["id"]
    return frame[["a", "b", "body"]]
"""
TAKEN = """
def model(dbt, session):
    dbt.config(materialized="nondeterministic_mv", unique_key="id")
    return session.table("the_code_ran")
"""


class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "mv.py": MODEL,
            "pandas_mv.py": PANDAS,
            "taken.py": TAKEN,
            "keyless.py": TAKEN.replace(', unique_key="id"', ""),
        }

    def test_rows_come_change_and_go(self, project: Any, mv: Mv, sql: Any, operation: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, concat('text ', id) as body from range(10)")
        assert mv.run()["rows_inserted"] == 10
        before = mv.by_id("drawn, asked")
        assert len(set(before.values())) == 10

        sql("update {schema}.src set body = 'edited' where id = 3")
        sql("delete from {schema}.src where id = 5")
        sql("insert into {schema}.src values (100, 'new')")
        run = mv.run()
        assert (run["rows_inserted"], run["rows_updated"], run["rows_deleted"]) == (1, 1, 1)
        after = mv.by_id("drawn, asked")
        assert {k: v for k, v in after.items() if k != 100} == {k: v for k, v in before.items() if k != 5}
        assert mv.by_id("body")[3] == ("edited",)

        assert mv.run()["rows_affected"] == 0
        assert (
            mv.run("2026-02-01 06:00:00", "--full-refresh")["rows_affected"] >= 0 and mv.by_id("drawn, asked") == after
        )
        assert "freeze" in operation("explain_mv", {"model": "mv"}) or "drawn" in operation(
            "explain_mv", {"model": "mv"}
        )

        pandas = Mv(sql, "pandas_mv")
        assert (pandas.run()["rows_inserted"], pandas.run()["rows_affected"]) == (10, 0)

    def test_what_is_refused_is_refused_before_the_code_runs(self, project: Any, sql: Any) -> None:
        sql("create table {schema}.taken using delta as select 1 as id")
        assert "spark-mv adopt taken" in Mv(sql, "taken").run(expect_pass=False)
        assert "unique_key is missing" in Mv(sql, "keyless").run(expect_pass=False)
