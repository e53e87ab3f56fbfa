"""A run's statements one by one: each passes a gate that may refuse it, let it wait, or let the run die there.

What passes: all that goes through the session, and the write that Delta is handed without SQL. A look at a table's log, which is
no statement, passes where `looks` is set. What a second thread reads ahead does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

import pytest
from direct import Direct, new_session

from spark_mv.ai import driver_job
from spark_mv.spark.formats import commits
from spark_mv.spark.run import ai, publish, stamps
from spark_mv.spark.session import held_rows

Send = Callable[[], Any]
Gate = Callable[[str, Send], Any]
WAIT = 120.0
"""Seconds after which a run that waits for its turn is taken for stuck."""


@dataclass
class Gated(Direct):
    """A session with a gate. `at`: what the run is doing."""

    gate: Gate | None = None
    looks: bool = False
    at: str = ""

    def __post_init__(self) -> None:
        _SESSIONS[id(self.spark)] = self

    def query(self, sql: str) -> list[dict[str, Any]]:
        return self.passing(sql, lambda: super(Gated, self).query(sql))  # type: ignore[no-any-return]

    def passing(self, sql: str, send: Send) -> Any:
        # the result table is looked at under a lock, which a run that stood still there would hold
        return send() if self.gate is None or ai._CREATING.locked() else self.gate(sql, send)

    @contextmanager
    def through(self, gate: Gate, looks: bool = False) -> Iterator[None]:
        self.gate, self.looks = gate, looks
        try:
            yield
        finally:
            self.gate, self.looks, self.at = None, False, ""


_SESSIONS: dict[int, Gated] = {}


def gated_session(spark: Any) -> Gated:
    return Gated(new_session(spark))


@contextmanager
def gates() -> Iterator[None]:
    """What does not go through the session's `query` passes its gate, too."""
    replace_using, from_log = publish.replace_using, commits.from_log

    def gated_write(spark: Any, rows: str, table: str, *more: Any) -> None:
        session = _SESSIONS[id(spark)]
        session.passing(f"insert into {table} replace using {rows}", lambda: replace_using(spark, rows, table, *more))

    def gated_look(spark: Any, table: str, limit: int) -> Any:
        session = _SESSIONS.get(id(spark))
        if session is None or not session.looks:
            return from_log(spark, table, limit)
        return session.passing(f"log of {table}", lambda: from_log(spark, table, limit))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "replace_using", gated_write)
        patch.setattr(commits, "from_log", gated_look)
        # rounds of one process wait for each other; here two runs are to be as in two processes
        for place in (ai, driver_job):
            patch.setattr(place, "endpoint_lock", lambda _: nullcontext())
        yield
    _SESSIONS.clear()


class Refused(RuntimeError):
    """What Spark says of a statement that it cannot execute, or the connection of one whose answer is lost."""


class Died(BaseException):
    """The process is gone: nothing that a run does comes after it."""


FAULTS = ("error", "answer lost", "engine away", "away behind", "killed before", "killed behind")
BEHIND = frozenset({"answer lost", "away behind", "killed behind"})
"""The statement is executed, whatever is said of it."""


@dataclass
class Fault:
    """One fault at statement `at` of a run (0: none). `step` is what the run was doing there, `statement` what it sent, `ended` what the
    run said in the end."""

    kind: str = "error"
    at: int = 0
    seen: int = 0
    step: str = ""
    statement: str = ""
    ended: str = ""
    session: Gated | None = None

    def __call__(self, sql: str, send: Send) -> Any:
        self.seen += 1
        if not self.at or self.seen < self.at:
            return send()
        if self.seen == self.at:
            self.step, self.statement = self.session.at if self.session else "", sql
            if self.kind in BEHIND:
                send()
            if self.kind.startswith("killed"):
                raise Died
            raise Refused(f"injected: {self.kind}")
        if self.kind.startswith("killed"):
            raise Died
        if "away" in self.kind:
            raise Refused("injected: the engine is away")
        return send()


def forget_process(spark: Any) -> None:
    """What a process takes with it: rows that it held, and that its runs were alive."""
    stamps._live.clear()
    for name in list(held_rows._rows):
        spark.catalog.dropTempView(name)
        held_rows._rows.pop(name).rdd().unpersist(False)


@dataclass
class Turns:
    """Lets what several threads do at their gates happen in one order. `parts`: whose turn it is, and for how many points (None:
    to the end). A point is before a statement or a look that `tells`: the others work beside what nobody else can see."""

    parts: list[tuple[str, int | None]]
    tells: Callable[[str], Any] = bool
    points: dict[str, int] = field(default_factory=dict)
    changed: Condition = field(default_factory=Condition)

    def gate(self, who: str) -> Gate:
        def passes(sql: str, send: Send) -> Any:
            if self.tells(sql):
                self.pass_point(who)
            return send()

        return passes

    def pass_point(self, who: str) -> None:
        with self.changed:
            self.points[who] = self.points.get(who, 0) + 1
            while True:
                while self.parts and self.parts[0][1] == 0:
                    self.parts.pop(0)
                    self.changed.notify_all()
                if not self.parts or self.parts[0][0] == who:
                    break
                if not self.changed.wait(WAIT):
                    raise TimeoutError(f"{who} waits in vain: {self.parts}")
            if self.parts and self.parts[0][1] is not None:
                self.parts[0] = (who, self.parts[0][1] - 1)

    def ended(self, who: str) -> None:
        with self.changed:
            self.parts[:] = [part for part in self.parts if part[0] != who]
            self.changed.notify_all()


def in_turns(
    parts: Sequence[tuple[str, int | None]], tells: Callable[[str], Any] = bool, **work: Callable[[Gate], Any]
) -> tuple[Turns, dict[str, Any]]:
    """Do all `work` in this order. What each gave, or the error that it ended with."""
    turns, found = Turns(list(parts), tells), {}

    def one(who: str) -> None:
        try:
            found[who] = work[who](turns.gate(who))
        except Exception as error:
            found[who] = error
        finally:
            turns.ended(who)

    threads = [Thread(target=one, args=(who,), daemon=True) for who in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * WAIT)
    assert not any(thread.is_alive() for thread in threads), f"stuck: {turns.parts}"
    return turns, found
