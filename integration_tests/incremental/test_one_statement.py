"""A first run is the statement that makes the table: its rows are checked while they are written, and staged only to say what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.under_format import FORMAT

from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.run.amendments import Amendments

STAGED = ["stage_changes", "check_stage", "create_table"]


@pytest.fixture
def engine(engine: Any) -> Any:
    for name in ("src", "mv"):
        engine.query(f"drop table if exists {{schema}}.{name}")
    engine.query(
        "create table {schema}.src using delta as select id, id as k, timestamp'2026-01-30 00:00:00' - make_interval(0, 0, 0, id) as at from range(10)"
    )
    return engine


def is_there(engine: Any) -> bool:
    return bool(engine.rows_of("show tables in {schema} like 'mv'"))


def test_one_statement(engine: Any) -> None:
    """A draw is evaluated once for each row, whatever reads it."""
    engine.model(
        "select id, u, u as same, concat(u, r) as both, r from (select id, uuid() as u, rand() as r from {schema}.src)"
    )
    run = engine.run()
    assert engine.steps == ["create_table"] and run.statements == 1
    assert run.response()._message == "CREATE +10"
    assert engine.rows_of(
        "select count(*), count(distinct u) from {schema}.mv where same = u and both = concat(u, r)"
    ) == [(10, 10)]
    drawn = engine.rows_of("select id, u, r from {schema}.mv order by id")
    assert engine.run().plan.strategy == "NO_OP"
    engine.query("insert into {schema}.src values (10, 10, timestamp'2026-01-30')")
    run = engine.run()
    assert (run.counts["inserted"], run.counts["kept"], run.counts["target_rows"]) == (1, 10, 11)
    assert not any(
        "count(*) from" in text and "as target_rows" in text for text in engine.statements
    )  # the commit said it
    assert engine.rows_of("select id, u, r from {schema}.mv where id < 10 order by id") == drawn


@pytest.mark.parametrize(
    ("key", "query", "said"),
    [
        (
            "k",
            "select if(id = 7, 6, id) as k, rand() as r from {schema}.src",
            r'2 rows share a key with another, e.g. \{"k":6\}',
        ),
        ("k", "select if(id = 7, null, id) as k, rand() as r from {schema}.src", "1 row has a NULL in it"),
        (["k", "l"], "select id % 3 as k, id % 2 as l from {schema}.src", "8 rows share a key"),
        (["k", "l"], "select id as k, if(id = 3, null, 1) as l from {schema}.src", "1 row has a NULL in it"),
        ("k", "select if(id > 7, null, id) as k from {schema}.src", "2 rows have a NULL in it"),
        ("k", "select cast(if(id = 1, -0.0, id) as double) as k from {schema}.src", "2 rows share a key"),
    ],
)
def test_rows_that_may_not_be_written(engine: Any, key: Any, query: str, said: str) -> None:
    engine.model(query, unique_key=key)
    for _ in range(2):
        with pytest.raises(RunFailed, match=f"KEY_REPEATED.*{said}"):
            engine.run()
        assert engine.steps == ["create_table", *STAGED[:2]] and not is_there(engine) and not engine.warnings
        assert [row[1] for row in engine.rows_of("show tables in {schema}") if "mv_stage" in row[1]] == []
    engine.sql = "select id as k, 1 as l, rand() as r from {schema}.src".replace("{schema}", engine.schema)
    assert engine.run().counts["inserted"] == 10 and engine.steps == ["create_table"]


@pytest.mark.parametrize("check", ["k < 5", "k > 3 or k is null", "null"])
def test_rows_that_violate_the_contract(engine: Any, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.model("select id, if(id = 9, null, k) as k from {schema}.src")
    monkeypatch.setattr(Amendments, "checks", property(lambda _: {"few": check}, lambda *_: None), raising=False)
    with pytest.raises(RunFailed, match=r"CONTRACT.*rows violate"):
        engine.run()
    assert engine.steps == ["create_table", *STAGED[:2]] and not is_there(engine)


def test_the_next_bound_is_known_before(engine: Any) -> None:
    for days, after in ((12, "2026-02-02"), (300, "2026-11-17"), (10000, "2053-06-08")):
        engine.model(f"select id, at from {{schema}}.src where at > current_timestamp() - interval {days} days")
        run = engine.run("2026-02-01 06:00:00")
        assert set(engine.steps) == {"next_change", "create_table"}
        assert str(run.next_change_at).startswith(after)
        assert run.counts["inserted"] == 10
        assert engine.run("2026-02-01 07:00:00").plan.strategy == "NO_OP"


def test_what_has_to_be_known_before_is_staged(engine: Any) -> None:
    """Rows of a view may have moved while they are read; a draw that decides on rows is kept in a table of its own."""
    engine.query("create or replace view {schema}.seen as select * from {schema}.src")
    engine.model("select id, rand() as r from {schema}.seen")
    engine.run()
    assert [step for step in engine.steps if step in STAGED] == STAGED
    engine.model("select id, k from {schema}.src where rand() < 2")
    engine.run()
    assert "stage_changes" in engine.steps


def test_an_error_of_the_query_is_the_querys(engine: Any) -> None:
    engine.model("select id, if(id < 9, id, raise_error('nine')) as n, rand() as r from {schema}.src")
    with pytest.raises(Exception, match="nine"):
        engine.run()
    assert engine.steps == ["create_table"] and not is_there(engine)
    engine.query("delete from {schema}.src where id = 9")
    assert engine.run().counts["inserted"] == 9


@pytest.mark.parametrize("sensitive", [False, True])
def test_keys_of_a_large_table_are_asked_by_the_next_run(
    engine: Any, monkeypatch: pytest.MonkeyPatch, sensitive: bool
) -> None:
    """And by no later one. Keys that may be written nowhere are not asked."""
    monkeypatch.setattr("spark_mv.maintenance.steps.rewrite_rows.LARGE", 5)
    monkeypatch.setattr("spark_mv.spark.run.holding.WHOLE", 5)
    engine.model("select id, k, rand() as r from {schema}.src", sensitive_key=sensitive, refresh="full")
    engine.run()
    for number in range(2):
        engine.query(f"update {{schema}}.src set k = k + 1 where id = {number}")
        run = engine.run()
        asked = [sql for sql in engine.statements if "as highest," in sql]
        assert len(asked) == (number == 0 and not sensitive) and run.counts["updated"] == 1
        record = run.format.history(run.ask, engine.table, run.model_id).record
        assert (record.key_bound, record.key_floor) == ((None, None) if sensitive else ("9", "0"))


@pytest.mark.skipif(FORMAT != "delta", reason="Delta's history")
def test_what_others_commit_meanwhile_is_not_counted(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are those of the run's own commit."""
    from spark_mv.spark.run import publish

    counted = publish._rows_made

    def after_others(*given: Any) -> int:
        engine.query("insert into {schema}.mv values (100, 0.5)")
        return counted(*given)

    monkeypatch.setattr(publish, "_rows_made", after_others)
    engine.model("select id, rand() as r from {schema}.src")
    assert engine.run().counts["inserted"] == 10
