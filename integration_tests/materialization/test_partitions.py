"""Partitions that all rows leave, under the mode in which an overwrite leaves such partitions alone."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.under_format import delta_only

DYNAMIC = """
{{{{ config(materialized='nondeterministic_mv', unique_key='id', partition_by='part',
    sql_header="set spark.sql.sources.partitionOverwriteMode = dynamic" {more}) }}}}
select id, part, rand() as r, row_number() over (order by v, id) as n from {{{{ target.schema }}}}.src
"""


CONTRACTED = """
{{ config(materialized='table', partition_by='part', contract={'enforced': true},
    pre_hook='set spark.sql.sources.partitionOverwriteMode = dynamic', post_hook='reset spark.sql.sources.partitionOverwriteMode') }}
select id, part from {{ target.schema }}.src
"""
CONTRACT = """
models:
  - name: contracted
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: part, data_type: bigint}
"""


@delta_only("REPLACE WHERE and REPLACE USING")
class TestDynamicOverwrite:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "mv.sql": DYNAMIC.format(more=""),
            "contracted.sql": CONTRACTED,
            "contracted.yml": CONTRACT,
            "fed.sql": DYNAMIC.format(more=", tblproperties={'delta.enableChangeDataFeed': 'true'}"),
        }

    @pytest.mark.parametrize("name", ["mv", "fed"])
    def test_rows_that_go_are_gone(self, project: Any, mv: Any, sql: Any, name: str) -> None:
        mv.name = name
        sql("create or replace table {schema}.src using delta as select id, id % 3 as part, id as v from range(30)")
        mv.run()
        drawn = mv.by_id("r")
        sql("delete from {schema}.src where part = 1")
        assert mv.run()["rows_deleted"] == 10
        assert mv.by_id("r") == {key: value for key, value in drawn.items() if key % 3 != 1}

    def test_a_table_under_a_contract_has_the_rows_of_its_query(self, project: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, id % 3 as part, id as v from range(30)")
        run_dbt(["run", "--select", "contracted"])
        sql("delete from {schema}.src where part = 1")
        run_dbt(["run", "--select", "contracted"])
        assert sql("select count(*), count_if(part = 1) from {schema}.contracted") == [(20, 0)]
