"""Tasks are killed while runs work, and Spark does them again: a draw is evaluated once for each row that is published, or the row is not there
twice. What reads a draw twice reads one value, and a value that is kept stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from threading import Event, Thread
from typing import Any

import pytest
from direct import Direct, Model, new_session, schema
from oracle_changes import FEED

ROWS = int(os.environ.get("KILLED_ROWS", "6000"))
NOW = "2026-01-31 00:00:00"
DRAWN = "rand() as r, uuid() as u"
MODELS = {
    "read twice": (
        "id",
        f"select id, n, r, r as same, if(r < 0.5, 'a', 'b') as split, u, concat(u, '') as text from (select id, n, {DRAWN} from s.t)",
    ),
    "behind a join": ("id", f"select id, n, name, {DRAWN} from s.t left join s.d on k = id_d"),
    "drawn rows": ("id", "select id, n from s.t where rand() < 0.3"),
    "behind a shuffle": ("id", f"select /*+ repartition(5) */ id, n, {DRAWN} from s.t"),
    "by group": ("k", f"select k, count(*) as c, sum(n) as n, {DRAWN} from s.t group by k"),
}


class Killer(Thread):
    """Kills about half of the tasks that it finds at work, each once; one that was killed three times may end."""

    def __init__(self, spark: Any) -> None:
        super().__init__(daemon=True)
        self.context, self.random = spark.sparkContext, Random(7)
        self.at_work, self.ended, self.killed = Event(), Event(), 0
        self.seen: set[int] = set()

    def run(self) -> None:
        context = self.context._jsc.sc()
        tracker = self.context.statusTracker()
        while not self.ended.is_set():
            self.at_work.wait(0.2)
            for stage in tracker.getActiveStageIds() if self.at_work.is_set() else ():
                info = context.statusTracker().getStageInfo(stage)
                attempt = info.get().currentAttemptId() if info.isDefined() else 0
                try:
                    tasks = context.statusStore().taskList(stage, attempt, 50)
                except Exception:  # the stage ended meanwhile
                    continue
                for task in (tasks.apply(number) for number in range(tasks.size())):
                    number = task.taskId()
                    if task.status() != "RUNNING" or number in self.seen:
                        continue
                    self.seen.add(number)
                    if task.attempt() < 3 and self.random.random() < 0.5:
                        self.killed += bool(context.killTaskAttempt(number, False, "a test"))


@contextmanager
def killing(spark: Any) -> Iterator[Killer]:
    killer = Killer(spark)
    killer.start()
    try:
        yield killer
    finally:
        killer.ended.set()
        killer.join(10)


@pytest.fixture
def session(spark: Any) -> Iterator[Direct]:
    made = Direct(new_session(spark))
    made.spark.conf.set("spark.sql.shuffle.partitions", "4")
    made.spark.conf.set("spark.sql.files.maxPartitionBytes", "100k")
    made.spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    with schema(made, "s"):
        made.query("create table s.d (id_d bigint, name string) using delta")
        made.query("insert into s.d select id, concat('n', id) from range(90)")
        made.query(f"create table s.t (id bigint, k bigint, n bigint, pad string) {FEED}")
        made.query(
            f"insert into s.t select /*+ repartition(6) */ id, id * 7919 % 100, id % 97, sha2(string(id), 256) from range({ROWS})"
        )
        yield made


def change(session: Direct, number: int) -> None:
    few = 50 if number % 2 else ROWS // 10
    session.query(f"insert into s.t select id + {(10 + number) * ROWS}, id % 100, 5, 'new' from range({few})")
    session.query(f"delete from s.t where id % 500 = {number}")
    session.query(f"update s.t set n = n + 1 where id % 400 = {number}")


@pytest.mark.parametrize(
    ("names", "rounds"), [([*MODELS][:1], 2), pytest.param([*MODELS], 5, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_draws_while_tasks_are_killed(session: Direct, names: list[str], rounds: int) -> None:
    models = {name: Model("s", f"m{k}", sql, {"unique_key": key}, choose_by="seconds")
              for k, (name, (key, sql)) in enumerate(MODELS.items()) if name in names}  # fmt: skip
    before: dict[str, dict[Any, dict[str, Any]]] = {}
    sources: set[Any] = set()
    with killing(session.spark) as killer:
        for number in range(rounds):
            if number:
                change(session, number)
            for name, model in models.items():
                killer.at_work.set()
                run = model.run(session, NOW, "full" if number % 2 else "auto")
                killer.at_work.clear()
                key, place = MODELS[name][0], f"{name}, run {number}: {run.plan.strategy}"
                rows = session.query(f"select * from {model.table}")
                now = {row[key]: row for row in rows}
                assert len(now) == len(rows), place
                old = before.get(name, {})
                same_rows(session, name, model, rows, place)
                for value in {"r", "u"} & {*rows[0]}:
                    assert all(now[k][value] == row[value] for k, row in old.items() if k in now), place
                    assert len({row[value] for row in rows}) == len(rows), place
                if name == "drawn rows" and old:
                    stay = sources & here(session)
                    assert stay & old.keys() == stay & now.keys(), place
                counts = (len(now.keys() - old), sum(old[k] != now[k] for k in now.keys() & old), len(old.keys() - now))
                found = tuple(run.counts.get(what, 0) for what in ("inserted", "updated", "deleted"))
                assert found == counts, place
                before[name] = now
            sources = here(session)
            tables = [row["tableName"] for row in session.query("show tables in s")]
            assert not [name for name in tables if "mv_stage" in name]
    assert killer.killed > 2 * rounds * len(models), "hardly a task was killed"


def here(session: Direct) -> set[Any]:
    return {row["id"] for row in session.query("select id from s.t")}


def same_rows(session: Direct, name: str, model: Model, rows: list[dict[str, Any]], place: str) -> None:
    """The table's rows are those of the query but for the draws; what reads one draw twice reads one value."""
    if name == "drawn rows":
        all_rows = {row["id"]: row["n"] for row in session.query("select id, n from s.t")}
        assert all(all_rows[row["id"]] == row["n"] for row in rows), place
        assert abs(len(rows) / len(all_rows) - 0.3) < 0.05, place
        return
    drawn = "same, split, text, r, u" if name == "read twice" else "r, u"
    plain = f"select * except ({drawn}) from"
    assert session.bag(f"{plain} {model.table}") == session.bag(f"{plain} ({model.sql})"), place
    if name == "read twice":
        assert all(
            row["r"] == row["same"] and row["u"] == row["text"] and row["split"] == ("a" if row["r"] < 0.5 else "b")
            for row in rows
        ), place
