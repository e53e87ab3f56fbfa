"""The state table beside a model's own: lost, emptied, of another generation, or ahead of the table after a run that died."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.run.execute import MvRun

SAMPLE = "select id, amount, uuid() as u from {schema}.src where rand() < 0.3 and amount >= 0"
WINDOW = (
    "select id, d, rand() as split from {schema}.src "
    "where d > current_date() - interval 10 days and d <= current_date() + interval 2 days"
)


def values(engine: Any, column: str) -> dict[Any, Any]:
    return {row["id"]: row[column] for row in engine.adapter.query(f"select id, {column} from {engine.table}")}


class Died(RunFailed):
    """Stands for the death of the process."""


def dies_before_publishing(engine: Any, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> None:
    """A run that has committed to the state and dies before it commits to the model's own table."""
    execute = MvRun.execute

    def killed(run: MvRun, step: Any, sql: str | None) -> None:
        if step.kind == "stage_changes" and step.args["into"] == run.relations["stage"]:
            raise Died("KILLED", "killed")
        execute(run, step, sql)

    monkeypatch.setattr(MvRun, "execute", killed)
    with pytest.raises(Died):
        engine.run(**arguments)
    monkeypatch.undo()


class TestSample:
    def test_a_sample_outlives_its_state(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        engine.query("create or replace table {schema}.src using delta as select id, 1 as amount from range(300)")
        engine.model(SAMPLE)
        engine.run()
        sample = values(engine, "u")
        assert 50 < len(sample) < 140

        # lost: noticed although nothing else changed, rows of the table stay, the others draw anew, and it is said
        engine.query("drop table {schema}.mv__state")
        lost = engine.run()
        assert "mv__state: it is gone" in " ".join(engine.warnings) and lost.response().notes
        after = values(engine, "u")
        assert {k: after[k] for k in sample} == sample
        assert engine.run().plan.strategy == "NO_OP"
        # their draws are draws under the filter: a narrower filter takes some of them, a wider one none
        engine.sql = engine.sql.replace("0.3", "0.2")
        engine.run()
        narrow = values(engine, "u")
        assert 0 < len(narrow) < len(after) and {k: after[k] for k in narrow} == narrow
        engine.sql = engine.sql.replace("0.2", "0.9")
        engine.run()
        wide = values(engine, "u")
        assert len(wide) > len(after) and set(after) <= set(wide)

        # emptied by somebody else: read as it was before
        engine.query("delete from {schema}.mv__state")
        engine.run()
        assert "something else wrote to it (DELETE)" in " ".join(engine.warnings)
        assert values(engine, "u") == wide

        # a run that dies after the state's commit, with another draw, and the SQL is taken back afterwards
        before = engine.sql
        engine.sql = before.replace("rand()", "uniform(0.0, 1.0)")
        dies_before_publishing(engine, monkeypatch)
        engine.sql = before
        engine.query("insert into {schema}.src values (1000, -1)")
        engine.run()
        assert "a run that published nothing); its draws are read as they were before" in " ".join(engine.warnings)
        back = values(engine, "u")
        assert {k: back[k] for k in wide} == wide
        wide = back
        # draws that change their places keep their values
        engine.sql = before.replace("where", "where randn() < 100 and")
        engine.run()
        moved = values(engine, "u")
        engine.sql = before.replace("where", "where uniform(0.0, 1.0) < 2 and randn() < 100 and")
        engine.run()
        assert values(engine, "u") == moved

        # the table is gone and the state is left: it belongs to another table
        engine.query("drop table {schema}.mv")
        engine.run()
        anew = values(engine, "u")
        assert not set(anew.values()) & set(wide.values())
        assert engine.run().plan.strategy == "NO_OP"

    def test_a_sample_outlives_a_change_of_its_key(self, engine: Any) -> None:
        engine.query("create or replace table {schema}.keyed using delta as select id, id % 3 as part from range(60)")
        engine.model("select id, part from {schema}.keyed where rand() < 0.5")
        engine.run()
        sample = engine.rows()
        for key in (["id", "part"], ["part", "id"], ["id"]):
            engine.config["unique_key"] = key
            engine.run()
            assert engine.rows() == sample, key
        engine.query("insert into {schema}.keyed select 100 + id, 0 from range(20)")
        engine.run()
        assert {row: n for row, n in engine.rows().items() if row[0] < 60} == sample
        assert engine.run().plan.strategy == "NO_OP"


class TestRemembered:
    def test_rows_are_remembered_from_the_table(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = "select id, date'2026-01-20' + cast(id as int) as d from range(30)"
        engine.query(f"create or replace table {{schema}}.src using delta as {rows}")
        engine.model(WINDOW)
        engine.run("2026-02-01 06:00:00")
        drawn = values(engine, "split")

        # delete becomes keep: what the table has is kept, also rows that the source loses at the same time
        engine.config["on_source_delete"] = "keep"
        engine.query("delete from {schema}.src where id = 10")
        engine.run("2026-02-01 06:00:00")
        assert values(engine, "split") == drawn
        engine.query("delete from {schema}.src where id in (11, 14)")
        engine.run("2026-02-01 08:00:00")
        assert values(engine, "split") == drawn

        # lost, with a row (14, of 2026-02-03) that is in the table and not in the source
        engine.query("drop table {schema}.mv__state")
        lost = engine.run("2026-02-01 09:00:00")
        assert "it is gone" in " ".join(lost.response().notes)
        assert values(engine, "split") == drawn
        later = engine.run("2026-02-10 00:00:00")
        now = values(engine, "split")

        assert {k: now[k] for k in drawn if k in now} == {k: drawn[k] for k in drawn if k in now}
        assert 10 not in now and {12, 13, 14} <= set(now) and later.counts["evicted"] >= 1

        # a run that dies between the two commits draws nothing twice
        engine.query("insert into {schema}.src select id + 100, date'2026-02-09' from range(5)")
        dies_before_publishing(engine, monkeypatch, as_of="2026-02-10 01:00:00")
        drawn = {r["id"]: r["split"] for r in engine.query("select id, split from {schema}.mv__state where id >= 100")}
        engine.run("2026-02-10 02:00:00")
        now = values(engine, "split")
        assert {k: now[k] for k in drawn} == drawn

        # edited by somebody else, and emptied
        engine.query("update {schema}.mv__state set split = 7")
        engine.run("2026-02-10 03:00:00")
        assert values(engine, "split") == now
        engine.query("truncate table {schema}.mv__state")
        engine.run("2026-02-10 04:00:00")
        assert values(engine, "split") == now and engine.run("2026-02-10 04:00:00").plan.strategy == "NO_OP"

        # keep, delete, keep: rows that left meanwhile do not come back
        engine.query("delete from {schema}.src where id = 101")
        engine.config["on_source_delete"] = "delete"
        engine.run("2026-02-10 05:00:00")
        without = values(engine, "split")
        assert 101 not in without and 102 in without
        engine.config["on_source_delete"] = "keep"
        engine.run("2026-02-10 06:00:00")
        assert values(engine, "split") == without
        # the table is gone, the state is left
        engine.query("delete from {schema}.src where id = 102")
        engine.query("drop table {schema}.mv")
        engine.run("2026-02-10 07:00:00")
        anew = values(engine, "split")
        assert set(anew) == set(without) - {102} and not set(anew.values()) & set(without.values())
