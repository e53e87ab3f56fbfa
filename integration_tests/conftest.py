"""Real Spark for every test here: one Spark per test process, its tables and catalogue in a temporary folder."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from integration_tests.quick_java import QUICK_JAVA
from integration_tests.under_format import FORMAT

from spark_mv.spark.session.iceberg import FORMATS

pytest_plugins = ["dbt.tests.fixtures.project"]

#: tiny data: one task each is quickest. Most statements run once: interpreting them takes a third less time than compiling
#: them. Compiled, as a user has it: quickstart, jaffle_shop and servers, and all with COMPILED=1
COMPILED = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "2g",
}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}
SETTINGS = COMPILED if os.environ.get("COMPILED") else {**COMPILED, **INTERPRETED}

_home = Path(tempfile.gettempdir()) / "dbt-spark-mv-tests"


def pytest_configure(config: pytest.Config) -> None:
    global _home
    _home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-tests-"))


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_home, ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> str:
    names = ("dbt-core", "dbt-spark", "dbt-tests-adapter", "pyspark", "sqlglot")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} -")
    return "engines: " + ", ".join(found)


_LATER = (
    r"adapter/.*::TestUniqueKey::test__(bad|duplicated|empty|trinary|unary)",
    r"adapter/.*::TestSimpleSnapshot::test_(new_column|revives|updates)",
    r"adapter/.*::Test(SnapshotCheckCols|Concurrency)::|adapter/.*::TestClonePossible::test_can_clone_true",
    r"adapter/.*::Test(StoreTestFailuresLimit|ShowLimit|Predicates|CachingSelected|DocsGenReferences|SampleMode)",
    r"ai/test_payments.*::test_(a_text_is_paid_once|after_the_endpoint_died)\w*\[executors",
    r"ai/test_payments.*::test_(every_input_ends|the_key_is_nowhere)\w*\[auto",
    r"ai/test_payments.*::test_a_chunk_ends\w*\[window1",
    r"ai/test_near.*::test_one_of_them",
    r"ai/test_groups.*::test_having_under_keys",
    r"ai/test_policies.*::test_budgets_of_tokens\w*\[executors",
    r"ai/test_policies.*::test_(pruning_leaves|a_wrong_address|the_oldest_answers\w*\[executors|errors_wait\w*\[executors)",
    r"macro_only/test_quickstart_model.*::test_by_turns",
    r"iceberg/test_aside.*(spark.wap.id|tag_t|tables_of_metadata)",
    r"iceberg/test_branches.*::test_(of_two_that_make_it_anew|a_branch_that_was_dropped)",
    r"iceberg/test_standard_suite.*::Test(AnotherType|MergeExcludeColumns)",
    r"iceberg/test_targets.*::Test(AnotherTable|WhatIsSaidOfIt)",
    r"incremental/test_erased_rows.*::test_a_row_that_waits",
    r"incremental/test_sealed_views.*::test_(names_of_one_zone|spark_can_be_told|the_same_text|a_temporary_view$)",
    r"incremental/test_state.*::test_a_sample_outlives_a_change_of_its_key",
    r"incremental/test_strategies.*::test_rows_that_are_gone_beside_replaced_ones\[(concat\('key|date|cast\(id as decimal|timestamp)",
    r"incremental/test_strategies.*::test_rows_of_a_key_of_two_columns_that_are_gone\[(cast\(id % 3 as (decimal|small)|date)",
    r"incremental/test_strategies.*::test_conditions_that_replace_where_cannot_take\[d >= (date_sub|current_timestamp\(\) - interval 30 hours\])",
    r"incremental/test_strategies.*::test_a_small_table_is_written_whole\[true",
    r"incremental/test_user_texts.*(config1|test_rows_that_go_and_rows_that_change\[true)",
    r"incremental/test_strategies.*::test_rows_of_a_key_of_two_columns_that_are_gone\[cast\(id % 3 as string",
    r"incremental/test_strategies.*::test_(a_window_above_a_view|groups_that_are_staged_at_once|nor_is_one_in_each_arm)",
    r"incremental/test_sampled_rows.*::test_rows_that_are_still_to_enter\[(between|from)",
    r"incremental/test_one_statement.*::test_keys_of_a_large_table_are_asked_by_the_next_run\[True",
    r"incremental/test_one_statement.*::test_rows_that_may_not_be_written\[(key3|k-select if\(id > 7)",
    r"incremental/test_kept_columns.*::(TestSampleOfGroups|test_a_column_that_somebody_adds\w*\[publish)",
    r"incremental/test_kept_columns.*::test_(keys_that_become_one\w*\[string|kept_values_whose_column\w*\[drop column r-add)",
    r"incremental/test_kept_columns.*::test_the_sign_of_a_zero\[(full-double|incremental-float)",
    r"incremental/test_evicted.*::test_(groups_that_leave|above_a_view)",
    r"incremental/test_oracle.*::test_every_table_equals_the_recompute\[16\]",
    r"incremental/test_user_texts_and_clocks.*::test_local_times_where_clocks_are_set\[select id, z, z < now",
    r"incremental/test_sampled_rows.*::test_remembered_rows_behind_runs\w*\[uuid",
    r"incremental/test_shared_changes.*::test_a_failure_that_only_sharing_has\[take",
    r"incremental/test_source_kinds.*::test_they_are_read_by_these_names\[id, id",
    r"materialization/test_ai_columns.*::test_(what_means_the_same|another_model_keeps)",
    r"materialization/test_ai_prompts.*::test_a_literal_moves",
    r"materialization/test_ai_upkeep.*::test_who_shows_an_answer",
    r"materialization/test_foreign_writes.*::test_where_the_version_of_ours_is_gone",
    r"materialization/test_ai_errors.*::(Test(KeepOld|Budget)|TestFrozenAnswers::test_nothing_is_asked\w*\[full)",
    r"materialization/test_ai_salt.*::TestSalted",
    r"materialization/test_audit.*::test_nothing_is_found\[(APPEND_ONLY|GROUP|WINDOW_FUNCTION|COMPLETE)",
    r"materialization/test_audit.*::test_(a_row_twice|matches_recompute)",
    r"materialization/test_freeze_where.*::test_the_window_takes",
    r"materialization/test_headers.*::test_a_session_that_is_not",
    r"materialization/test_time_zones.*::TestTokyo",
    r"materialization/test_types.*::test_changes_are_seen\[full",
    r"materialization/test_views_and_draws.*::Test(DrawsBelow|Sample)",
    r"materialization/test_second_reading.*::test_answers_that_are_no_more_known",
    r"materialization/test_windows.*::(TestRemembered|TestWindow::test_past)",
    r"materialization/test_row_limit.*::test_evictions_count",
    r"materialization/test_report.*::test_explain_and_doctor",
)
"""Tests whose kin run at each change: once a week (`-m slow`), so that two cores have run what is left within the hour."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    later = re.compile("|".join(_LATER))
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if later.search(item.nodeid):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def warehouse() -> Path:
    """The folder of this test run's tables and catalogue."""
    return _home / "warehouse"


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: Path) -> dict[str, Any]:
    return {
        "type": "spark_mv",
        "method": "session",
        "warehouse": str(warehouse),
        "threads": 2,
        "run_history": False,
        "choose_by": "rows",  # the same strategy on any machine, whatever the table's size
        "second_reading": False,  # statements are counted; test_second_reading.py has it on
        **({} if FORMAT == "delta" else {"formats": ["delta", FORMAT], "file_format": FORMAT}),
        "spark_config": dict(SETTINGS),
    }


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[Any]:
    """A session of the shared Spark, for tests that use no dbt. The same tables are seen by dbt's connections."""
    from spark_mv.spark.session.session import open_session

    formats = {} if FORMAT == "delta" else {FORMATS: f"delta,{FORMAT}"}
    yield open_session({**SETTINGS, **formats}, warehouse, _home / "spark.log")
