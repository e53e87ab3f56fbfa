"""Model contracts and constraints."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import run_dbt


def _spark(yml: str) -> str:
    return yml.replace("text", "string").replace('"from"', "from")


SCHEMA = _spark(fixtures.model_schema_yml)
FK_SCHEMA = _spark(fixtures.model_fk_constraint_schema_yml)
MODEL_CONSTRAINTS = _spark(fixtures.constrained_model_schema_yml)


class _Types:
    """Types in Spark's words; the last of three is how an error message calls the type."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def schema_string_type(self) -> str:
        return "string"

    @pytest.fixture
    def schema_int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> Any:
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["array('1','2','3')", "array<string>", "array<string>"],
            ["cast('2019-01-01' as date)", "date", "date"],
            ["cast('2019-01-01' as timestamp)", "timestamp", "timestamp"],
            ["cast(1.0 as decimal(4,2))", "decimal(4,2)", "decimal(4,2)"],
        ]


class TestTableConstraintsColumnsEqual(_Types, BaseTableConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_wrong_name_sql,
            "constraints_schema.yml": SCHEMA,
        }


class TestViewConstraintsColumnsEqual(_Types, BaseViewConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_view_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_view_wrong_name_sql,
            "constraints_schema.yml": SCHEMA,
        }


class TestIncrementalConstraintsColumnsEqual(_Types, BaseIncrementalConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_incremental_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_incremental_wrong_name_sql,
            "constraints_schema.yml": SCHEMA,
        }


# the table is there with its constraints when this statement runs
_EXPECTED = """
insert into <model_identifier>
select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day ) as model_subq
"""


class TestTableConstraintsDdlEnforcement(BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": FK_SCHEMA,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _EXPECTED


class TestIncrementalConstraintsDdlEnforcement(BaseIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model.sql": fixtures.my_model_incremental_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": FK_SCHEMA,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _EXPECTED


class TestModelConstraintsRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": MODEL_CONSTRAINTS,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _EXPECTED


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql.replace('"from"', "`from`"),
            "constraints_schema.yml": fixtures.model_quoted_column_schema_yml.replace("text", "string").replace(
                '"from"', "`from`"
            ),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
insert into <model_identifier>
select id, `from`, date_day from (
    select 'blue' as `from`, 1 as id, '2019-01-01' as date_day ) as model_subq
"""


class _Violations:
    """The suite's NULL breaks NOT NULL and CHECK at once; which of them Delta names first is its own affair."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> Any:
        return ["DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"]

    def assert_expected_error_messages(self, error_message: str, expected_error_messages: Any) -> None:
        assert any(message in error_message for message in expected_error_messages)

    @pytest.fixture(scope="class")
    def expected_color(self) -> str:
        return "blue"  # the old rows stay


class TestTableConstraintsRollback(_Violations, BaseConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {"my_model.sql": fixtures.my_model_sql, "constraints_schema.yml": SCHEMA}


class TestIncrementalConstraintsRollback(_Violations, BaseIncrementalConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {"my_model.sql": fixtures.my_incremental_model_sql, "constraints_schema.yml": SCHEMA}


class _Header:
    """The header is a statement of its own, before the query, when the contract is checked and when the table is made."""

    materialized = "table"

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "my_model_contract_sql_header.sql": _HEADER % self.materialized,
            "next.sql": "{{ config(materialized='table') }}\n"
            "-- {{ ref('my_model_contract_sql_header') }}\nselect current_timezone() as zone",
            "constraints_schema.yml": _spark(fixtures.model_contract_header_schema_yml),
        }

    def test__contract_sql_header(self, project: Any) -> None:
        super().test__contract_sql_header(project)  # type: ignore[misc]
        rows = project.run_sql("select column_name from {schema}.my_model_contract_sql_header", fetch="all")
        assert {row[0] for row in rows} == {"Asia/Kolkata"}

    def test_the_header_holds_for_its_own_model(self, project: Any) -> None:
        run_dbt(["build", "--threads", "1"])
        rows = project.run_sql("select zone from {schema}.next", fetch="all")
        assert [row[0] for row in rows] != ["Asia/Kolkata"]


_HEADER = """
{{ config(materialized = "%s", on_schema_change = "append_new_columns") }}
{%% call set_sql_header(config) %%}
set time zone 'Asia/Kolkata';
{%%- endcall %%}
select current_timezone() as column_name
"""


class TestTableContractSqlHeader(_Header, BaseTableContractSqlHeader):
    pass


class TestIncrementalContractSqlHeader(_Header, BaseIncrementalContractSqlHeader):
    materialized = "incremental"


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    @pytest.fixture(scope="class")
    def macros(self) -> Any:
        return {
            "create_table.sql": "{% macro create_table_macro() %}create table if not exists numbers (n int){% endmacro %}"
        }


class TestChecks:
    """CHECK and NOT NULL hold for a first run, a run under the same contract, and one under a changed contract."""

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "checked.sql": """
{{ config(materialized='table') }}
select {{ var('id', 1) }} as id, cast({{ var('name', "'a'") }} as string) as name
""",
            "schema.yml": """
models:
  - name: checked
    config: {contract: {enforced: true}}
    constraints: [{type: check, name: positive, expression: "id > {{ var('least', 0) }}"}]
    columns:
      - {name: id, data_type: int, constraints: [{type: not_null}]}
      - {name: name, data_type: string, constraints: [{type: check, expression: "length(name) > 0"}]}
""",
        }

    def rows(self, project: Any) -> Any:
        return [tuple(row) for row in project.run_sql("select id, name from {schema}.checked", fetch="all")]

    def test_checks(self, project: Any) -> None:
        run = ["run", "--vars"]
        (first,) = run_dbt([*run, "{id: 0}"], expect_pass=False)
        assert "positive" in first.message
        assert project.run_sql("show tables in {schema}", fetch="all") == []
        run_dbt(["run"])
        assert self.rows(project) == [(1, "a")]
        for bad in ("{id: -1}", "{id: null}", "{name: \"''\"}", "{id: 2, least: 5}"):
            run_dbt([*run, bad], expect_pass=False)
            assert self.rows(project) == [(1, "a")], bad
        run_dbt([*run, "{id: 7, least: 5}"])
        assert self.rows(project) == [(7, "a")]
        described = project.run_sql("describe history {schema}.checked limit 1", fetch="one")
        assert described["operation"] in ("WRITE", "CREATE OR REPLACE TABLE")
