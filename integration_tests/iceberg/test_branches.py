"""The branches of runs, where one of two runs makes the table anew: CREATE OR REPLACE writes those that it saw when it began."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from direct import Direct, Pool, schema
from pyspark.sql.types import LongType

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.spark.formats import iceberg_branches, iceberg_target
from spark_mv.spark.formats.iceberg_log import loaded_table, read_log
from spark_mv.spark.formats.table_format import Publishing
from spark_mv.spark.formats.turn import Turn, tagged

TABLE = "branches.`mv`"


@dataclass
class Anew:
    """A run that makes the table anew and waits in the middle of its statement. The other one works in a session of its own."""

    session: Direct
    other: Direct
    folder: Path

    def asked(self, anew: bool = False) -> Publishing:
        newest = read_log(self.other.query, TABLE, 1).newest
        run_id = uuid.uuid4().hex
        turn = Turn(TABLE, "mv", 1, f'{{"run_id":"{run_id}"}}', run_id)
        return Publishing(turn, None if newest is None else newest.id, run_id[:8], anew)

    def while_it_works(self, do: Callable[[], object]) -> None:
        asked, began, go_on = self.asked(anew=True), self.folder / "began", self.folder / "go_on"

        def wait(id: int) -> int:
            began.touch()
            until = time.monotonic() + 60
            while not go_on.exists() and time.monotonic() < until:
                time.sleep(0.02)
            return id

        self.session.spark.udf.register("wait", wait, LongType())
        made = f"create or replace table iceberg_catalog.{TABLE} using iceberg as select wait(id) as id, 'anew' as name from range(1)"
        write = lambda: self.session.query(made)  # noqa: E731
        with ThreadPoolExecutor(1) as thread:
            run = thread.submit(iceberg_target.publish, asked, self.session, self.session.query, write)
            try:
                until = time.monotonic() + 60
                while not began.exists() and not run.done() and time.monotonic() < until:
                    time.sleep(0.02)
                assert began.exists() and not run.done()
                do()
            finally:
                go_on.touch()
            run.result()
        assert self.session.query(f"select name from {TABLE}") == [{"name": "anew"}]

    def drop(self, name: str) -> None:
        """As a run does that was too late."""
        branches = iceberg_branches.branches_of(self.other, self.other.query, TABLE)
        iceberg_target._drop_branch(branches, name, TABLE, self.other)

    @property
    def branches(self) -> list[str]:
        return [str(name) for name in loaded_table(self.other.spark, TABLE).refs().keySet() if name != "main"]


@pytest.fixture
def anew(spark: Any, tmp_path: Path) -> Iterator[Anew]:
    sessions = list(Pool(spark, 2, "iceberg").sessions.queue)
    found = Anew(sessions[0], sessions[1], tmp_path)
    with schema(found.other, "branches"):
        found.other.query(f"create table {TABLE} using iceberg as select id, 'first' as name from range(3)")
        yield found


def test_a_branch_that_was_dropped_meanwhile_stays_dropped(anew: Anew) -> None:
    """The second of two runs at once had made its branch, was too late, and drops it."""
    anew.other.query(f"alter table iceberg_catalog.{TABLE} create branch mv_second")
    anew.other.query(f"alter table iceberg_catalog.{TABLE} create branch theirs")
    anew.while_it_works(lambda: anew.drop("mv_second"))
    assert anew.branches == ["theirs"] and not anew.session.warnings


def test_a_branch_that_was_made_meanwhile_is_gone_and_its_run_says_so(anew: Anew) -> None:
    made, go_on = Event(), Event()

    def second() -> None:
        asked = anew.asked()

        def write() -> None:
            made.set()
            assert go_on.wait(60)
            anew.other.query(f"insert into {iceberg_target.branch_of(TABLE, asked.branch)} values (7, 'second')")

        iceberg_target.publish(asked, anew.other, anew.other.query, write)

    with ThreadPoolExecutor(1) as thread:
        run: list[Future[None]] = []

        def begins() -> None:
            run.append(thread.submit(second))
            assert made.wait(60) and anew.branches

        try:
            anew.while_it_works(begins)
        finally:
            go_on.set()
        with pytest.raises(TurnTaken):
            run[0].result()
    assert anew.branches == [] and anew.other.query(f"select name from {TABLE}") == [{"name": "anew"}]


def test_who_publishes_meanwhile_is_first(anew: Anew) -> None:
    """However long the other one's statement takes: the table is what the first one published."""

    def publishes() -> None:
        asked = anew.asked()
        to = iceberg_target.branch_of(TABLE, asked.branch)
        write = lambda: anew.other.query(f"insert into {to} values (7, 'first')")  # noqa: E731
        iceberg_target.publish(asked, anew.other, anew.other.query, write)

    with pytest.raises(TurnTaken):
        anew.while_it_works(publishes)
    rows = anew.other.bag(f"select id, name from {TABLE}")
    assert rows == {(0, "first"): 1, (1, "first"): 1, (2, "first"): 1, (7, "first"): 1}
    assert anew.branches == [] and not anew.session.warnings
    anew.other.query(f"insert into {TABLE} values (8, 'later')")
    assert anew.other.bag(f"select id, name from {TABLE}").total() == 5


def test_what_a_dead_run_left_goes_where_the_table_is_made_anew(anew: Anew) -> None:
    for name in ("mv_dead", "mv_live"):
        anew.other.query(f"alter table iceberg_catalog.{TABLE} create branch {name}")
    asked = anew.asked(anew=True)
    asked = Publishing(asked.turn, asked.base, asked.branch, anew=True, dead=lambda stamp: stamp == "dead")
    made = f"create or replace table iceberg_catalog.{TABLE} using iceberg as select 1 as id"
    iceberg_target.publish(asked, anew.session, anew.session.query, lambda: anew.session.query(made))
    assert anew.branches == ["mv_live"]


def test_of_two_that_drop_what_a_dead_run_left_both_go_on(anew: Anew) -> None:
    anew.other.query(f"alter table iceberg_catalog.{TABLE} create branch mv_dead")

    def dead(stamp: str) -> bool:
        anew.other.query(f"alter table iceberg_catalog.{TABLE} drop branch if exists mv_{stamp}")
        return stamp == "dead"

    asked = anew.asked()
    asked = Publishing(asked.turn, asked.base, asked.branch, dead=dead)
    to = iceberg_target.branch_of(TABLE, asked.branch)
    write = lambda: anew.session.query(f"insert into {to} values (7, 'mine')")  # noqa: E731
    iceberg_target.publish(asked, anew.session, anew.session.query, write)
    assert anew.branches == [] and not anew.session.warnings
    assert {"name": "mine"} in anew.session.query(f"select name from {TABLE}")


def test_a_table_that_a_client_of_a_server_makes_anew_is_held(anew: Anew) -> None:
    """By the commit that claims it, see integration_tests/servers/test_iceberg_tables.py."""

    def publish(id: int) -> None:
        asked = anew.asked()
        asked = Publishing(asked.turn, asked.base, asked.branch, dead=lambda stamp: stamp == "dead")
        to = iceberg_target.branch_of(TABLE, asked.branch)
        write = lambda: anew.session.query(f"insert into {to} values ({id}, 'mine')")  # noqa: E731
        iceberg_target.publish(asked, anew.session, anew.session.query, write)

    def held_by(stamp: str) -> None:
        with tagged(anew.other, {iceberg_branches.HELD: stamp}):
            anew.other.query(f"insert into {TABLE} select * from {TABLE} where false")

    held_by("dead")
    publish(7)
    held_by("live")
    anew.other.query(f"insert into {TABLE} values (20, 'theirs')")
    with pytest.raises(RunFailed, match="TABLE_HELD"):
        publish(8)
    with pytest.raises(RunFailed, match="TABLE_HELD"):
        iceberg_target.say_with_a_commit(anew.session, anew.session.query, TABLE, "{}")
    held_by(iceberg_branches.RELEASED)
    publish(9)
    assert anew.other.bag(f"select id from {TABLE} where id > 5") == {(7,): 1, (9,): 1, (20,): 1}
    assert anew.branches == [] and not anew.session.warnings


class Overtaken:
    """A table where somebody else makes a branch between each change of branches, at its first try, and its commit."""

    def __init__(self, real: Any, anew: Anew, seen: set[str]) -> None:
        self.real, self.anew, self.seen, self.said = real, anew, seen, ""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if name not in {"manageSnapshots", "createBranch", "fastForwardBranch", "removeBranch", "commit"}:
            return found

        def call(*words: Any) -> Any:
            if name == "commit":
                if self.said not in self.seen:
                    self.seen.add(self.said)
                    self.anew.other.query(f"alter table iceberg_catalog.{TABLE} create branch theirs_{len(self.seen)}")
                return found()
            wrapped = Overtaken(found(*words), self.anew, self.seen)
            wrapped.said = f"{self.said} {name}"
            return wrapped

        return call


def test_a_branch_that_somebody_else_makes_takes_no_turn(anew: Anew, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    monkeypatch.setattr(iceberg_branches, "loaded_table", lambda *words: Overtaken(loaded_table(*words), anew, seen))
    asked = anew.asked()
    to = iceberg_target.branch_of(TABLE, asked.branch)
    write = lambda: anew.session.query(f"insert into {to} values (7, 'mine')")  # noqa: E731
    iceberg_target.publish(asked, anew.session, anew.session.query, write)
    assert len(seen) == 2 and {"name": "mine"} in anew.session.query(f"select name from {TABLE}")
    assert sorted(anew.branches) == ["theirs_1", "theirs_2"] and not anew.session.warnings


def test_what_others_do_right_behind_it_takes_nothing_from_it(anew: Anew) -> None:
    """One who was too late drops its branch, another one has begun and published already, before the run looks whether it was the first."""
    anew.other.query(f"alter table iceberg_catalog.{TABLE} create branch mv_second")
    made = f"create or replace table iceberg_catalog.{TABLE} using iceberg as select 1L as id, 'anew' as name"

    def published(then: Callable[[], object]) -> None:
        def write() -> None:
            anew.session.query(made)
            then()

        iceberg_target.publish(anew.asked(anew=True), anew.session, anew.session.query, write)

    def next_run() -> None:
        asked = anew.asked()
        to = iceberg_target.branch_of(TABLE, asked.branch)
        write = lambda: anew.other.query(f"insert into {to} values (7, 'next')")  # noqa: E731
        iceberg_target.publish(asked, anew.other, anew.other.query, write)

    published(lambda: anew.drop("mv_second"))
    assert anew.other.bag(f"select id, name from {TABLE}") == {(1, "anew"): 1} and anew.branches == []
    published(next_run)
    assert anew.other.bag(f"select id, name from {TABLE}") == {(1, "anew"): 1, (7, "next"): 1} and anew.branches == []


@pytest.mark.parametrize("looks", ["at once", "behind the other", "last"])
def test_of_two_that_make_it_anew_the_last_to_claim_it_publishes(anew: Anew, looks: str) -> None:
    """Whenever the first one, whose statement overlooks the claim, finds that out."""
    claimed, go_on, replaced, end = Event(), Event(), Event(), Event()
    made = f"create or replace table iceberg_catalog.{TABLE} using iceberg as select 1L as id, '{{}}' as name"

    def first() -> None:
        claimed.set()
        assert go_on.wait(60)
        anew.session.query(made.format("first"))
        replaced.set()
        assert end.wait(60)

    with ThreadPoolExecutor(1) as thread:
        asked = anew.asked(anew=True)
        run = thread.submit(iceberg_target.publish, asked, anew.session, anew.session.query, first)

        def second() -> None:
            go_on.set()
            assert replaced.wait(60)
            if looks == "at once":
                end.set()
                assert isinstance(run.exception(), TurnTaken)
            anew.other.query(made.format("second"))
            if looks == "behind the other":
                end.set()
                assert isinstance(run.exception(), TurnTaken)

        try:
            assert claimed.wait(60)
            iceberg_target.publish(anew.asked(anew=True), anew.other, anew.other.query, second)
        finally:
            go_on.set()
            end.set()
        assert isinstance(run.exception(), TurnTaken)
    assert anew.other.query(f"select name from {TABLE}") == [{"name": "second"}]
    assert anew.branches == [] and not anew.session.warnings and not anew.other.warnings
