"""A fault at any statement of a run leaves the old table or the new one, and the next run is right.

What a run does once it stopped is part of it: a fault strikes statements of its clean-up, too. `FAULTS_COUNTED=file` writes what was
counted, for `docs_build/faults.py`.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from changing_models import CASES, Content, World, same_values
from direct import Bag
from gates import BEHIND, FAULTS, Died, Fault, Gated, forget_process, gated_session, gates
from integration_tests.counting import counted, wrong_counts

from spark_mv.spark.run import prepare

NEXT = ("plain", "another session", "--full-refresh")
SEED = int(os.environ.get("FAULTS_SEED", "24"))
ROWS = int(os.environ.get("FAULTS_ROWS", "0"))
"""In the slow tests: so many rows of all faults, at a run and at a first run; 0: each statement, which takes hours."""
STRUCK_AGAIN = "struck again"
NOTHING_DONE = re.compile(r"[Nn]othing was|changed nothing").search
Struck = list[tuple[str, int]]
"""Faults and the statements that they strike, of runs that follow each other."""


@pytest.fixture(scope="module")
def sessions(spark: Any) -> Iterator[Callable[[], Gated]]:
    with gates():
        yield lambda: gated_session(spark)


class Trial:
    """One case, and one fault after the other."""

    def __init__(self, name: str, held: bool, new_session: Any, folder: Path) -> None:
        self.held, self.new_session = held, new_session
        self.session = new_session()
        self.world = World(CASES[name], f"faults_{name.replace(' ', '_')}", folder / f"asked {name}")
        self.now = Content()
        self.paid_in_vain: set[str] = set()

    def begin(self) -> tuple[int, int]:
        """The first two runs. How many statements each of them sends."""
        world, session = self.world, self.session
        world.make(session)
        sent = []
        for _ in range(2):
            fault = Fault()
            with session.through(fault):
                run = world.run(session)
            sent.append(fault.seen)
            if len(sent) == 1:
                world.change(session)
        assert run.plan.strategy == world.case.strategy, (run.plan.chosen, run.plan.candidates)
        self.now = self.check(world.wanted(session), "")
        return sent[0], sent[1]

    def first_run(self, struck: Struck, then: str) -> int:
        self.session.query(f"drop table if exists {self.world.table}")
        self.now = Content()
        return self.strike(struck, then)

    def faults(self, struck: Struck, then: str) -> int:
        """Two changes, runs with a fault each, and a whole run. How many got as far as their fault before one published."""
        self.world.change(self.session)
        self.world.change(self.session)
        return self.strike(struck, then)

    @wrong_counts("faults")
    def strike(self, struck: Struck, then: str) -> int:
        world, wanted, reached, place = self.world, self.world.wanted(self.session), [], ""
        old = between = self.now
        for kind, at in struck:
            fault, place = self.one_fault(kind, at, place)
            if world.version(self.session) != between.version:
                between = world.read(self.session)
                assert not NOTHING_DONE(fault.ended), f"{place}\npublished, and said that nothing was"
                assert between.rows == wanted, f"{place}\nneither the old nor the new table: {between.rows}"
            self.same(old, between, place)
            if not fault.step:
                assert between.rows == wanted, place
                break
            reached.append((fault.step, kind, "old" if between is old else "new"))

        if then != NEXT[0]:
            self.session = self.new_session()
        paid = self.world.paid()
        run = world.run_auto(self.session, full_refresh=then == "--full-refresh")
        place += f"\nnext run ({then}): {run.plan.strategy}"
        self.paid_once(paid, place, kept=True)
        self.now = self.check(wanted, place)
        self.same(old, self.now, place)
        self.same(between, self.now, place)
        nexts = [STRUCK_AGAIN] * (len(reached) - 1) + [then]
        mode = (world.case.name, "held" if self.held else "staged")
        counted(Counter((*mode, *one, next_run) for one, next_run in zip(reached, nexts, strict=False)))
        return len(reached)

    def one_fault(self, kind: str, at: int, place: str) -> tuple[Fault, str]:
        """A run that is struck, and what is told of it if something is wrong. A killed one takes its session along."""
        session, paid = self.session, self.world.paid()
        fault = Fault(kind, at, session=session)
        try:
            with session.through(fault):
                self.world.run_auto(session)
            fault.ended = "published"
        except Exception as error:
            fault.ended = str(error)
        except Died:
            fault.ended = "killed"
        place += (
            f"\n{self.world.case.name}, {kind} at {fault.step} ({at}): {fault.statement[:300]}\n{fault.ended[:600]}"
        )
        assert fault.step or fault.ended == "published", place
        assert fault.ended in ("published", "killed") or "injected" in fault.ended, f"{place}\nthe cause is not said"
        if fault.ended == "killed":
            forget_process(session.spark)
            self.session = self.new_session()
        self.paid_once(paid, place, fault.step != "ai round" or kind in BEHIND)
        return fault, place

    def check(self, wanted: Bag, place: str) -> Content:
        found = self.world.read(self.session)
        assert found.rows == wanted, f"{place}\nmissing {wanted - found.rows}, too many {found.rows - wanted}"
        assert not self.world.leftovers(self.session), f"{place}\nleft behind: {self.world.leftovers(self.session)}"
        return found

    def same(self, before: Content, now: Content, place: str) -> None:
        """Kept values stand where they stood. An answer follows its input, and is compared with the rows."""
        assert self.world.case.name == "asked" or same_values(before.kept, now.kept), f"{place}\na kept value moved"

    def paid_once(self, paid: Counter[str], place: str, kept: bool) -> None:
        """An answer is paid a second time only where a fault struck the statement that was to keep it."""
        now = self.world.paid()
        asked = {text: n - paid[text] for text, n in now.items() if n > paid[text]}
        again = {text: n for text, n in asked.items() if n > 1 or (paid[text] and text not in self.paid_in_vain)}
        assert not again, f"{place}\npaid twice: {again}"
        self.paid_in_vain = self.paid_in_vain - set(asked) if kept else self.paid_in_vain | set(asked)


def trial(name: str, held: bool, sessions: Any, folder: Path, patch: pytest.MonkeyPatch) -> Trial:
    if not held:
        patch.setattr(prepare, "holds", lambda *_: False)
    return Trial(name, held, sessions, folder)


def test_some_faults(sessions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults and places drawn from a seed, three of them in a row; and one at a first run."""
    draw = random.Random(SEED)
    one = trial("by row", draw.random() < 0.5, sessions, tmp_path, monkeypatch)
    first, later = one.begin()
    struck = one.faults(drawn(draw, later)[-3:], draw.choice(NEXT[1:]))
    struck += one.first_run(drawn(draw, first)[:1], NEXT[0])
    assert struck > 1


def drawn(draw: random.Random, statements: int) -> Struck:
    """Each fault at some statement, those that the table may outlive unchanged first."""
    places = sorted(draw.choices(range(2, statements), k=len(FAULTS)))
    return list(zip(draw.sample(FAULTS, len(FAULTS)), places, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False], ids=["held", "staged"])
@pytest.mark.parametrize("name", CASES)
def test_each_fault(name: str, held: bool, sessions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement of a run, up to three runs in a row, with each fault in turn: which fault begins at which statement is another
    in each of the modes. `FAULTS_ALL=1` takes all faults at each statement, and a whole run after each; `FAULTS_ROWS=2` twice all
    faults in a row, at statements that are drawn."""
    one = trial(name, held, sessions, tmp_path, monkeypatch)
    draw = random.Random(f"{SEED} {name} {held}")
    for start, statements in zip((one.first_run, one.faults), one.begin(), strict=True):
        if ROWS:
            for _ in range(ROWS):
                start(drawn(draw, statements), draw.choice(NEXT))
            continue
        at, missed = 2, 0
        while missed < len(one.world.case.changes):  # after another change a run may send fewer statements
            then = NEXT[(at + held) % len(NEXT)]
            if "FAULTS_ALL" in os.environ:
                reached = sum(start([(kind, at)], then) for kind in FAULTS)
                at += 1
            else:
                reached = start([(FAULTS[(now + held * 2) % len(FAULTS)], now) for now in range(at, at + 3)], then)
                at += reached
            missed = 0 if reached else missed + 1
