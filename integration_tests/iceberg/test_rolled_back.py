"""A model's Iceberg table that somebody puts back: the values that the last run kept are those that stay, as after a RESTORE of Delta's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from direct import Model, Pool, schema

from spark_mv.spark.formats import iceberg_log, iceberg_target

S = "put_back"


class Killed(BaseException):
    """The end of a process."""


def killed(*_: Any) -> None:
    raise Killed


@pytest.fixture
def pool(spark: Any) -> Iterator[Pool]:
    found = Pool(spark, 1, "iceberg")
    with schema(found.first, S) as session:
        session.query(f"create table {S}.src using iceberg as select id, id % 3 as a from range(4)")
        yield found


@pytest.mark.parametrize("by", ["metadata", "statements"])
def test_what_was_kept_stays(pool: Pool, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    if by == "statements":
        monkeypatch.setattr(iceberg_log, "_from_metadata", lambda *_: None)
    session = pool.first
    model = Model(S, f"drawn_{by}", f"select id, a, rand() as r from {S}.src", {"unique_key": "id"})

    def rows() -> dict[int, tuple[int, float]]:
        return {row["id"]: (row["a"], row["r"]) for row in session.query(f"select * from {model.table}")}

    def newest() -> int:
        return int(session.query(f"select snapshot_id as s from {model.table}.refs where name = 'main'")[0]["s"])

    def run(day: int) -> str:
        model.run(session, f"2026-02-{day:02} 06:00:00")
        return " ".join(session.warnings)

    def put_back(to: int) -> None:
        session.query(f"call iceberg_catalog.system.set_current_snapshot('{model.table}', {to})")

    run(1)
    first = newest()
    session.query(f"insert into {S}.src select id, 0 from range(10, 14)")
    run(2)
    second, kept = newest(), rows()
    assert len(kept) == 8
    put_back(first)
    assert len(rows()) == 4
    assert "ROLLBACK" in run(3)
    assert rows() == kept
    assert "ROLLBACK" not in run(4) and rows() == kept
    # a run that writes what differs, and rows of somebody else's behind it
    session.query(f"insert into {S}.src values (14, 0)")
    run(4)
    kept = rows()
    assert len(kept) == 9
    put_back(second)
    session.query(f"delete from {model.table} where id < 2")
    session.query(f"delete from {S}.src where id = 3")
    session.query(f"insert into {S}.src values (20, 1)")
    assert "ROLLBACK" in run(5)
    now = rows()
    assert {id: row for id, row in now.items() if id != 20} == {id: row for id, row in kept.items() if id != 3}
    # a run that died before it made its branch the table left nothing that counts
    third = newest()
    session.query(f"insert into {S}.src values (21, 1)")
    with monkeypatch.context() as patch:
        patch.setattr(iceberg_target, "_move_main", killed)
        with pytest.raises(Killed):
            run(6)
    assert rows() == now
    assert "ROLLBACK" not in run(6) and {id: row for id, row in rows().items() if id != 21} == now
    put_back(third)
    # by statements alone, the dead run's branch looks like another's ALTER TABLE, and the run behind it made the table anew
    assert ("ROLLBACK" in run(7)) == (by == "metadata") and len(rows()) == len(now) + 1
