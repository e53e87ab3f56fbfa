"""Models of one process that follow the same changes of a source: its feed is read by the first two, and held for all others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from direct import Direct, Model, new_session, schema
from integration_tests.under_format import delta_only

from spark_mv.spark.run import shared_changes
from spark_mv.spark.session import held_rows

pytestmark = delta_only("its feed of changes")
SCHEMA, NOW = "shared_feeds", "2026-01-31 00:00:00"
QUERIES = {
    "narrow": "select id, a from {s}.src",
    "wide": "select * from {s}.src",
    "half": "select id, b, c from {s}.src where a > 2",
    "grouped": "select c as id, count(*) as n, sum(a) as total from {s}.src group by c",
    "joined": "select l.id, l.a, r.a as other from {s}.src l left join {s}.src r on l.c = r.id",
    "drawn": "select id, b, rand() as split from {s}.src",
}


@pytest.fixture
def session(spark: Any) -> Iterator[Direct]:
    shared_changes._held.clear()
    with schema(Direct(new_session(spark)), SCHEMA) as made:
        made.query(
            f"create table {SCHEMA}.src using delta tblproperties (delta.enableChangeDataFeed = true) as "
            "select id, id % 7 as a, if(id % 5 = 0, null, concat('t', id % 3)) as b, id % 20 as c from range(200)"
        )
        yield made
        shared_changes._held.clear()


def models(*names: str) -> dict[str, Model]:
    return {
        name: Model(SCHEMA, name, QUERIES[name].format(s=SCHEMA), {"unique_key": "id"}, followed=True)
        for name in names or QUERIES
    }


def run(session: Direct, model: Model) -> int:
    """A run that follows the changes and leaves what the query gives. How often it read a feed."""
    done = model.run(session, NOW, "incremental")
    assert done.plan.strategy not in ("NO_OP", "COMPLETE_RECOMPUTE") and not session.warnings
    read = sum("table_changes(" in statement for statement in session.statements)
    is_like_its_query(session, model)
    return read


def is_like_its_query(session: Direct, model: Model) -> None:
    columns = "id, b" if "rand()" in model.sql else "*"
    got, wanted = (session.bag(f"select {columns} from {rows}") for rows in (model.table, f"({model.sql})"))
    assert got == wanted, model.name


def change(session: Direct, number: int) -> None:
    """Rows come, go, change in a column that some models read, and change back."""
    new = 1000 * (number + 1)
    session.query(
        f"insert into {SCHEMA}.src values ({new}, 3, null, 5), ({new + 1}, null, 'x', 7), ({new + 2}, 4, 'y', 5)"
    )
    session.query(f"delete from {SCHEMA}.src where id in ({new + 1}, {10 + number})")
    session.query(f"update {SCHEMA}.src set b = 'new {number}' where id % 40 = {number}")
    session.query(f"update {SCHEMA}.src set a = a + 1 where id % 50 = {number}")
    session.query(f"update {SCHEMA}.src set c = c + 1 where id = 33")
    session.query(f"update {SCHEMA}.src set c = c - 1 where id = 33")


def left(session: Direct) -> list[str]:
    """Held rows of which the session knows the name."""
    return [row["tableName"] for row in session.query("show tables") if "spark_mv_feed" in row["tableName"]]


class TestSharedChanges:
    def test_all_models_follow_them(self, session: Direct) -> None:
        """Each in the same session, and each in one of its own."""
        lives = models()
        for model in lives.values():
            model.run(session, NOW)
        drawn = dict(session.bag(f"select id, split from {SCHEMA}.drawn"))
        for number, sessions in enumerate(([session] * 6, [Direct(new_session(session.spark)) for _ in lives])):
            change(session, number)
            read = [run(*pair) for pair in zip(sessions, lives.values(), strict=True)]
            assert read[:2] == [1, 1] and not any(read[2:]), read
            assert not any(map(left, sessions))
        kept = dict(session.bag(f"select id, split from {SCHEMA}.drawn where id < 200"))
        assert kept.items() <= drawn.items()

    def test_rows_that_only_come(self, session: Direct) -> None:
        """Twice the same row, too."""
        session.query(
            f"create table {SCHEMA}.twice using delta tblproperties (delta.enableChangeDataFeed = true) as select 1 as id, 1 as a, 1 as c"
        )
        lives = [
            Model(
                SCHEMA,
                f"n{k}",
                f"select c as id, count(*) as n, sum(a) as s from {SCHEMA}.twice group by c",
                {"unique_key": "id"},
                followed=True,
            )
            for k in range(3)
        ]
        for model in lives:
            model.run(session, NOW)
        session.query(f"insert into {SCHEMA}.twice values (2, 5, 1), (2, 5, 1), (3, 1, 2)")
        assert [run(session, model) for model in lives] == [1, 1, 0]

    def test_at_the_same_time(self, session: Direct) -> None:
        lives = models("narrow", "half", "wide", "drawn")
        for model in lives.values():
            model.run(session, NOW)
        change(session, 0)
        each = [Direct(new_session(session.spark)) for _ in lives]
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(run, each, lives.values()))
        assert all(reads <= 1 for reads in read)
        assert not any(map(left, each))

    def test_a_table_made_anew(self, session: Direct) -> None:
        """Its versions have the same numbers."""
        lives = models("narrow", "half", "wide")
        for again in range(2):
            session.query(f"drop table if exists {SCHEMA}.src")
            session.query(
                f"create table {SCHEMA}.src using delta tblproperties (delta.enableChangeDataFeed = true) as "
                f"select id, id % 7 + {again} as a, 'b' as b, id as c from range(50)"
            )
            for model in lives.values():
                model.run(session, NOW)
            session.query(f"update {SCHEMA}.src set a = {again} where id = {again}")
            assert [run(session, model) for model in lives.values()] == [1, 1, 0]

    def test_lost_rows(self, session: Direct) -> None:
        """They are read anew."""
        lives = models("narrow", "half", "wide", "drawn")
        for model in lives.values():
            model.run(session, NOW)
        change(session, 0)
        assert [run(session, lives[name]) for name in ("narrow", "half")] == [1, 1]
        (held,) = (entry for entry in shared_changes._held.values() if entry.relation)
        held_rows._rows[held.relation[1:-1]].rdd().unpersist(True)
        assert [run(session, lives[name]) for name in ("wide", "drawn")] == [1, 1]
        assert not left(session)

    @pytest.mark.parametrize("fails", ["hold", "take"])
    def test_a_failure_that_only_sharing_has(
        self, session: Direct, monkeypatch: pytest.MonkeyPatch, fails: str
    ) -> None:
        """The run reads for itself, as do all others then: `refresh: incremental` has nothing to fall back on."""
        before = set(held_rows._rows)
        lives = models("narrow", "half", "wide")
        for model in lives.values():
            model.run(session, NOW)
        change(session, 0)
        run(session, lives["narrow"])
        with monkeypatch.context() as patch:
            patch.setattr(held_rows, "_hold", partial(_no_room, fails, held_rows._hold))
            assert run(session, lives["half"]) == 2
        assert run(session, lives["wide"]) == 1
        assert set(held_rows._rows) == before and not left(session)
        assert all(not entry.lock.locked() for entry in shared_changes._held.values())

    def test_few_are_held(self, session: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shared_changes, "MOST_FEEDS", 1)
        before = set(held_rows._rows)
        lives = models("narrow", "half")
        for model in lives.values():
            model.run(session, NOW)
        for number in range(2):
            change(session, number)
            assert [run(session, model) for model in lives.values()] == [1, 1]
            assert len(set(held_rows._rows) - before) == 1

    @pytest.mark.parametrize("column", ["array(1.5D) as b", "'b' as b, 1 as __mv_count"])
    def test_what_is_not_shared(self, session: Direct, column: str) -> None:
        """Values that equality does not tell, names that the engine has."""
        session.query(f"drop table {SCHEMA}.src")
        session.query(
            f"create table {SCHEMA}.src using delta tblproperties (delta.enableChangeDataFeed = true) as "
            f"select id, id % 7 as a, id as c, {column} from range(50)"
        )
        lives = models("narrow", "half", "grouped")
        for model in lives.values():
            model.run(session, NOW)
        session.query(f"update {SCHEMA}.src set a = 100 where id = 5")
        assert [run(session, model) for model in lives.values()] == [1, 1, 1]

    def test_another_way_of_reading(self, session: Direct) -> None:
        """A setting that decides what values are."""
        lives, other = models("narrow", "half", "wide"), Direct(new_session(session.spark))
        other.query("set spark.sql.readSideCharPadding = false")
        each = dict(zip(lives, (session, session, other), strict=True))
        for name, model in lives.items():
            model.run(each[name], NOW)
        change(session, 0)
        assert [run(each[name], model) for name, model in lives.items()] == [1, 1, 1]


def _no_room(fails: str, hold: Any, spark: Any, name: str, query: str) -> None:
    if "spark_mv_feed" in (name if fails == "hold" else query):
        raise RuntimeError("no room")
    hold(spark, name, query)
