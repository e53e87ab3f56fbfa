"""kill -9 in the middle of a job: what was appended is never paid again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint

from spark_mv.ai.results import COLUMN_NAMES, create_sql
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


def test_what_a_first_run_left_that_was_killed_while_it_made_the_table(bench: Bench) -> None:
    rows = bench.spark.sql(f"DESCRIBE SCHEMA {bench.schema}").collect()
    (place,) = [row[1].removeprefix("file:") for row in rows if row[0] == "Location"]
    (Path(place) / "left" / "_delta_log" / "_staged_commits").mkdir(parents=True)
    table = f"{bench.schema}.left"
    for _ in range(2):
        make_table(lambda sql: [row.asDict() for row in bench.spark.sql(sql).collect()], table, create_sql(table))
    assert bench.spark.table(table).columns == list(COLUMN_NAMES)
