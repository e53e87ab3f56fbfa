"""kill -9 in the middle of a job: what was appended is never paid again."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint
from pyspark.sql import SparkSession

from spark_mv.ai.results import create_sql
from spark_mv.ai.salt import create_salt_sql
from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.formats.describe import read_description
from spark_mv.spark.formats.own_tables import make_table

TEXTS = 240


@pytest.mark.slow
@pytest.mark.parametrize("ask_from", ["executors", "auto"])
def test_the_next_run_asks_only_for_what_was_not_kept(tmp_path: Path, ask_from: str) -> None:
    with Endpoint(Behaviour(seconds=0.1)) as endpoint:
        program = str(Path(__file__).with_name("killed_run.py"))
        command = [sys.executable, program, str(tmp_path), endpoint.url, str(TEXTS), ask_from]
        victim = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 200
        # a chunk is a second long: stop well within a later one
        while len(endpoint.seen.answered) < 150 and victim.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        victim.kill()
        victim.wait(30)
        assert 150 <= len(endpoint.seen.answered) < TEXTS
        time.sleep(5)  # its JVM hears of it by the end of its input, and gives the catalogue free
        before = sum(endpoint.seen.answered.values())
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        line = next((s for s in done.stdout.splitlines() if s.startswith("RESULT")), None)
        assert line, done.stdout + done.stderr[-3000:]
        kept, calls, reused, missing = map(int, line.split()[1:])
        # a second of four at once, each 0.1 s, and those that were under way or waited at its end
        assert before - kept <= 4 * 10 + 8
        assert (calls, reused, missing) == (TEXTS - kept, kept, 0)
        assert sum(endpoint.seen.answered.values()) == before + TEXTS - kept
        assert len(endpoint.seen.answered) == TEXTS


CREATED = {"answers": create_sql, "salt": partial(create_salt_sql, file_format="delta")}


@pytest.fixture(params=CREATED)
def left(bench: Bench, request: pytest.FixtureRequest) -> Left:
    rows = bench.spark.sql(f"DESCRIBE SCHEMA {bench.schema}").collect()
    (place,) = [row[1] for row in rows if row[0] == "Location"]
    table = f"{bench.schema}.left_{request.param}"
    return Left(bench.spark, table, CREATED[request.param](table), f"{place}/left_{request.param}")


@dataclass
class Left:
    """A table that models share, and where its files are to be."""

    spark: SparkSession
    table: str
    create: str
    place: str

    def query(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.sql(sql).collect()]

    def is_lost(self) -> None:
        """What is left where a run is killed before the catalogue knows of the table."""
        properties = self.create.index("COMMENT '", self.create.index("USING delta"))
        self.query(f"{self.create[:properties]} LOCATION '{self.place}' {self.create[properties:]}")
        self.query(f"DROP TABLE {self.table}")

    def is_made(self) -> None:
        for _ in range(2):
            make_table(self.query, self.table, self.create)
        asked = self.create.replace(self.table, f"{self.table}_as_asked", 1)
        self.query(asked)
        assert self.described(self.table) == self.described(f"{self.table}_as_asked")

    def described(self, table: str) -> tuple[Any, ...]:
        said = read_description(self.query(f"DESCRIBE TABLE EXTENDED {table}"))
        comments = self.query(f"DESCRIBE TABLE {table}")
        detail = self.query(f"DESCRIBE DETAIL {table}")[0]
        return said.columns, comments, detail["description"], detail["properties"], self.spark.table(table).count()


def test_what_was_left_before_the_first_commit(left: Left) -> None:
    (Path(left.place.removeprefix("file:")) / "_delta_log" / "_staged_commits").mkdir(parents=True)
    left.is_made()


def test_what_was_left_before_the_catalogue_knew(left: Left) -> None:
    left.is_lost()
    had = left.query(f"SELECT * FROM delta.`{left.place}`")
    left.is_made()
    assert left.query(f"SELECT * FROM {left.table}") == had


def test_what_was_left_by_the_run_that_mended_it(left: Left, tmp_path: Path) -> None:
    left.is_lost()
    make_table(left.query, left.table, left.create)
    place = left.place.removeprefix("file:")
    shutil.copytree(place, tmp_path / "saved")
    left.query(f"DROP TABLE {left.table}")
    shutil.copytree(tmp_path / "saved", place)
    left.is_made()


def test_what_may_be_somebody_elses(left: Left) -> None:
    left.query(f"CREATE TABLE delta.`{left.place}` USING delta COMMENT 'mine' AS SELECT 1 AS id")
    with pytest.raises(RunFailed, match="give it back to the catalogue: CREATE TABLE") as refused:
        make_table(left.query, left.table, left.create)
    cure = re.search(r"CREATE TABLE .* LOCATION '[^']*'", str(refused.value))
    assert cure is not None
    left.query(cure[0])
    assert left.query(f"SELECT * FROM {left.table}") == [{"id": 1}]
