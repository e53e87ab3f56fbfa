"""A model that changes its materialization: from each of table, view, incremental and nondeterministic_mv to each other."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

KINDS = ("table", "view", "incremental", "nondeterministic_mv")

_BEFORE = "{{{{ config(materialized='{kind}', unique_key='id') }}}}\nselect 1 as id, 'old' as word"
_AFTER = """
{{{{ config(materialized='{kind}', unique_key='id') }}}}
select id, 'new' as word from values (1), (2) as t (id)
"""


class TestSwitching:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        return {"models": {"+incremental_strategy": "merge"}}  # dbt-spark's default appends, whatever the key

    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {f"{a}_then_{b}.sql": _BEFORE.format(kind=a) for a, b in permutations(KINDS, 2)}

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        rows = project.run_sql(f"select id, word from {{schema}}.{name} order by id", fetch="all")
        return [tuple(row) for row in rows]

    def test_each_way(self, project: Any) -> None:
        names = [f"{a}_then_{b}" for a, b in permutations(KINDS, 2)]
        run_dbt(["run"])
        for name in names:
            assert self.rows(project, name) == [(1, "old")], name
            write_file(_AFTER.format(kind=name.split("_then_")[1]), project.project_root, "models", f"{name}.sql")

        # what another materialization made may hold what no query gives back: it is replaced only when told to
        results = run_dbt(["run"], expect_pass=False)
        refused = {result.node.name: result.message for result in results if result.status == "error"}
        assert set(refused) == {name for name in names if name.endswith("_then_nondeterministic_mv")}
        for name, message in refused.items():
            assert "--full-refresh" in message
            assert self.rows(project, name) == [(1, "old")]
        run_dbt(["run", "--full-refresh", "--select", *refused])

        for name in names:
            assert self.rows(project, name) == [(1, "new"), (2, "new")], name
        with project.adapter.connection_named("_test"):
            relations = project.adapter.list_relations_without_caching(
                project.adapter.Relation.create(schema=project.test_schema)
            )
        views = {relation.identifier for relation in relations if relation.is_view}
        assert views == {name for name in names if name.endswith("_then_view")}
