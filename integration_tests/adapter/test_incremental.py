"""Incremental models: every strategy, predicates, changed schemas, microbatches."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import check_relations_equal, run_dbt

MERGE = {"models": {"+incremental_strategy": "merge"}}

_TWO_ROUNDS = """
{{ config(materialized='incremental', %s) }}
{%% if not is_incremental() %%}
select cast(1 as bigint) as id, 'hello' as msg, 'blue' as color
union all select cast(2 as bigint), 'goodbye', 'red'
{%% else %%}
select cast(2 as bigint) as id, 'yo' as msg, 'green' as color
union all select cast(3 as bigint), 'anyway', 'purple'
{%% endif %%}
"""


class TestUniqueKey(BaseIncrementalUniqueKey):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return MERGE


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return MERGE


_PREDICATES = """
{{ config(materialized='incremental', unique_key='id') }}
{% if not is_incremental() %}
select cast(1 as bigint) as id, 'hello' as msg, 'blue' as color
union all select cast(2 as bigint), 'goodbye', 'red'
{% else %}
-- the predicate hides row 2 of the target, so that the new one is inserted beside it
select cast(1 as bigint) as id, 'hey' as msg, 'blue' as color
union all select cast(2 as bigint), 'yo', 'green'
union all select cast(3 as bigint), 'anyway', 'purple'
{% endif %}
"""


class TestIncrementalPredicates(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {
            "models": {"+incremental_predicates": ["dbt_internal_dest.id != 2"], "+incremental_strategy": "merge"},
        }

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {"delete_insert_incremental_predicates.sql": _PREDICATES}


class TestPredicates(TestIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {"models": {"+predicates": ["dbt_internal_dest.id != 2"], "+incremental_strategy": "merge"}}


class TestOnSchemaChange(BaseIncrementalOnSchemaChange):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {"models": {"+incremental_strategy": "merge", "+unique_key": "id"}}


class TestMicrobatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        return """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='event_time', batch_size='day',
    begin=modules.datetime.datetime(2020, 1, 1, 0, 0, 0), partition_by=['date_day']
) }}
select *, cast(event_time as date) as date_day from {{ ref('input_model') }}
"""


class TestStrategies:
    """append, merge without and with a key, merge of some columns, insert_overwrite of all and of some partitions."""

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "appended.sql": _TWO_ROUNDS % "incremental_strategy='append'",
            "appended_by_default.sql": _TWO_ROUNDS % "",
            "merged_without_key.sql": _TWO_ROUNDS % "incremental_strategy='merge'",
            "merged.sql": _TWO_ROUNDS % "incremental_strategy='merge', unique_key='id'",
            "merged_some.sql": _TWO_ROUNDS
            % "incremental_strategy='merge', unique_key='id', merge_update_columns=['msg']",
            "overwritten.sql": _TWO_ROUNDS % "incremental_strategy='insert_overwrite'",
            "overwritten_partitions.sql": _TWO_ROUNDS % "incremental_strategy='insert_overwrite', partition_by=['id']",
            "parquet_overwritten_partitions.sql": _TWO_ROUNDS
            % "incremental_strategy='insert_overwrite', partition_by=['id'], file_format='parquet'",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> Any:
        head = "id,msg,color\n"
        return {
            "expected_append.csv": head + "1,hello,blue\n2,goodbye,red\n2,yo,green\n3,anyway,purple\n",
            "expected_upsert.csv": head + "1,hello,blue\n2,yo,green\n3,anyway,purple\n",
            "expected_some.csv": head + "1,hello,blue\n2,yo,red\n3,anyway,purple\n",
            "expected_overwrite.csv": head + "2,yo,green\n3,anyway,purple\n",
        }

    def test_strategies(self, project: Any) -> None:
        run_dbt(["seed"])
        run_dbt(["run"])
        run_dbt(["run"])
        check_relations_equal(
            project.adapter, ["expected_append", "appended", "appended_by_default", "merged_without_key"]
        )
        check_relations_equal(project.adapter, ["expected_upsert", "merged", "overwritten_partitions"])
        columns = "id, msg, color"
        rows = project.run_sql(f"select {columns} from {{schema}}.parquet_overwritten_partitions", fetch="all")
        assert sorted(tuple(row) for row in rows) == [
            (1, "hello", "blue"),
            (2, "yo", "green"),
            (3, "anyway", "purple"),
        ]
        check_relations_equal(project.adapter, ["expected_some", "merged_some"])
        check_relations_equal(project.adapter, ["expected_overwrite", "overwritten"])


class TestBadStrategies:
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "bad_file_format.sql": _TWO_ROUNDS % "file_format='something_else'",
            "bad_merge.sql": _TWO_ROUNDS % "incremental_strategy='merge', file_format='parquet'",
            "bad_strategy.sql": _TWO_ROUNDS % "incremental_strategy='something_else'",
        }

    def test_bad_strategies(self, project: Any) -> None:
        results = run_dbt(["run"], expect_pass=False)
        assert [result.status for result in results] == ["error"] * 3
        assert all("Compilation Error in model" in result.message for result in results)


class TestSpecialNames:
    """Keywords, dashes, blanks and dots as names of columns, in a first, a merging and a widening run."""

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "odd_names.sql": """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='append_new_columns',
          tblproperties={'delta.columnMapping.mode': 'name'}) }}
select 1 as id, 'a' as `select`, 2 as `with-dash`, 3 as `two words`, 4 as `a.b`
{% if is_incremental() %}, 5 as `new-one` union all select 2, 'b', 3, 4, 5, 6{% endif %}
""",
            "left.sql": "{{ config(materialized='table') }} select * except (`two words`) from {{ ref('odd_names') }}",
            "schema.yml": """
models:
  - name: odd_names
    config: {persist_docs: {columns: true}}
    columns: [{name: two words, description: "it's \\"two\\" \\\\ words"}]
""",
        }

    def test_odd_names(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        rows = project.run_sql("select id, `a.b`, `new-one` from {schema}.`left`", fetch="all")
        assert sorted(tuple(row) for row in rows) == [(1, 4, 5), (2, 5, 6)]
        described = project.run_sql("describe {schema}.odd_names", fetch="all")
        assert ("two words", 'it\'s "two" \\ words') in [(row[0], row[2]) for row in described]
