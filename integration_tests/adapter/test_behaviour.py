"""Aliases, clones, concurrency, debug, `--empty`, ephemeral models, query comments, relations, show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.aliases import fixtures as alias_fixtures
from dbt.tests.adapter.aliases.test_aliases import BaseAliasErrors, BaseAliases, BaseSameAliasDifferentSchemas
from dbt.tests.adapter.column_types.test_column_types import BaseColumnTypes
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseCloneNotPossible,
    BaseClonePossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)
from dbt.tests.adapter.dbt_debug.test_dbt_debug import (
    BaseDebugInvalidProjectPostgres,
    BaseDebugPostgres,
    BaseDebugProfileVariable,
)
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit, BaseShowLimit, BaseShowSqlHeader
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.util import check_relations_equal, run_dbt


class _SparkWords:
    """The suite's macro writes PostgreSQL's ::text where an adapter has no words of its own."""

    @pytest.fixture(scope="class")
    def macros(self) -> Any:
        return {
            "cast.sql": alias_fixtures.MACROS__CAST_SQL,
            "expect_value.sql": alias_fixtures.MACROS__EXPECT_VALUE_SQL,
            "spark.sql": "{% macro spark__string_literal(s) -%} cast('{{ s }}' as string) {%- endmacro %}",
        }


class TestAliases(_SparkWords, BaseAliases):
    pass


class TestAliasErrors(BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(_SparkWords, BaseSameAliasDifferentSchemas):
    pass


class TestColumnTypes(BaseColumnTypes):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "model.sql": """
select cast(1 as smallint) as smallint_col, cast(2 as int) as int_col, cast(3 as bigint) as bigint_col,
    cast(4.0 as float) as real_col, cast(5.0 as double) as double_col, cast(6.0 as decimal(10, 2)) as numeric_col,
    cast('7' as string) as text_col, cast('8' as varchar(20)) as varchar_col
""",
            "schema.yml": """
models:
  - name: model
    data_tests:
      - is_type:
          column_map:
            smallint_col: ['integer', 'number']
            int_col: ['integer', 'number']
            bigint_col: ['integer', 'number']
            real_col: ['float', 'number']
            double_col: ['float', 'number']
            numeric_col: ['numeric', 'number']
            text_col: ['string', 'not number']
            varchar_col: ['string', 'not number']
""",
        }

    def test_run_and_test(self, project: Any) -> None:
        self.run_and_test()


class TestConcurrency(BaseConcurrency):
    pass


class TestClonePossible(BaseClonePossible):
    pass


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    pass


class TestCloneNotPossible(BaseCloneNotPossible):
    """Where a project says that tables cannot be cloned, there are views instead."""


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    pass


class TestDebug(BaseDebugPostgres):
    pass


class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass


class TestDebugProfileVariable(BaseDebugProfileVariable):
    def test_ok(self, project: Any) -> None:
        run_dbt(["debug"])
        assert "ERROR" not in self.capsys.readouterr().out


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "PARSE_SYNTAX_ERROR"


class TestEmpty(BaseTestEmpty):
    pass


class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


@pytest.mark.skip(reason="dbt-core 1.11 has no `dbt seed --empty`")
class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        from dbt.tests.adapter.empty import _models

        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            "alter_column_type.sql": _models.ALTER_COLUMN_TYPE.replace("varchar", "string"),
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
            "alter_relation_add_remove_columns.sql": _models.ALTER_RELATION_ADD_REMOVE_COLUMNS.replace(
                "varchar", "string"
            ),
            "truncate_relation.sql": _models.TRUNCATE_RELATION,
        }


class TestSampleMode(BaseSampleModeTest):
    pass


def _executed(project: Any, model: str) -> str:
    """The model's statement as it was run, without white space and the digits of the test's schema."""
    text = (Path(project.project_root) / "target/run/test/models" / f"{model}.sql").read_text()
    return "".join(re.sub(r"\d+", "", text).split()).replace("`", "")


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        """As in the suite, which compares with PostgreSQL's text of the statement."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        assert _executed(project, "double_dependent").endswith(
            "aswith__dbt__cte__baseas(select*from" + re.sub(r"\d+", "", project.test_schema) + ".seed),"
            "__dbt__cte__base_copyas(select*from__dbt__cte__base)--base_copyjustpullsfrombase.Makesurethelisted"
            "--graphofCTEsallsharethesamedbt_cte__basecteselect*from__dbt__cte__basewheregender='Male'"
            "unionallselect*from__dbt__cte__base_copywheregender='Female'"
        )


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        assert _executed(project, "root_view").endswith(
            "aswith__dbt__cte__ephemeral_level_twoas(select*from"
            + re.sub(r"\d+", "", project.test_schema)
            + ".source_table),__dbt__cte__ephemeralas(select*from__dbt__cte__ephemeral_level_two)"
            "select*from__dbt__cte__ephemeral"
        )


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestQueryComments(BaseQueryComments):
    pass


class TestMacroQueryComments(BaseMacroQueryComments):
    pass


class TestMacroArgsQueryComments(BaseMacroArgsQueryComments):
    pass


class TestMacroInvalidQueryComments(BaseMacroInvalidQueryComments):
    pass


class TestNullQueryComments(BaseNullQueryComments):
    pass


class TestEmptyQueryComments(BaseEmptyQueryComments):
    pass


class TestChangeRelationTypes(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestSimpleCopy(SimpleCopyBase):
    @pytest.mark.skip(reason="Spark has materialized views in declarative pipelines only")
    def test_simple_copy_with_materialized_views(self, project: Any) -> None:
        pass


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: Any) -> Any:
        return dbt_profile_target  # ours, where the suite has a server's


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    def test_dbt_doesnt_run_empty_models(self, project: Any) -> None:
        """As in the suite, which asks PostgreSQL's information_schema."""
        assert len(run_dbt(["seed"])) == 1
        assert len(run_dbt()) == 7
        names = {row[1] for row in project.run_sql(f"show tables in {project.test_schema}", fetch="all")}
        assert names and not names & {"empty", "disabled"}
