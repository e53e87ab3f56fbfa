"""The example DAGs, run as they are by Airflow itself in an environment of its own, against projects on a real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.servers.test_serve import Desk

from spark_mv.spark.serve.state import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

EXAMPLES = Path(__file__).parents[2] / "examples" / "airflow"
SHOWN = "select o.id, o.today, t.today as other, o.draw from {{ ref('one') }} o join {{ ref('two') }} t on t.id = o.id order by 1"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `airflow`: of $AIRFLOW_ENVIRONMENT where that is set, else of an environment that is made here, in some minutes."""
    if made := os.environ.get("AIRFLOW_ENVIRONMENT"):
        return Path(made) / "bin" / "airflow"
    home = tmp_path_factory.mktemp("airflow-environment")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = str(EXAMPLES / "constraints.txt")
    subprocess.run([*pip, "--constraint", pins, "apache-airflow", "astronomer-cosmos"], check=True)
    return home / "bin" / "airflow"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "project")
    made.ask("dbt", "seed")
    yield made
    if running(made.warehouse):
        made.ask("spark-mv", "serve", "--stop", "--force")


def test_the_dags_run_as_of_their_interval(airflow: Path, desk: Desk, tmp_path: Path) -> None:
    """A run of the past gives the rows of its day, by one task for all and by a task a model; embedded, and over a server."""
    home = tmp_path / "airflow"
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "DBT": str(Path(sys.executable).with_name("dbt")),
        "DBT_PROJECT": str(desk.folder),
        "DBT_PROFILE": "probe",
        "PATH": os.pathsep.join([str(airflow.parent), os.environ["PATH"]]),
    }
    for name in ("PYTHONPATH", "DBT_PROFILES_DIR", "DBT_LOG_PATH"):
        environment.pop(name, None)

    def run(*words: str, **more: str) -> str:
        command = [str(airflow), *words]
        done = subprocess.run(
            command, env={**environment, **more}, capture_output=True, text=True, timeout=900, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-4000:]
        return said

    def day(number: int, dag: str, **more: str) -> list[dict[str, object]]:
        said = run("dags", "test", dag, f"2026-02-{number:02}T06:00:00+00:00", **more)
        assert "state=success" in said, said[-6000:]
        return list(json.loads(desk.show(SHOWN))["show"])

    run("db", "migrate")
    first = day(1, "daily_mv")
    assert [row["id"] for row in first] == [1, 2, 3]
    second = day(2, "daily_mv_cosmos")
    assert not running(desk.warehouse)
    desk.ask("spark-mv", "serve")
    third = day(3, "daily_mv_cosmos", DBT_SERVED="yes")
    drawn = {row["id"]: row["draw"] for row in first}
    for number, rows in ((1, first), (2, second), (3, third)):
        # the window of three days at that day's clock, in both models
        assert [row["id"] for row in rows] == [1, 2, 3][number - 1 :]
        assert {str(row[column])[:10] for row in rows for column in ("today", "other")} == {f"2026-02-{number:02}"}
        assert all(row["draw"] == drawn[row["id"]] for row in rows)
