"""Two at one model: their statements in a given order, and what each published version is.

A run stops before each of its statements and looks at a log that another one could tell: those that name the source, the table or what belongs to it.
A statement about its own staging tables alone comes to the same before and after whatever the other one does. There the other one does its work:
whole, or up to a point of its own. Whatever a run published must be the query over the versions and at the instant that its record
names; a run that lost says so and has published nothing; the next run makes of it all what the query gives now.
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
from changing_models import CASES, Content, World, counted, same_values, wrong_counts
from gates import Gate, Gated, gates, in_turns, new_session

SEED = int(os.environ.get("FAULTS_SEED", "24"))
LOST = ("[TURN_TAKEN]", "[TABLE_GONE]", "[FILES_GONE]")
"""Codes with which a run stops that came second, or under which a table was taken away."""
OTHERS = {
    "run": None,
    "later run": None,
    "--full-refresh": None,
    "UPDATE of the table": "update {s}.m set drawn = null where {key} % 2 = 0",
    "DELETE from the table": "delete from {s}.m where {key} % 3 = 0",
    "INSERT into the table": "insert into {s}.m select * from {s}.m limit 1",
    "OPTIMIZE of the table": "optimize {s}.m",
    "VACUUM of the table": "vacuum {s}.m",
    "RESTORE of the table": "restore table {s}.m to version as of 0",
    "UPDATE of the source": "update {s}.t set x = x + 1, s = 'u' where id % 3 = 0",
    "DELETE from the source": "delete from {s}.t where id % 7 = 1",
    "INSERT into the source": "insert into {s}.t values (1000 + {n}, 1, 1.5, 'i', timestamp'2026-01-10 01:00:00')",
    "OPTIMIZE of the source": "optimize {s}.t",
    "VACUUM of the source": "vacuum {s}.t",
    "RESTORE of the source": "restore table {s}.t to version as of 1",
}
"""What the other one does; None: it is a run."""
TELLS = re.compile(r"\.`?(t|m|m__state|ai_results)\b|^show tables").search
"""Whether a statement says anything of what others see; staging tables have longer names."""
RUNS = [name for name, text in OTHERS.items() if text is None]


@pytest.fixture(scope="module")
def sessions(spark: Any) -> Iterator[Callable[[], Gated]]:
    with gates():
        yield lambda: new_session(spark)


class Pair:
    """A run of one case, and another one at the same time."""

    def __init__(self, name: str, sessions: Callable[[], Gated], folder: Path) -> None:
        self.a, self.b = sessions(), sessions()
        self.world = World(CASES[name], f"turns_{name.replace(' ', '_')}", folder / f"asked {name}")
        self.seen: Counter[tuple[str, ...]] = Counter()
        self.other = ""

    def begin(self, first: bool) -> None:
        """The state from which both start: a table and a change after it, or no table (`first`)."""
        world = self.world
        if world.changes == 0:
            world.make(self.a)
        if first:
            self.a.query(f"drop table if exists {world.table}")
        elif world.version(self.a) < 0:
            world.run(self.a)
        world.change(self.a)

    def points(self) -> int:
        """At how many points a run can be stopped."""
        self.begin(False)
        turns, found = in_turns([], TELLS, a=self._run())
        assert not isinstance(found["a"], Exception), found
        assert found["a"].plan.strategy == self.world.case.strategy, found["a"].plan.candidates
        return turns.points["a"]

    def _run(self, session: Gated | None = None, **arguments: Any) -> Callable[[Gate], Any]:
        def work(gate: Gate) -> Any:
            mine = session or self.a
            with mine.through(gate, looks=True):
                return self.world.run_auto(mine, **arguments)

        return work

    def _other(self, name: str) -> Callable[[Gate], Any]:
        text = OTHERS[name]
        if text is None:
            later = {"as_of": self.world.at(1)} if name == "later run" else {}
            return self._run(self.b, full_refresh=name == "--full-refresh", **later)
        sql = text.format(s=self.world.schema, key=self.world.case.key, n=self.world.changes)
        return lambda gate: gate(sql, lambda: self.b.spark.sql(sql).collect())

    @wrong_counts("orders")
    def interleave(self, other: str, parts: list[tuple[str, int | None]], first: bool = False) -> None:
        self.begin(first)
        world, self.other = self.world, other
        before = Content() if first else world.read(self.a)
        number = world.number
        turns, found = in_turns(parts, TELLS, a=self._run(), b=self._other(other))
        said = {who: getattr(end, "verb", end) for who, end in found.items()}
        place = f"{world.case.name} and {other}, {parts}, first={first}: {turns.points}\n{said}"
        self.ended(found, other, number, place)
        self.history(before, place)
        # what stands there now is put right by the next run, with the values that were kept
        after = {} if first else dict(before.kept)
        if OTHERS[other] is None:
            after |= world.read(self.a).kept
        as_of = world.at(int(other == "later run"))
        world.run_auto(self.a, as_of=as_of)
        now, wanted = world.read(self.a), world.wanted(self.a, as_of)
        assert now.rows == wanted, f"{place}\nmissing {wanted - now.rows}, too many {now.rows - wanted}"
        assert world.case.name == "asked" or same_values(after, now.kept), f"{place}\na kept value moved"
        assert not world.leftovers(self.a), f"{place}\nleft behind: {world.leftovers(self.a)}"
        self.saw("orders")
        counted(self.seen)
        self.seen.clear()

    def ended(self, found: dict[str, Any], other: str, number: int, place: str) -> None:
        """Who lost says so, and has published nothing; of two runs one publishes at least."""
        lost = {who: error for who, error in found.items() if isinstance(error, Exception)}
        for who, error in lost.items():
            assert who == "a" or OTHERS[other] is None or "DELTA_" in str(error), place
            assert any(code in str(error) for code in LOST) or (who == "b" and OTHERS[other]), place
        runs = {"a", "b"} if OTHERS[other] is None else {"a"}
        assert runs - set(lost) or OTHERS[other], f"{place}\nboth lost"
        mine = {record.invocation_id for _, record, _ in self.world.published(self.a)}
        ids = {f"{n:08x}-{self.world.case.name}" for n in range(number + 1, self.world.number + 1)}
        assert len(mine & ids) <= len(runs - set(lost)), f"{place}\nwho lost has published"
        for who in runs:
            self.saw("lost" if who in lost else "published")

    def saw(self, what: str) -> None:
        self.seen["pair", self.world.case.name, self.other, what] += 1

    def history(self, before: Content, place: str) -> None:
        """Each version that a run published since then is the query over the versions and at the instant of its record."""
        world, session = self.world, self.a
        for version, record, foreign in world.published(session):
            if version <= before.version or foreign:
                continue
            (source,) = record.sources.values()
            wanted = world.wanted(session, record.as_of, source.version)
            found = world.read(session, version)
            assert found.rows == wanted, (
                f"{place}\nversion {version} is not the query over version {source.version} at {record.as_of}\n"
                f"missing {wanted - found.rows}, too many {found.rows - wanted}"
            )
            self.saw("versions checked")


def test_some_orders(sessions: Callable[[], Gated], tmp_path: Path) -> None:
    """Some of the others at a point each, drawn from a seed; two runs with two preemptions, and two first runs."""
    draw = random.Random(SEED)
    pair = Pair("by row", sessions, tmp_path)
    points = pair.points()
    for other in draw.sample([other for other in OTHERS if other not in RUNS], 4):
        pair.interleave(other, one_preemption(draw.randint(2, points)))
    for other in draw.sample(RUNS, 2):
        pair.interleave(other, one_preemption(points // 2))  # what it stages is of the other's version
    pair.interleave(draw.choice(RUNS), two_preemptions(draw, points))
    pair.interleave("run", one_preemption(draw.randint(1, points // 2)), first=True)


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", CASES)
def test_each_point(name: str, other: str, sessions: Callable[[], Gated], tmp_path: Path) -> None:
    """The other one works whole at each point of a run, of a first run too; two runs besides with two preemptions."""
    draw = random.Random(f"{SEED} {name} {other}")
    pair = Pair(name, sessions, tmp_path)
    points = pair.points()
    for first in (False, True) if other in RUNS else (False,):
        for k in range(1, points + 1):
            pair.interleave(other, one_preemption(k), first)
        if other in RUNS:
            for _ in range(points):
                pair.interleave(other, two_preemptions(draw, points), first)


def one_preemption(k: int) -> list[tuple[str, int | None]]:
    return [("a", k), ("b", None), ("a", None)]


def two_preemptions(draw: random.Random, points: int) -> list[tuple[str, int | None]]:
    return [("a", draw.randint(1, points)), ("b", draw.randint(1, points)), ("a", None), ("b", None)]
