"""Airflow DAG made by astronomer-cosmos from a dbt project: a task a model, each as of the end of the day's data interval.

How to use it:
  1. pip install astronomer-cosmos beside Airflow, and copy this file into Airflow's dags folder.
  2. dbt with dbt-spark-mv in an environment of its own: its `dbt` is DBT below. PROJECT is the folder of dbt_project.yml and profiles.yml.

What the settings below are for:
  - ProfileConfig by file: Cosmos knows no mapping from Airflow's connections to `type: spark_mv`, and needs none.
  - `vars` among the operators' arguments is a template, so each task is told the end of its own run's interval. All tasks of a DAG run
    have one as-of instant, though each is an invocation of its own. As vars of the ProjectConfig it would be text that nobody fills in.
  - max_active_tasks=1: each task is a process of dbt, and the embedded session serves one at a time. Over `spark-mv serve`, which saves
    each task the start of Spark, and against a cluster, set SERVED: models that do not need each other then run side by side.
  - InvocationMode.SUBPROCESS: dbt stays in its own environment.
  - LoadMode.DBT_LS reads the project when the DAG is parsed; it starts no Spark. With a manifest from CI, LoadMode.DBT_MANIFEST.

A slow test of the project runs this file as it is by `airflow dags test`, with the Airflow and the Cosmos of constraints.txt beside it.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from cosmos import DbtDag, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import InvocationMode, LoadMode, TestBehavior

DBT = os.environ.get("DBT", "/opt/dbt/bin/dbt")
PROJECT = Path(os.environ.get("DBT_PROJECT", "/opt/dbt/my_project"))
PROFILE, TARGET = os.environ.get("DBT_PROFILE", "my_project"), os.environ.get("DBT_TARGET", "dev")
SERVED = os.environ.get("DBT_SERVED") == "yes"

daily_mv_cosmos = DbtDag(
    dag_id="daily_mv_cosmos",
    description="a task a model, as of the end of each day's data interval",
    schedule="0 6 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    max_active_tasks=4 if SERVED else 1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    project_config=ProjectConfig(PROJECT, install_dbt_deps=False),
    profile_config=ProfileConfig(
        profile_name=PROFILE, target_name=TARGET, profiles_yml_filepath=PROJECT / "profiles.yml"
    ),
    execution_config=ExecutionConfig(dbt_executable_path=DBT, invocation_mode=InvocationMode.SUBPROCESS),
    render_config=RenderConfig(
        load_method=LoadMode.DBT_LS,
        dbt_executable_path=DBT,
        invocation_mode=InvocationMode.SUBPROCESS,
        test_behavior=TestBehavior.AFTER_EACH,
    ),
    operator_args={"vars": {"as_of": "{{ data_interval_end | ts }}"}, "install_deps": False},
)
