"""Hooks before and after models, seeds, snapshots and whole runs."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
    BaseTestPrePost,
)
from dbt.tests.adapter.hooks.test_model_hooks import TestPrePostModelHooksUnderscores as _Underscores
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks
from dbt.tests.util import run_dbt


def check(ctx: Any, state: str, project: Any) -> None:
    """What the hook saw; the suite asks for the connection details of a PostgreSQL server."""
    assert ctx["test_state"] == state
    assert ctx["target_name"] == "default"
    assert ctx["target_schema"] == project.test_schema
    assert ctx["target_type"] == "spark_mv"
    assert ctx["target_threads"] == 2
    assert ctx["target_pass"] == ""
    assert ctx["run_started_at"]
    assert ctx["invocation_id"]


class _Checked(BaseTestPrePost):
    def check_hooks(self, state: str, project: Any, host: Any = None, count: int = 1) -> None:
        contexts = self.get_ctx_vars(state, count=count, project=project)
        assert len(contexts) == count
        for ctx in contexts:
            check(ctx, state, project)


class TestPrePostModelHooks(_Checked, BasePrePostModelHooks):
    pass


class TestPrePostModelHooksUnderscores(_Checked, _Underscores):
    pass


class TestHookRefs(_Checked, BaseHookRefs):
    pass


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    pass


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    pass


class TestPrePostModelHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostModelHooksInConfig(_Checked, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(_Checked, BasePrePostModelHooksInConfigWithCount):
    pass


class TestPrePostModelHooksInConfigKwargs(_Checked, BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestPrePostRunHooks(BasePrePostRunHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Any:
        schemas = "{% for schema in schemas %}('{{ schema }}'){{ ', ' if not loop.last }}{% endfor %}"
        return {
            "on-run-start": [
                "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.start_hook_order_test (id int)",
                "drop table {{ target.schema }}.start_hook_order_test",
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.end_hook_order_test (id int)",
                "drop table {{ target.schema }}.end_hook_order_test",
                "create table {{ target.schema }}.schemas (schema string)",
                "insert into {{ target.schema }}.schemas (schema) values " + schemas,
            ],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state: str, project: Any, host: Any = None) -> None:
        check(self.get_ctx_vars(state, project), state, project)

    def assert_used_schemas(self, project: Any) -> None:
        rows = project.run_sql(f"select * from {project.test_schema}.schemas", fetch="all")
        assert [row[0] for row in rows] == [project.test_schema]


class TestAfterRunHooks(BaseAfterRunHooks):
    pass


class TestHooksThatCheck:
    """A SELECT in a hook is carried out, though nobody fetches its rows: what it raises fails the model."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        checks = "select assert_true(n < 3, 'too many') from {{ this }}"
        return {
            "good.sql": "{{ config(materialized='table', post_hook=\"" + checks + '") }} select 1 as n',
            "before.sql": "{{ config(materialized='table', pre_hook=\"select raise_error('not today')\") }} select 1 as n",
            "first_of_two.sql": "{{ config(materialized='table', post_hook=\""
            + checks
            + '; select 1") }} select 5 as n',
            "kept.sql": "{{ config(materialized='nondeterministic_mv', unique_key='n', post_hook=\"/* no */ (with a as (select * from {{ this }}) "
            "select assert_true(n < 3, 'too many') from a)\") }} select 5 as n, rand() as r",
        }

    def test_what_they_raise_is_raised(self, project: Any) -> None:
        found = {result.node.name: result for result in run_dbt(["run"], expect_pass=False)}
        assert {name: str(result.status) for name, result in found.items()} == {
            "good": "success", "before": "error", "first_of_two": "error", "kept": "error",
        }  # fmt: skip
        assert "not today" in found["before"].message
        assert all("too many" in found[name].message for name in ("first_of_two", "kept"))
