"""Models whose tables are Iceberg's, over Spark Connect and Thrift: a catalogue of Iceberg's is the default one, and SQL is all there is."""

from __future__ import annotations

import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from integration_tests.ai.endpoint import Endpoint
from integration_tests.servers.conftest import Project, day, response, target
from integration_tests.servers.server import CONNECT, THRIFT, Server

sys.path.insert(0, str(Path(__file__).parents[1] / "incremental"))
from direct import Direct

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.spark.formats import iceberg_branches, iceberg_target
from spark_mv.spark.formats.iceberg_log import read_log
from spark_mv.spark.formats.table_format import Publishing
from spark_mv.spark.formats.turn import Turn, tagged
from spark_mv.spark.run.stamps import is_dead
from spark_mv.spark.session.session import open_session

SAMPLE = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, body, rand() as draw{{ var('more', '') }} from {{ ref('raw') }} where rand() < 0.5
"""
CHANGES = (
    "insert into demo.raw values (100, 'text 1', date'2026-01-31'), (101, 'text 9', date'2026-01-31')",
    "delete from demo.raw where id = 1",
    "update demo.raw set body = 'text 3' where id = 7",
)


@pytest.fixture(scope="module")
def connect(home: Path) -> Iterator[Server]:
    # a Connect session tells its process, and what that starts, to have no Spark of their own
    with (
        patch.dict(os.environ),
        Server(CONNECT, home / "connect", {"spark.driver.memory": "2g"}, iceberg="hadoop") as server,
    ):
        yield server


def life(folder: Path, **connection: Any) -> None:
    """Two days of models with AI, draws, a window and a state table: changed, unchanged, with a column more, made anew."""
    rows = {"query": "select id, body, draw, kind from demo.tickets where today is not null order by id"}
    sample = {"query": "select id, draw from demo.sample order by id"}
    left = {"query": "select name from demo.tickets.refs union all select name from demo.sample__state.refs"}
    wider = {"dbt": [*day(2)["dbt"][:-1], '{"as_of": "2026-02-02 06:00:00", "more": ", upper(body) as loud"}']}
    with Endpoint() as endpoint:
        project = Project(folder, {"dev": target(endpoint.url, file_format="iceberg", **connection)})
        (folder / "models" / "sample.sql").write_text(SAMPLE, encoding="utf-8")
        found = project.run(
            *({"dbt": ["seed"]}, day(1), rows, sample, day(1)),
            *({"sql": text} for text in CHANGES),
            *(day(1), rows, sample, day(2), rows, wider, day(2, "--full-refresh"), rows, sample, day(2), left),
        )
    _, first, before, drawn, again, *_ = found
    changed, edited, redrawn, moved, late, widened, anew, whole, still, end, names = found[8:]
    assert response(first, "tickets")["rows_inserted"] == 12 and sum(_calls(first)) == 6
    assert all(response(again, name)["code"] == "NO_OP" for name in ("tickets", "kinds", "sample"))
    # row 7 has the text of others, and 101 one that is new: that alone is asked
    assert (response(changed, "tickets")["rows_inserted"], response(changed, "tickets")["rows_deleted"]) == (2, 1)
    assert sum(_calls(changed)) == 1
    values = {row[0]: row[2] for row in before}
    assert {row[0]: row[2] for row in edited if row[0] in values} == {k: v for k, v in values.items() if k != 1}
    assert {row[0] for row in edited} == {*values, 100, 101} - {1}
    kept = dict(map(tuple, drawn))
    assert {row[0]: row[1] for row in redrawn if row[0] in kept} == {k: v for k, v in kept.items() if k != 1}
    assert response(moved, "tickets")["rows_evicted"] == len(edited) - len(late) > 0
    assert all(row in edited for row in late)
    assert response(widened, "sample")["code"] == "REPLACE" and response(anew, "tickets")["code"] == "REPLACE"
    assert whole == late and still == redrawn and sum(_calls(anew)) == 0
    assert all(response(end, name)["code"] == "NO_OP" for name in ("tickets", "kinds", "sample"))
    assert names == [["main"], ["main"]]


def _calls(step: Any) -> list[int]:
    return [response(step, name)["ai_calls"] for name in ("tickets", "kinds")]


def test_days_over_connect(connect: Server, home: Path) -> None:
    life(home / "days", method="session", host=f"sc://127.0.0.1:{connect.port}")


@pytest.mark.slow
def test_days_over_thrift(home: Path) -> None:
    with Server(THRIFT, home / "thrift", {"spark.driver.memory": "2g"}, iceberg="hive") as server:
        life(home / "days by thrift", method="thrift", host="127.0.0.1", port=server.port, user="dbt")


def test_columns_that_somebody_changes(connect: Server, home: Path) -> None:
    """Put right by the next run, though no source changed; kept values are those of the last run's version."""
    rows = {"query": "select id, loud, draw from demo.shaped order by id"}
    model = """{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, upper(body) as loud, rand() as draw from {{ ref('raw') }}"""
    project = Project(
        home / "shaped",
        {"dev": target("", method="session", host=f"sc://127.0.0.1:{connect.port}", file_format="iceberg")},
        {"models/shaped.sql": model, "seeds/raw.csv": "id,body\n1,a\n2,b\n"},
    )
    changes = (
        ["drop column draw", "add column draw double"],
        ["rename column loud to was", "add column loud string"],
        ["drop column loud"],
        ["add column more int"],
    )
    steps = [[{"sql": f"alter table demo.shaped {text}"} for text in texts] for texts in changes]
    first, before, *later = project.run(
        {"dbt": ["seed", "--full-refresh"]}, day(1), rows, *(s for each in steps for s in (*each, day(1), rows, day(1)))
    )[1:]
    assert response(first, "shaped")["rows_inserted"] == len(before) == 2
    for texts in changes:
        *_, mended, after, again = later[: len(texts) + 3]
        later = later[len(texts) + 3 :]
        assert response(mended, "shaped")["code"] != "NO_OP" and after == before, texts
        assert response(again, "shaped")["code"] == "NO_OP", texts


TABLE = "held.`mv`"


class Writers:
    """Two clients of the server, and runs of theirs that write what a test says."""

    def __init__(self, url: str) -> None:
        self.one, self.two = (Direct(_session(url), "iceberg") for _ in range(2))

    def asked(self, anew: bool = False, begun: float | None = None) -> Publishing:
        newest = read_log(self.two.query, TABLE, 1).newest
        run_id = uuid.uuid4().hex
        turn = Turn(TABLE, "mv", 1, f'{{"run_id":"{run_id}"}}', run_id)
        stamp = f"{int(begun or time.time()):x}_{run_id[:12]}"
        return Publishing(turn, newest and newest.id, stamp, anew, dead=lambda stamp: is_dead(stamp, False))

    def publish(self, client: Direct, asked: Publishing, write: Callable[[str], object]) -> None:
        to = TABLE if asked.anew else iceberg_target.branch_of(TABLE, asked.branch)
        iceberg_target.publish(asked, client, client.query, lambda: write(to))

    def add(self, id: int) -> None:
        self.publish(self.two, self.asked(), lambda to: self.two.query(f"insert into {to} values ({id}, 'added')"))

    def made_anew(self, meanwhile: Callable[[], object], begun: float | None = None) -> None:
        def write(to: str) -> None:
            meanwhile()
            self.one.query(f"create or replace table {to} using iceberg as select 1 as id, 'anew' as name")

        self.publish(self.one, self.asked(anew=True, begun=begun), write)

    @property
    def names(self) -> list[str]:
        self.two.query(f"refresh table {TABLE}")
        return [row["name"] for row in self.two.query(f"select name from {TABLE} order by id")]


def _session(url: str) -> Any:
    session = open_session({"spark.remote": url}, Path(), Path())
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


@pytest.fixture
def writers(connect: Server) -> Iterator[Writers]:
    found = Writers(f"sc://127.0.0.1:{connect.port}")
    found.one.query("create schema if not exists held")
    found.one.query(f"create or replace table {TABLE} using iceberg as select id, 'first' as name from range(2)")
    yield found
    for client in (found.one, found.two):
        client.spark.stop()


class Killed(BaseException):
    """What a run does not see coming."""


def test_nobody_publishes_while_a_table_is_made_anew(writers: Writers) -> None:
    def meanwhile() -> None:
        with pytest.raises(RunFailed, match="another run is making it anew") as said:
            writers.add(7)
        assert said.value.code == "TABLE_HELD"
        with pytest.raises(RunFailed, match="TABLE_HELD"):
            writers.made_anew(lambda: None)
        with pytest.raises(RunFailed, match="TABLE_HELD"):
            iceberg_target.say_with_a_commit(writers.two, writers.two.query, TABLE, "{}")

    writers.made_anew(meanwhile)
    assert writers.names == ["anew"]
    writers.add(8)
    assert writers.names == ["anew", "added"]
    assert [row["name"] for row in writers.two.query(f"select name from {TABLE}.refs")] == ["main"]
    assert not writers.one.warnings and not writers.two.warnings


def test_who_started_before_is_too_late(writers: Writers) -> None:
    asked = writers.asked()
    writers.made_anew(lambda: None)
    with pytest.raises(TurnTaken):
        writers.publish(writers.two, asked, lambda to: writers.two.query(f"insert into {to} values (7, 'late')"))
    assert writers.names == ["anew"]


def test_a_statement_that_fails_lets_go_of_the_table(writers: Writers) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        writers.made_anew(lambda: writers.one.query("select 1 / 0"))
    assert writers.names == ["first", "first"]
    writers.add(7)
    assert writers.names == ["first", "first", "added"]


def test_who_died_holds_it_for_a_day_or_until_somebody_says_so(writers: Writers) -> None:
    def dies() -> None:
        raise Killed

    with suppress(Killed):
        writers.made_anew(dies)
    with pytest.raises(RunFailed, match="TABLE_HELD") as said:
        writers.add(7)
    found = re.search(r"lets go of the table: (set .*?); (insert .*?); (reset .*?)\. A day", str(said.value))
    assert found is not None, said.value
    for statement in found.groups():
        writers.two.query(statement)
    writers.add(8)
    assert writers.names == ["first", "first", "added"]
    with suppress(Killed):
        writers.made_anew(dies, begun=time.time() - 25 * 3600)
    writers.add(9)
    assert writers.names == ["first", "first", "added", "added"]


def test_a_request_to_forget_does_not_let_go_of_it(writers: Writers) -> None:
    """Nor does anything else that is no run's: it would be overwritten."""

    def meanwhile() -> None:
        with tagged(writers.two, {iceberg_target.SETTING: '{"spark_mv_forget": 1, "id": "a"}'}):
            writers.two.query(f"insert into {TABLE} select * from {TABLE} where false")
        with pytest.raises(RunFailed, match="TABLE_HELD"):
            writers.add(7)

    writers.made_anew(meanwhile)
    assert writers.names == ["anew"]


def test_who_has_moved_main_has_published(writers: Writers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the branch behind it."""

    def refused(self: object, name: str) -> None:
        raise RuntimeError("CommitFailedException: Table metadata refresh is required")

    with monkeypatch.context() as patch:
        patch.setattr(iceberg_branches._BySql, "drop", refused)
        writers.add(7)
    assert writers.names == ["first", "first", "added"]
    writers.add(8)
    assert writers.names == ["first", "first", "added", "added"]


def test_two_from_one_state(writers: Writers) -> None:
    first, second = writers.asked(), writers.asked()
    writers.publish(writers.one, first, lambda to: writers.one.query(f"insert into {to} values (7, 'one')"))
    with pytest.raises(TurnTaken):
        writers.publish(writers.two, second, lambda to: writers.two.query(f"insert into {to} values (8, 'two')"))
    assert writers.names == ["first", "first", "one"]
    # rolled back meanwhile: main is behind the branch then, and not what the run started from
    newest = read_log(writers.two.query, TABLE, 2).snapshots
    third = writers.asked()

    def behind(to: str) -> None:
        writers.two.query(f"insert into {to} values (9, 'two')")
        writers.one.query(f"call lake.system.rollback_to_snapshot('held.mv', {newest[1].id})")

    with pytest.raises(TurnTaken):
        writers.publish(writers.two, third, behind)
    assert writers.names == ["first", "first"]
