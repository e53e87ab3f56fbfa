"""Run as a program: what a dead run left is looked at, a whole `dbt run` puts it right, the source changes, and a run is begun that may be
killed at any time. Begins with a first run. With a second argument it ends before the last run; a number is how many KiB are left of the warehouse's
disk while the last run is under way, which is not killed.

    python dying_run.py FOLDER [last | KIB]

Prints `RIGHT old|new again` (answers that were asked again so far) after the checks, `NOW seconds` (how long the run before took) before the
last run, and `DONE` behind it; `FULL` where the disk was too full for it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner, dbtRunnerResult
from pyspark.sql import SparkSession

MODEL = """{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, n, ai_gen(s) as said, rand() as drawn from {{ target.schema }}.src where d > current_date() - interval 5 days
"""
WANTED = "select id, n, concat('ai_gen: ', s) from src where d > date'2026-02-01' - interval 5 days"
RUN = ["run", "--quiet", "--vars", "{as_of: '2026-02-01 06:00:00'}"]
OURS = {"src", "mv", "mv__state", "ai_results", "mv_runs"}
FIRST_RUN = 6.0
"""Seconds; nobody has measured it yet."""


class Folder:
    """A project, its tables, and what was known of them before the last run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known = folder / "known.json"
        self.begins = not self.known.exists()
        if self.begins:
            self._project()
        self.dbt = dbtRunner()
        self.run("show", "--quiet", "--inline", "select 1")  # starts Spark
        self.spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()

    def _project(self) -> None:
        options = {"count_file": str(self.folder / "asked")}
        target = {
            "type": "spark_mv",
            "method": "session",
            "schema": "default",
            "warehouse": str(self.folder / "warehouse"),
            "ai": {"provider": "scripted", "model": "test", "ask_from": "driver", "options": options},
            "spark_config": {
                "spark.sql.shuffle.partitions": "1",
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            },
        }
        for name, text in {
            "models/mv.sql": MODEL,
            "dbt_project.yml": json.dumps({"name": "killed", "version": "1.0", "profile": "killed"}),
            "profiles.yml": json.dumps({"killed": {"target": "t", "outputs": {"t": target}}}),
        }.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, *words: str) -> None:
        done = self.invoke(*words)
        assert done.success, done.exception or [one.message for one in done.result]

    def invoke(self, *words: str) -> dbtRunnerResult:
        place = str(self.folder)
        return self.dbt.invoke([*words, "--project-dir", place, "--profiles-dir", place, "--no-use-colors"])

    @property
    def ballast(self) -> Path:
        return self.folder / "warehouse" / "ballast"

    def fill(self, kib: int) -> None:
        """The warehouse's disk, but for so many KiB."""
        free = os.statvfs(self.ballast.parent)
        taken = free.f_bavail * free.f_frsize - kib * 1024
        if taken > 0:
            with self.ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, taken)

    def bag(self, sql: str) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row) for row in self.spark.sql(sql).collect())

    def names(self) -> set[str]:
        return {row.tableName for row in self.spark.sql("show tables").collect()}

    def rows(self) -> Counter[tuple[Any, ...]]:
        return self.bag("select id, n, said from mv") if "mv" in self.names() else Counter()

    def drawn(self) -> dict[str, float]:
        return {str(row.id): row.drawn for row in self.spark.table("mv").collect()} if "mv" in self.names() else {}

    def asked(self) -> Counter[str]:
        file = self.folder / "asked"
        return Counter(file.read_text(encoding="utf-8").splitlines()) if file.exists() else Counter()

    def begin(self) -> dict[str, Any]:
        self.spark.sql(
            "create table src using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as select cast(id as int) as id, "
            "0 as n, concat('n', id) as s, date'2026-02-01' - cast(id % 7 as int) as d from range(30)"
        )
        return {"number": 0, "rows": [], "drawn": {}, "took": FIRST_RUN}

    def put_right(self) -> dict[str, Any]:
        """Looks at what the dead run left; then the whole run."""
        before = json.loads(self.known.read_text(encoding="utf-8"))
        found, drawn, wanted = self.rows(), self.drawn(), self.bag(WANTED)
        old = Counter(tuple(row) for row in before["rows"])
        assert found in (old, wanted), f"neither the old nor the new table: {found}"
        assert same(before["drawn"], drawn), "a kept value moved in the run that was killed"
        paid = self.asked()
        kept = self.spark.table("ai_results").count() if "ai_results" in self.names() else 0

        began = time.monotonic()
        self.run(*RUN)
        took = time.monotonic() - began
        assert self.rows() == wanted, "not what the query gives"
        now = self.drawn()
        assert same(before["drawn"], now) and same(drawn, now), "a kept value moved"
        assert not self.names() - OURS, f"left behind: {self.names() - OURS}"
        # what the provider answered and no statement has kept is asked again: it was under way
        again = sum((self.asked() - paid)[text] for text in paid)
        assert again <= len(paid) - kept, f"{again} asked again, {len(paid)} were paid, {kept} kept"
        print("RIGHT", "old" if found == old else "new", self.asked().total() - len(self.asked()), flush=True)
        rows = [list(row) for row in self.rows().elements()]
        return {"number": before["number"], "rows": rows, "drawn": now, "took": took}

    def change(self, number: int) -> None:
        self.spark.sql(f"update src set n = n + 1, s = concat('m', {number}, ' ', id) where id % 4 = {number % 4}")
        self.spark.sql(f"insert into src values ({1000 + number}, 0, 'new {number}', date'2026-02-01')")


def same(before: dict[str, float], now: dict[str, float]) -> bool:
    return all(now[key] == value for key, value in before.items() if key in now)


def main(folder: Path, last: bool, kib: int | None) -> None:
    (folder / "warehouse" / "ballast").unlink(missing_ok=True)
    work = Folder(folder)
    known = work.begin() if work.begins else work.put_right()
    if last:
        return
    if not work.begins:
        known["number"] += 1
        work.change(known["number"])
    work.known.write_text(json.dumps(known), encoding="utf-8")
    print("NOW", round(known["took"], 2), flush=True)
    if kib is not None:
        work.fill(kib)
        print("DONE" if work.invoke(*RUN).success else "FULL", flush=True)
        return
    work.run(*RUN)
    print("DONE", flush=True)
    time.sleep(600)  # killed here, behind the run


if __name__ == "__main__":
    mode = sys.argv[2] if len(sys.argv) > 2 else ""
    main(Path(sys.argv[1]), mode == "last", int(mode) if mode.isdigit() else None)
