"""Columns of a model's Iceberg table that somebody else changes by hand: Iceberg makes no snapshot of that, and the values may be gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from direct import Direct, Model, Pool, schema

S = "reshaped"
AT = "2026-02-01 06:00:00"
TABLE = f"iceberg_catalog.{S}.mv"


@pytest.fixture
def session(spark: Any) -> Iterator[Direct]:
    with schema(Pool(spark, 1, "iceberg").first, S) as session:
        session.query(
            f"create table {S}.src using iceberg as select cast(id as int) as id, cast(10 * id as int) as v from range(10)"
        )
        yield session


def model() -> Model:
    return Model(S, "mv", f"select id, v, rand() as drawn from {S}.src", {"unique_key": "id"})


@pytest.mark.parametrize("more", [False, True], ids=["", "and a row more"])
@pytest.mark.parametrize(
    "statements",
    [
        ("drop column v", "add column v int after id"),
        ("drop column drawn", "add column drawn double"),
        ("rename column id to zz", "rename column v to id", "rename column zz to v"),
        ("rename column v to w",),
        ("drop column v",),
        ("add column mine string",),
    ],
    ids=lambda statements: statements[0] + f" {len(statements)}",
)
def test_the_next_run_puts_it_right(session: Direct, statements: tuple[str, ...], more: bool) -> None:
    mv = model()
    mv.run(session, AT)
    before = {row["id"]: row["drawn"] for row in session.query(f"select id, drawn from {mv.table}")}
    for statement in statements:
        session.query(f"alter table {TABLE} {statement}")
    if more:
        session.query(f"insert into {S}.src values (10, 100)")
    mv.run(session, AT)
    assert session.bag(f"select id, v from {mv.table}") == session.bag(f"select id, v from {S}.src")
    now = {row["id"]: row["drawn"] for row in session.query(f"select id, drawn from {mv.table}")}
    assert {key: now[key] for key in before} == before and None not in now.values()
    assert mv.run(session, AT).plan.strategy == "NO_OP"


def test_a_comment_and_another_order_are_no_other_columns(session: Direct) -> None:
    mv = model()
    mv.run(session, AT)
    session.query(f"alter table {TABLE} alter column v comment 'of the source'")
    session.query(f"alter table {TABLE} alter column v first")
    assert mv.run(session, AT).plan.strategy == "NO_OP"
    session.query(f"insert into {S}.src values (10, 100)")
    assert mv.run(session, AT).plan.strategy != "COMPLETE_RECOMPUTE"
    assert session.bag(f"select id, v from {mv.table}") == session.bag(f"select id, v from {S}.src")
