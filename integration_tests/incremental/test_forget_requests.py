"""A request to forget is honoured once, whatever runs follow."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.under_format import FORMAT

from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.forgetting import ask_to_forget


def values(engine: Any) -> dict[Any, tuple[Any, ...]]:
    return {r["id"]: (r["split"], r["u"]) for r in engine.adapter.query(f"select id, split, u from {engine.table}")}


class TestForgetRequests:
    def test_once(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def touch(low: int) -> None:
            engine.query(f"update {{schema}}.src set name = concat(name, '+') where id >= {low}")

        def forget(columns: list[str], where: str | None = None) -> str:
            return ask_to_forget(engine, engine.table, "mv", columns, where, {})

        def changed(before: dict[Any, Any], after: dict[Any, Any]) -> set[tuple[Any, int]]:
            return {(k, c) for k in before for c in (0, 1) if before[k][c] != after[k][c]}

        engine.query(
            "create or replace table {schema}.src using delta as select id, concat('n', id) as name from range(20)"
        )
        engine.model("select id, name, rand() as split, uuid() as u from {schema}.src")
        engine.run()
        first = values(engine)
        assert "5 rows now" in forget(["split"], "id < 5")
        # a run that fails has honoured nothing
        with monkeypatch.context() as patch, pytest.raises(RunFailed):
            patch.setattr(MvRun, "execute", lambda *_: (_ for _ in ()).throw(RunFailed("KILLED", "killed")))
            engine.run()
        engine.run()
        once = values(engine)
        assert changed(first, once) == {(k, 0) for k in range(5)}

        # whatever runs follow: incremental, nothing to do, complete, after commits that hide the record
        touch(10)
        engine.run()
        assert engine.run().plan.strategy == "NO_OP"
        engine.run(full_refresh=True)
        for number in range(4):
            engine.query(f"alter table {{schema}}.mv set tblproperties ('note' = '{number}')")
        engine.query("update {schema}.mv set name = 'wrong' where id = 1")
        engine.run()
        touch(15)
        engine.run()
        assert values(engine) == once

        # two requests before one run are both honoured, also when it makes the table anew
        forget(["split"], "id = 0")
        forget(["u"], "id = 1")
        engine.run(full_refresh=True)
        twice = values(engine)
        assert changed(once, twice) == {(0, 0), (1, 1)}

        # a request made while a run works waits for the next one, whatever that run writes
        execute = MvRun.execute
        for full in (False, True):
            said: list[int] = []

            def late(run: MvRun, step: Any, sql: str | None, said: list[int] = said) -> None:
                if step.kind == "check_stage" and not said:
                    said.append(1)
                    forget(["split"], "id = 3")
                execute(run, step, sql)

            touch(19)
            monkeypatch.setattr(MvRun, "execute", late)
            try:
                engine.run(full_refresh=full)
            except Exception as error:
                said_so = ("DELTA_METADATA_CHANGED", "another run") if FORMAT == "delta" else ("was changed while",)
                assert any(text in str(error) for text in said_so), error
            monkeypatch.undo()
            assert said and values(engine) == twice
            engine.run()
            assert changed(twice, values(engine)) == {(3, 0)}
            twice = values(engine)
            assert engine.run().plan.strategy == "NO_OP"
