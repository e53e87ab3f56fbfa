"""The tables that releases made, gone on with by this one: no kept value moves, no answer is paid again. And tables of a release to come."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from integration_tests.conftest import SETTINGS
from integration_tests.under_format import delta_only
from integration_tests.upgrades.golden import CHANGES, GOLDEN, MODELS, SCHEMA, content, dbt, project, run, unpack

from spark_mv.cli import main

pytestmark = [pytest.mark.slow, delta_only("the tables that are kept are Delta's")]
FILES = sorted(GOLDEN.glob("*.tar.xz"))
KEPT = {
    "by_row": ("draw", "token", "first_seen_at"),
    "by_group": ("token",),
    "by_window": ("draw",),
    "sampled": ("word",),  # that the row is there is what is kept
    "remembered": ("draw",),
    "answered": ("answer",),
    "to_forget": ("draw",),
}
"""The kept columns of each model; its key is the first column."""


@dataclass
class Kept:
    """The tables of a file, and a project that goes on with them."""

    spark: Any
    folder: Path
    where: list[str]
    asked: Path
    expected: dict[str, Any]

    def values(self, model: str) -> dict[Any, tuple[Any, ...]]:
        columns = ", ".join(KEPT[model])
        key = "kind" if model == "by_group" else "id"
        rows = self.spark.sql(f"select {key}, {columns} from {SCHEMA}.{model}").collect()
        return {row[0]: tuple(row)[1:] for row in rows}

    def all_values(self) -> dict[str, dict[Any, tuple[Any, ...]]]:
        return {model: self.values(model) for model in MODELS}

    def version(self, table: str) -> int:
        return int(self.spark.sql(f"describe history {SCHEMA}.{table} limit 1").collect()[0]["version"])

    def asked_now(self) -> list[str]:
        """What was asked since the last look."""
        lines = self.asked.read_text(encoding="utf-8").splitlines() if self.asked.exists() else []
        self.asked.unlink(missing_ok=True)
        return sorted(json.loads(line)[1]["prompt"] for line in lines)


@pytest.fixture(params=FILES, ids=lambda file: file.name.removesuffix(".tar.xz"))
def kept(request: pytest.FixtureRequest, spark: Any, warehouse: Path, tmp_path: Path) -> Iterator[Kept]:
    where = project(tmp_path / "project", warehouse, SETTINGS, tmp_path / "asked")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield Kept(spark, tmp_path / "tables", where, tmp_path / "asked", unpack(spark, request.param, tmp_path / "tables"))
    spark.sql(f"drop schema {SCHEMA} cascade")
    shutil.rmtree(tmp_path / "tables")


def test_a_later_release_goes_on(kept: Kept, tmp_path: Path) -> None:
    import pyspark

    for table, rows in kept.expected["tables"].items():
        assert content(kept.spark, table) == rows, table
    before = kept.all_values()
    records = {table: kept.version(table) for table in kept.expected["tables"]}
    same = (
        kept.expected["spark"] == pyspark.__version__
    )  # another Spark may give another result: everything is recomputed

    # read, without a run
    page = tmp_path / "report.html"
    status = CliRunner().invoke(main, ["status", *kept.where])
    assert status.exit_code in (0, 1) and all(model in status.output for model in MODELS), status.output
    assert "could not be read" not in status.output, status.output
    report = CliRunner().invoke(main, ["report", "--output", str(page), *kept.where])
    assert report.exit_code == 0 and "GROUP_AGGREGATE" in page.read_text(encoding="utf-8"), report.output

    # nothing changed but that values were to be forgotten
    results = run(kept.where, 2)
    assert {result.status for result in results.values()} == {"success"}, results
    now = kept.all_values()
    forgotten = {id for id, value in now["to_forget"].items() if value != before["to_forget"][id]}
    assert forgotten == {1, 2, 3}
    assert {**now, "to_forget": {}} == {**before, "to_forget": {}}
    if same:
        strategies = {name: result.adapter_response["strategy"] for name, result in results.items()}
        assert {name for name, strategy in strategies.items() if strategy != "NO_OP"} == {"to_forget"}, strategies
        assert {t for t, v in records.items() if kept.version(t) != v} == {"to_forget", "mv_runs"}

    # the sources change and the clock moves: rows that wait in the state enter, although the source has lost one of them
    for statement in (
        *CHANGES[1:2],
        "insert into golden.events values (31, 'k1', 'word 31', 1, timestamp'2026-02-02 07:00:00')",
        "delete from golden.events where id in (19, 5)",
    ):
        kept.spark.sql(statement)
    before = now
    results = run(kept.where, 4)
    assert {result.status for result in results.values()} == {"success"}, results
    now = kept.all_values()
    for model in MODELS:
        moved = {k for k, v in before[model].items() if k in now[model] and now[model][k] != v}
        assert not moved, (model, moved)
    everything = {row[0] for row in kept.spark.sql("select id from golden.events").collect()}
    assert set(now["by_row"]) == everything and 31 in everything and 19 not in everything
    assert set(now["remembered"]) >= {19, 20, 31} and 5 not in now["sampled"]
    assert set(now["sampled"]) - {31} == set(before["sampled"]) - {19, 5}
    assert kept.asked_now() == ["word 31"]
    if same:
        strategies = {name: result.adapter_response["strategy"] for name, result in results.items()}
        assert (strategies["by_row"], strategies["by_window"]) == ("ROW_BASED", "WINDOW_FUNCTION"), strategies

    results = run(kept.where, 4, "--full-refresh")
    assert {result.status for result in results.values()} == {"success"}, results
    assert kept.all_values() == now and not kept.asked_now()


def test_a_release_to_come_is_refused(kept: Kept) -> None:
    def written_by_it(table: str, key: str, more: str = "") -> None:
        """The newest commit with that kind of record names a format to come, or a field that nobody knows."""
        for log in sorted((kept.folder / table / "_delta_log").glob("*.json"), reverse=True):
            text, mark = log.read_text(encoding="utf-8"), f'\\"{key}\\":'
            if mark in text.replace(": 1", ":1"):
                there = f"{mark} 1" if f"{mark} 1" in text else f"{mark}1"
                log.write_text(
                    text.replace(there, f"{mark}2" if not more else f'\\"{more}\\":1,{there}'), encoding="utf-8"
                )
                return
        raise AssertionError(f"no record {key} in {table}")

    written_by_it("by_row", "spark_mv")
    written_by_it("by_window", "spark_mv", more="to_come")
    written_by_it("sampled__state", "spark_mv_state")
    written_by_it("remembered__state", "spark_mv_state", more="to_come")
    written_by_it("to_forget", "spark_mv_forget")
    for table in ("ai_results", "mv_runs"):
        kept.spark.sql(f"alter table {SCHEMA}.{table} set tblproperties ('spark_mv.format' = '2')")
    for table in kept.expected["tables"]:  # what Spark holds of the logs is of before
        kept.spark.sql(f"refresh table {SCHEMA}.{table}")
        kept.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    before, versions = kept.all_values(), {t: kept.version(t) for t in kept.expected["tables"]}

    for more in ((), ("--full-refresh",)):
        results = run(kept.where, 4, *more)
        assert results["by_group"].status == "success"
        for name in set(MODELS) - {"by_group"}:
            assert results[name].status == "error", name
            message = results[name].message
            assert "[NEWER_FORMAT]" in message and "Install the release" in message, (name, message)
    assert {t for t, v in versions.items() if kept.version(t) != v} == {"by_group"}  # mv_runs is left as it is, too
    assert {**kept.all_values(), "by_group": {}} == {**before, "by_group": {}} and not kept.asked_now()

    status = CliRunner().invoke(main, ["status", *kept.where])
    assert "NEWER_FORMAT" in status.output and "by_group" in status.output, status.output
    explained = dbt(kept.where, "run-operation", "explain_mv", "--args", json.dumps({"model": "by_row"}))
    assert not explained.success  # what it printed is the message of the runs
    assert not dbt(kept.where, "run-operation", "maintain").success
