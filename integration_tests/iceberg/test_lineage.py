"""The ids that rows of format v3 have tell what changed, whatever writes to the table; where they cannot be trusted, versions are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from direct import Direct, Model, Pool, schema

SCHEMA = "lineage"
MODEL = f"select id, k, name, m, rand() as drawn from {SCHEMA}.src where k <> 3"
AT = "2026-02-01 06:00:00"
PROPERTIES = {
    "merge-on-read": ", ".join(f"'write.{verb}.mode' = 'merge-on-read'" for verb in ("update", "delete", "merge")),
    "copy-on-write": "'write.parquet.row-group-size-bytes' = '65536'",
}
CHANGES = (
    "update {s} set name = 'changed' where id % 10 = 1",
    "delete from {s} where id % 10 = 2",
    "merge into {s} t using (select id from range(95, 105)) c on t.id = c.id when matched and t.id = 97 then delete "
    "when matched then update set k = t.k + 1 when not matched then insert (id, k, name, m) values (c.id, 4, 'new', null)",
    "update {s} set id = id + 1000 where id = 6; delete from {s} where id = 7; insert into {s} values (7, 1, 'again', map('a', 1D))",
    # a file more than once, and a row that goes back to what it was
    "update {s} set name = 'x' where id < 20; update {s} set name = 'y' where id < 10; update {s} set k = k where id = 15",
    "call iceberg_catalog.system.rewrite_data_files(table => '{s}', options => map('rewrite-all', 'true')); delete from {s} where id = 21",
    "insert overwrite {s} select id, k, name, m from {s} where id <> 22; update {s} set k = 5 where id = 23",
    "call iceberg_catalog.system.rewrite_manifests('{s}'); update {s} set m = map('b', 2D) where id = 24",
    "delete from {s} where k = 4; insert into {s} select id, 4, 'back', null from range(500, 510); delete from {s} where id = 505",
)


def change(session: Direct, statements: str) -> None:
    for statement in statements.format(s=f"{SCHEMA}.src").split("; "):
        session.query(statement)


@pytest.fixture
def session(spark: Any) -> Iterator[Direct]:
    with schema(Pool(spark, 1, "iceberg").first, SCHEMA) as session:
        yield session


def source(session: Direct, mode: str, version: int = 3) -> None:
    session.query(
        f"create table {SCHEMA}.src using iceberg tblproperties ('format-version' = '{version}', {PROPERTIES[mode]}) as "
        "select id, cast(id % 4 as int) as k, concat('a', id) as name, map('a', cast(id as double)) as m from range(200)"
    )


def how(run: Any) -> set[str]:
    return {step.args["how"] for step in run.plan.steps if step.kind == "stage_source_changes"}


def kept(session: Direct, model: Model) -> dict[Any, Any]:
    return {row["id"]: row["drawn"] for row in session.query(f"select id, drawn from {model.table}")}


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[pytest.mark.slow] if at else []) for at, mode in enumerate(PROPERTIES)]
)
def test_every_change_is_seen(session: Direct, mode: str) -> None:
    source(session, mode)
    model = Model(SCHEMA, "mv", MODEL, {"unique_key": "id", "on_source_delete": "delete"})
    model.run(session, AT)
    ways: Counter[str] = Counter()
    for number in range(len(CHANGES)):
        before = kept(session, model)
        rows = {row["id"]: row for row in session.query(f"select * from {SCHEMA}.src where k <> 3")}
        change(session, CHANGES[number])
        run = model.run_incrementally(session, AT)
        ways.update(how(run))
        wanted = f"select id, k, name, m from {SCHEMA}.src where k <> 3"
        assert session.bag(f"select id, k, name, m from {model.table}") == session.bag(wanted), number
        now = kept(session, model)
        assert {key: now[key] for key in before if key in now} == {key: before[key] for key in before if key in now}
        assert run.plan.strategy == "ROW_BASED", (number, run.plan.candidates)
        changed = {
            row["id"] for row in session.query(f"select * from {SCHEMA}.src where k <> 3") if rows.get(row["id"]) != row
        }
        assert run.counts["inserted"] + run.counts["updated"] == len(changed), number
    assert (
        ways["lineage"] == len(CHANGES)
        if mode == "merge-on-read"
        else ways["lineage"] > 0 and ways.keys() <= {"lineage", "changelog"}
    ), ways


def test_ids_that_do_not_tell(session: Direct) -> None:
    """Rows of format v2 have none, and those of a table that was one had none before; a column may have such a name."""
    source(session, "merge-on-read", 2)
    model = Model(SCHEMA, "mv", MODEL, {"unique_key": "id"})
    model.run(session, AT)
    for statement, expected in (
        (f"update {SCHEMA}.src set name = 'b' where id = 1", "snapshots"),
        (f"alter table {SCHEMA}.src set tblproperties ('format-version' = '3')", None),
        (f"update {SCHEMA}.src set name = 'c' where id = 1", "snapshots"),
    ):
        session.query(statement)
        if expected:
            assert how(model.run_incrementally(session, AT)) == {expected}
            wanted = session.bag(f"select id, k, name, m from {SCHEMA}.src where k <> 3")
            assert session.bag(f"select id, k, name, m from {model.table}") == wanted
