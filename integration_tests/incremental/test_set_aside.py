"""A table that its format cannot replace waits under another name while the new one is made: whatever dies or races there, it is not lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from direct import Model, schema
from gates import Died, Gated, forget_process, gated_session, gates
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RefusedError, RunFailed

pytestmark = delta_only("Iceberg replaces a table of any layout in its place")


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Gated]:
    with gates():
        yield gated_session(spark)


def _clustered(session: Gated, name: str) -> tuple[Model, Model]:
    """A model with a table that is clustered, and the same that is to be partitioned, which Delta does not make of it."""
    session.query(f"create table {name}.src using delta as select id from range(3)")
    sql = f"select id, cast(id % 2 as int) as p, rand() as draw from {name}.src"
    model = Model(name, "k", sql, {"unique_key": "id", "liquid_clustered_by": ["id"]})
    model.run(session, "2026-01-01 00:00:00")
    return model, replace(model, config={"unique_key": "id", "partition_by": ["p"]})


def _draws(session: Gated, name: str) -> dict[int, float]:
    return {row["id"]: row["draw"] for row in session.query(f"select id, draw from {name}.k")}


def _tables(session: Gated, name: str) -> set[str]:
    return {row["tableName"] for row in session.query(f"show tables in {name}")}


def _dies(session: Gated, run: Any, at: str, behind: bool) -> None:
    """The run until its statement with these words, which is executed where it dies `behind` it."""
    dead: list[str] = []

    def gate(sql: str, send: Any) -> Any:
        if dead:
            raise Died
        if at not in sql:
            return send()
        dead.append(sql)
        if behind:
            send()
        raise Died

    with session.through(gate), pytest.raises(Died):
        run()
    assert dead
    forget_process(session.spark)


@pytest.mark.parametrize(
    ("at", "behind"), [("rename to", True), ("create or replace table", False), ("create or replace table", True)]
)
def test_a_run_that_dies_there_loses_no_draw(spark: Any, session: Gated, at: str, behind: bool) -> None:
    name = f"aside_{at.split()[0]}_{behind}".lower()
    with schema(session, name):
        _, partitioned = _clustered(session, name)
        before = _draws(session, name)
        _dies(session, lambda: partitioned.run(session, "2026-01-02 00:00:00"), at, behind)
        partitioned.run(session, "2026-01-02 00:00:00")
        assert _draws(session, name) == before
        assert _tables(session, name) == {"src", "k"}
        assert [r["partitionColumns"] for r in session.query(f"describe detail {name}.k")] == [["p"]]


def test_one_that_may_be_alive_is_waited_for(spark: Any, session: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    with schema(session, "aside_alive"):
        _, partitioned = _clustered(session, "aside_alive")
        before = _draws(session, "aside_alive")
        _dies(session, lambda: partitioned.run(session, "2026-01-02 00:00:00"), "rename to", True)
        with monkeypatch.context() as patch:
            patch.setattr("spark_mv.spark.run.aside.own_catalogue", lambda spark: False)  # another process may use it
            with pytest.raises(RunFailed, match="put it back: ALTER TABLE"):
                partitioned.run(session, "2026-01-02 00:00:00")
        partitioned.run(session, "2026-01-02 00:00:00")
        assert _draws(session, "aside_alive") == before


def test_of_two_that_make_it_anew_one_publishes(spark: Any, session: Gated) -> None:
    other, said = gated_session(spark), []
    with schema(session, "aside_two"):
        _, partitioned = _clustered(session, "aside_two")
        session.query("insert into aside_two.src values (3)")

        def gate(sql: str, send: Any) -> Any:
            if "rename to" in sql and not said:
                said.append(sql)
                replace(partitioned).run(other, "2026-01-02 00:00:00")
                said.append(_draws(other, "aside_two"))
            return send()

        with session.through(gate), pytest.raises(RunFailed, match="changed nothing"):
            partitioned.run(session, "2026-01-02 00:00:01")
        assert len(said) == 2 and _draws(session, "aside_two") == said[1]
        assert _tables(session, "aside_two") == {"src", "k"}


def test_one_that_comes_while_it_is_made_anew_changes_nothing(spark: Any, session: Gated) -> None:
    other, said = gated_session(spark), []
    with schema(session, "aside_between"):
        _, partitioned = _clustered(session, "aside_between")
        before = _draws(session, "aside_between")

        def gate(sql: str, send: Any) -> Any:
            if sql.startswith("create or replace table") and not said:
                said.append(sql)
                with pytest.raises(RunFailed, match="not be done yet"):
                    replace(partitioned).run(other, "2026-01-02 00:00:00")
                said.append("refused")
            return send()

        with session.through(gate):
            partitioned.run(session, "2026-01-02 00:00:01")
        assert said[1:] == ["refused"] and _draws(session, "aside_between") == before


def test_somebody_elses_table_is_put_back_and_not_dropped(spark: Any, session: Gated) -> None:
    with schema(session, "aside_theirs"):
        session.query("create table aside_theirs.src using delta as select id from range(3)")
        session.query("create table aside_theirs.k using parquet as select 'precious' as x")
        model = Model("aside_theirs", "k", "select id, rand() as draw from aside_theirs.src", {"unique_key": "id"})
        _dies(session, lambda: model.run(session, "2026-01-01 00:00:00", full_refresh=True), "rename to", True)
        with pytest.raises(RefusedError):
            model.run(session, "2026-01-01 00:00:00")
        assert [row["x"] for row in session.query("select x from aside_theirs.k")] == ["precious"]
        model.run(session, "2026-01-01 00:00:00", full_refresh=True)
        assert len(_draws(session, "aside_theirs")) == 3 and _tables(session, "aside_theirs") == {"src", "k"}
