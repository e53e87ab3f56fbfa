"""The basic group of the standard adapter suite, catalogue and caching included."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog, no_stats
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.util import run_dbt


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    """dbt-spark checks the strategy's name before dbt looks for a macro of that name."""

    def test_incremental_invalid_strategy(self, project: Any) -> None:
        run_dbt(["seed"])
        (result,) = run_dbt(["run"], expect_pass=False)
        assert "Invalid incremental strategy provided: bad_strategy" in result.message


class TestGenericTests(BaseGenericTests):
    pass


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def current_role(self, project: Any) -> str:
        import getpass

        return getpass.getuser()

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any, current_role: str) -> Any:
        return _catalog_table(project, "my_seed", "table", _PERSON, None, current_role)

    @pytest.fixture(scope="class")
    def expected_catalog_my_table_model(self, project: Any, current_role: str) -> Any:
        columns = dict(_PERSON)
        return _catalog_table(project, "my_table_model", "table", columns, None, current_role)

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any, current_role: str) -> Any:
        columns = dict(_PERSON)
        return _catalog_table(project, "my_view_model", "view", columns, None, current_role)


class _Docs:
    """What a catalogue says on Spark: no database, names in lower case, types in Spark's words."""

    @pytest.fixture(scope="class")
    def owner(self) -> str:
        import getpass

        return getpass.getuser()


class TestDocsGenerate(_Docs, BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, owner: str) -> Any:
        catalog = base_expected_catalog(
            project,
            role=owner,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=no_stats(),
        )
        return _without_database(catalog)


class TestDocsGenReferences(_Docs, BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, owner: str) -> Any:
        catalog = expected_references_catalog(
            project,
            role=owner,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            bigint_type="bigint",
            view_type="view",
            table_type="table",
            model_stats=no_stats(),
        )
        return _without_database(catalog)


class TestCatalogRelationTypes(CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> Any:
        yield {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        "node_name,relation_type",
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


class _CacheWithoutDatabase:
    """The suite compares the relations' databases too, of which Spark has none."""

    def run_and_inspect_cache(self, project: Any, run_args: Any = None) -> None:
        found = []
        for _ in range(2):
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations
            found.append((relation.schema.lower(), relation.identifier.lower()))
        assert found[0] == found[1]
        assert found[0][0] == project.test_schema


class TestCachingLowerCaseModel(_CacheWithoutDatabase, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(_CacheWithoutDatabase, BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(_CacheWithoutDatabase, BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(_CacheWithoutDatabase, BaseNoPopulateCache):
    pass


_PERSON = {"id": "bigint", "first_name": "string", "email": "string", "ip_address": "string", "updated_at": "timestamp"}


def _catalog_table(project: Any, name: str, kind: str, columns: dict[str, str], comment: str | None, owner: str) -> Any:
    from dbt.artifacts.schemas.catalog import CatalogTable, ColumnMetadata, TableMetadata

    return CatalogTable(
        metadata=TableMetadata(type=kind, schema=project.test_schema, name=name, comment=comment, owner=owner),
        columns={
            column: ColumnMetadata(type=data_type, index=index, name=column, comment=None)
            for index, (column, data_type) in enumerate(columns.items(), 1)
        },
        stats={},
    )


def _without_database(catalog: dict[str, Any]) -> dict[str, Any]:
    for group in catalog.values():
        for table in group.values():
            table["metadata"]["database"] = None
    return catalog
