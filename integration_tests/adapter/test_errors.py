"""What goes wrong in Spark and Delta reaches the user as a sentence; Ctrl-C ends a run that would take hours."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from spark_mv.spark.session.session import SessionError, other_catalogue

#: signs of a stack trace or of what lies between Python and Java
NOISE = (
    "\tat ",
    "JVM stacktrace",
    "py4j",
    "Py4J",
    "Traceback",
    "Cannot find main error class",
    "An error occurred while",
)

_TWICE = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select 1 as id, 'a' as word {% if is_incremental() %} union all select 1, 'b' {% endif %}
"""


def test_a_process_has_one_catalogue(spark: Any, warehouse: Path, tmp_path: Path) -> None:
    """Another project, or target, in the same process would have written into the tables of the first."""
    assert other_catalogue({}, warehouse, "of_one") == ""
    assert "tables are made there, and not in" in other_catalogue({}, tmp_path / "other", "of_another")
    assert other_catalogue({}, warehouse, "of_one") == ""
    for path, schema in ((tmp_path / "other", "OF_ONE"), (tmp_path / "third", "of_another"), (warehouse, "of_another")):
        with pytest.raises(SessionError, match=r"belongs to a profile with the catalogue .*, and a process has one"):
            other_catalogue({}, path, schema)


class TestReadableErrors:
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {
            "unknown_column.sql": "{{ config(materialized='table') }}\nselect amount from (select 1 as amout)",
            "unknown_table.sql": "select * from nowhere.nothing",
            "raises.sql": "{{ config(materialized='table') }}\nselect cast(raise_error('out of jaffles') as int) as a from range(3)",
            "two_rows_for_one.sql": _TWICE,
            "wrong_type.sql": "{{ config(materialized='table', tblproperties={'delta.appendOnly': 'perhaps'}) }}\nselect 1 as a",
        }

    @pytest.fixture(scope="class")
    def messages(self, project: Any) -> Any:
        run_dbt(["run", "--select", "two_rows_for_one"])
        results = run_dbt(["run"], expect_pass=False)
        return {result.node.name: result.message for result in results}

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            ("unknown_column", ["[UNRESOLVED_COLUMN.WITH_SUGGESTION]", "`amount`", "Did you mean", "`amout`"]),
            ("unknown_table", ["[TABLE_OR_VIEW_NOT_FOUND]", "`nowhere`.`nothing`"]),
            ("raises", ["out of jaffles"]),
            ("two_rows_for_one", ["DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"]),
            ("wrong_type", ["perhaps"]),
        ],
    )
    def test_message(self, messages: Any, model: str, words: list[str]) -> None:
        assert messages[model].startswith("Database Error in model " + model)
        for word in words:
            assert word in messages[model]
        for noise in NOISE:
            assert noise not in messages[model]


_ENDLESS = """
{{ config(materialized='table') }}
select sum(a.id * b.id % 7) as n from range(100000000) as a cross join range(100000000) as b
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C to a console, not to a process")
def test_ctrl_c_cancels_what_runs(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "endless.sql").write_text(_ENDLESS, encoding="utf-8")
    (tmp_path / "dbt_project.yml").write_text("name: probe\nversion: '1.0'\nprofile: probe\n", encoding="utf-8")
    profile = "{type: spark_mv, method: session, schema: probe, threads: 2}"
    (tmp_path / "profiles.yml").write_text(f"probe: {{target: dev, outputs: {{dev: {profile}}}}}\n", encoding="utf-8")
    log = tmp_path / "logs" / "dbt.log"
    dbt = subprocess.Popen(
        [shutil.which("dbt", path=str(Path(sys.executable).parent)) or "dbt", "--no-use-colors", "run"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # where dbt's own fixtures have this process read and write
        env={key: value for key, value in os.environ.items() if key not in ("DBT_PROFILES_DIR", "DBT_LOG_PATH")},
        # as from a terminal: what a shell starts in the background has Ctrl-C ignored, and so have its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not (log.exists() and "cross join range" in log.read_text(encoding="utf-8")):
            assert dbt.poll() is None, dbt.communicate()[0]
            time.sleep(0.2)
        time.sleep(2)  # the statement is on its way to Spark
        dbt.send_signal(signal.SIGINT)
        output, _ = dbt.communicate(timeout=120)
    finally:
        dbt.kill()
    assert dbt.returncode != 0
    assert "CANCEL query model.probe.endless" in output
    assert "probe.endless" in output and "OK created" not in output
