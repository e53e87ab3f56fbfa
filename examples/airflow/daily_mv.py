"""Airflow DAG: `dbt run` once a day, as of the end of the day's data interval.

What it is for: a `nondeterministic_mv` model is a function of its sources, its kept values and one instant, the as-of
instant. Without `--vars as_of` that instant is the moment at which the run happens to start. Here it is the end of the
data interval, so that a retry, a late run or a run of a day in the past (backfill) gives the rows of the day it is for.

How to use it:
  1. Copy this file into Airflow's dags folder. It uses the BashOperator of Airflow 2.4 and newer, and of Airflow 3.
  2. dbt with dbt-spark-mv must be on the worker, best in an environment of its own: its `dbt` is DBT below.
  3. PROJECT is the folder of your dbt_project.yml and profiles.yml. Both may be said by the environment, or here.

What the settings below are for:
  - `data_interval_end | ts` is an ISO timestamp with its offset, e.g. 2026-03-02T06:00:00+00:00, which as_of
    takes as it is. (Airflow 3 gives a cron schedule an interval without length; its end is the same instant. A run
    triggered by hand without a logical date has no interval: give it a logical date.)
  - max_active_runs=1: the embedded session (`method: session`) serves one process at a time, and the days of a model
    must follow each other. Over `spark-mv serve` or against a cluster two runs of one model are safe, but one of them is wasted.
  - catchup=False: a table maintained up to today contains what the missed days would have brought. With catchup=True
    the missed days are played one by one, oldest first: today's sources seen at each day's clock.
  - retries: a run that failed or was killed left the table as it was, and the AI answers that came are kept. So it
    is simply run again.

A slow test of the project runs this file as it is by `airflow dags test`, with the Airflow of constraints.txt beside it.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

try:  # Airflow 3
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG
except ImportError:  # Airflow 2
    from airflow import DAG
    from airflow.operators.bash import BashOperator

DBT = os.environ.get("DBT", "/opt/dbt/bin/dbt")
PROJECT = os.environ.get("DBT_PROJECT", "/opt/dbt/my_project")

with DAG(
    dag_id="daily_mv",
    description="dbt run as of the end of each day's data interval",
    schedule="0 6 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
):
    BashOperator(
        task_id="dbt_run",
        cwd=PROJECT,
        bash_command=f"""{DBT} run --vars '{{as_of: "{{{{ data_interval_end | ts }}}}"}}'""",
    )
