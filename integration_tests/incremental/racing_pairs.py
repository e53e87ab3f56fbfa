"""Two runs at once on one model, whatever they are about to write: no key is doubled and no kept value lost, one of them
publishes, and a loser says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

from direct import Direct, Model, Pool
from integration_tests.counting import counted, wrong_counts

from spark_mv.maintenance.errors import RunFailed

SCHEMA = "pairs"
MODEL = f"select id, k, name, ts, rand() as drawn from {SCHEMA}.src where ts > current_timestamp() - interval 10 hours"
CHANGES = (
    "insert into {s}.src select 1000 * {n} + id, id, 'new', timestamp'2026-01-10 00:00:00' + make_interval(0, 0, 0, 0, {n}) from range(4)",
    "update {s}.src set name = 'n{n}' where id % 5 = {n} % 5",
    "merge into {s}.src t using (select max(id) as id from {s}.src) c on t.id = c.id when matched then delete",
    "insert into {s}.src select 1000 * {n} + id, id, 'old', timestamp'2026-01-01 00:00:00' from range(2)",
    "merge into {s}.src t using (select id from range(6)) c on t.id = c.id when matched then update set k = k + 1 "
    "when not matched then insert (id, k, name, ts) values (c.id, 0, 'back', timestamp'2026-01-10 00:00:00' + make_interval(0, 0, 0, 0, {n}))",
    "select 1",
)
"""What happened to the source before both runs; the last one: nothing but the clock."""


@dataclass
class Pairs:
    """What the pairs came to."""

    pool: Pool
    table_format: str
    seen: Counter[str] = field(default_factory=Counter)

    @wrong_counts("threads")
    def one(self, number: int) -> None:
        """A pair from one state; every seventh on a table that is not there yet, every ninth makes it anew, and in every third the
        source changes once more when both have begun."""
        session, at = self.pool.first, _at(number)
        model = Model(SCHEMA, "mv", MODEL, {"unique_key": "id", "on_source_delete": "delete"}, number)
        if number % 7 == 0:
            session.query(f"drop table if exists {model.table}")
        before = {} if number % 7 == 0 else _drawn(session, model)
        session.query(CHANGES[number % len(CHANGES)].format(s=SCHEMA, n=number))
        start, lost = Barrier(2), list[str]()

        def run(turn: int) -> str:
            mine = sessions[turn]
            one = Model(SCHEMA, "mv", MODEL, model.config, 10 * number + turn)
            start.wait()
            if turn and number % 3 == 0:
                mine.query(f"update {SCHEMA}.src set name = 'late{number}' where id % 4 = 1")
            try:
                anew = number % 9 == 0
                return (one.run(mine, at, full_refresh=True) if anew else one.run_incrementally(mine, at)).plan.strategy
            except RunFailed as error:
                assert error.code == "TURN_TAKEN", error
                lost.append(_chain(error))
                return "second"

        sessions = list(self.pool.sessions.queue)
        with ThreadPoolExecutor(2) as both:
            said = list(both.map(run, (0, 1)))
        assert said != ["second", "second"], (number, lost)
        self.seen.update(said)
        self.right(number, model, before, whole=number % 3 != 0)
        after = _drawn(session, model)
        Model(SCHEMA, "mv", MODEL, model.config, 10 * number + 2).run(session, at)
        self.right(number, model, after, whole=True)
        what = Counter({"second": "lost", "NO_OP": "nothing to do"}.get(one, "published") for one in said)
        counted({("threads", self.table_format, word): n for word, n in {**what, "pairs": 1}.items()})

    def right(self, number: int, model: Model, before: dict[Any, Any], whole: bool) -> None:
        session = self.pool.first
        keys = Counter(row["id"] for row in session.query(f"select id from {model.table}"))
        assert not keys or max(keys.values()) == 1, (number, keys.most_common(3))
        now = _drawn(session, model)
        lost = {key for key in before.keys() & now.keys() if before[key] != now[key]}
        assert not lost, (number, "kept values lost", lost)
        if whole:
            wanted = MODEL.replace("current_timestamp()", f"timestamp'{_at(number)}'").replace(", rand() as drawn", "")
            assert session.bag(f"select id, k, name, ts from {model.table}") == session.bag(wanted), number


def _chain(error: BaseException | None) -> str:
    """The error and what it comes from."""
    found = []
    while error is not None:
        found.append(f"{type(error).__name__}: {error}"[:300])
        error = error.__cause__ or error.__context__
    return " <- ".join(found)


def _at(number: int) -> str:
    hours = number // 2
    return f"2026-01-{10 + hours // 24 % 20:02} {hours % 24:02}:30:00"


def _drawn(session: Direct, model: Model) -> dict[Any, Any]:
    if not session.query(f"show tables in {SCHEMA} like '{model.name}'"):
        return {}
    return {row["id"]: row["drawn"] for row in session.query(f"select id, drawn from {model.table}")}


@contextmanager
def racing_pairs(spark: Any, table_format: str) -> Iterator[Pairs]:
    found = Pairs(Pool(spark, 2, table_format), table_format)
    session = found.pool.first
    session.query(f"drop schema if exists {SCHEMA} cascade")
    session.query(f"create schema {SCHEMA}")
    session.query(
        f"create table {SCHEMA}.src using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as select id, id % 3 as k, 'a' as name, "
        "timestamp'2026-01-10 00:00:00' + make_interval(0, 0, 0, 0, id) as ts from range(40)"
    )
    yield found
    print(f"\n{dict(found.seen)}")
    session.query(f"drop schema if exists {SCHEMA} cascade")
