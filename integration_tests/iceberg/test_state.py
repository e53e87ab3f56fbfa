"""A model's state table in an Iceberg table: a sample that stays the same sample, whatever happens to the table of its draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from direct import Model, Pool, schema

from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.formats import iceberg_target

S = "kept_state"
AT = "2026-02-03 06:00:00"
SAMPLE = f"select id, at, uuid() as u from {S}.src where rand() < 0.4 and at >= current_timestamp() - interval 3 days"


@pytest.fixture
def pool(spark: Any) -> Iterator[Pool]:
    found = Pool(spark, 1, "iceberg")
    with schema(found.first, S) as session:
        session.query(
            f"create table {S}.src using iceberg as select id, timestamp'2026-02-01 00:00:00' + make_interval(0, 0, 0, 0, id % 40) as at "
            "from range(200)"
        )
        yield found


def test_a_sample_outlives_what_happens_to_its_state(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    session, model = pool.first, Model(S, "sample", SAMPLE, {"unique_key": "id"})
    state = f"{S}.sample__state"

    def values() -> dict[Any, Any]:
        return {row["id"]: row["u"] for row in session.query(f"select id, u from {model.table}")}

    def newest() -> int:
        return int(session.query(f"select snapshot_id as s from {state}.refs where name = 'main'")[0]["s"])

    def run(at: str = AT) -> Any:
        done = model.run(session, at)
        assert not session.warnings, session.warnings
        return done

    run()
    assert {r["col_name"]: r["data_type"] for r in session.query(f"describe extended {state}")}["Provider"] == "iceberg"
    sample = values()
    assert 50 < len(sample) < 110
    first = newest()
    assert run().plan.strategy == "NO_OP" and newest() == first
    # candidates come and go: who is known keeps its draw, and who is gone is dropped from the state
    session.query(f"insert into {S}.src select id, timestamp'2026-02-03 00:00:00' from range(1000, 1050)")
    session.query(f"delete from {S}.src where id < 20")
    run()
    assert {k: v for k, v in values().items() if k < 1000} == {k: v for k, v in sample.items() if k >= 20}
    assert session.query(f"select count(*) as n from {state} where id < 20")[0]["n"] == 0
    sample = values()

    # written to by somebody else: read as it was before
    session.query(f"delete from {state}")
    session.query(f"insert into {S}.src values (2000, timestamp'2026-02-03 01:00:00')")
    model.run(session, AT)
    assert "something else wrote to it (DELETE)" in " ".join(session.warnings)
    assert {k: v for k, v in values().items() if k != 2000} == sample

    # rolled back: an older copy. Rows of the table stay
    before = newest()
    session.query(f"insert into {S}.src values (2001, timestamp'2026-02-03 01:00:00')")
    run()
    sample = values()
    session.query(f"call iceberg_catalog.system.rollback_to_snapshot('{state}', {before})")
    session.query(f"insert into {S}.src values (2002, timestamp'2026-02-03 01:00:00')")
    model.run(session, AT)
    assert "it is an older copy" in " ".join(session.warnings)
    assert {k: v for k, v in values().items() if k in sample} == sample

    # a run that dies between its two tables: the next one finds its draws
    session.query(f"insert into {S}.src select id, timestamp'2026-02-03 00:00:00' from range(3000, 3060)")
    moving = iceberg_target._move_main

    def killed(loaded: Any, name: str, asked: Any) -> None:
        if asked.turn.table == model.table:
            raise RunFailed("KILLED", "killed")
        moving(loaded, name, asked)

    with monkeypatch.context() as patch:
        patch.setattr(iceberg_target, "_move_main", killed)
        with pytest.raises(RunFailed):
            model.run(session, AT)
    drawn = {row["id"] for row in session.query(f"select id from {state} where id >= 3000 and __mv_draw_0 < 0.4")}
    run()
    assert {k for k in values() if k >= 3000} == drawn and drawn
    # expired with all that went before, it is the state all the same
    session.query(
        f"call iceberg_catalog.system.expire_snapshots(table => '{state}', older_than => timestamp'2090-01-01 00:00:00', retain_last => 1)"
    )
    sample = values()
    session.query(f"insert into {S}.src values (4000, timestamp'2026-02-03 01:00:00')")
    run()
    assert {k: v for k, v in values().items() if k != 4000} == sample
