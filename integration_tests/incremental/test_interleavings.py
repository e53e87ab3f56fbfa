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
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from changing_models import CASES, Content, World, moved, same_values
from gates import WAIT, Gate, Gated, Send, gated_session, gates, in_turns
from integration_tests.counting import counted, wrong_counts
from integration_tests.under_format import FORMAT, delta_only
from versions import CLEANED, PUT_BACK, REWRITTEN, SECOND, versions

from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.run import ai_upkeep
from spark_mv.spark.run.forgetting import ask_to_forget

SEED = int(os.environ.get("FAULTS_SEED", "24"))
ORDERS = int(os.environ.get("ORDERS", "2"))
"""Of how many points of a run each pair is tried in the slow tests; 0: of all, which takes many hours."""
LOST = ("[TURN_TAKEN]", "[TABLE_GONE]", "[FILES_GONE]")
"""Codes with which a run stops that came second, or under which a table was taken away."""
FILLED = {"delta": 1, "iceberg": 0}[FORMAT]
"""The number of the source's version that has its first rows: an Iceberg table without rows has none."""
OTHERS = {
    "run": None,
    "later run": None,
    "--full-refresh": None,
    "UPDATE of the table": "update {s}.m set drawn = null where {key} % 2 = 0",
    "DELETE from the table": "delete from {s}.m where {key} % 3 = 0",
    "INSERT into the table": "insert into {s}.m select * from {s}.m limit 1",
    "OPTIMIZE of the table": REWRITTEN.format(table="{s}.m"),
    "VACUUM of the table": CLEANED.format(table="{s}.m"),
    "RESTORE of the table": PUT_BACK.format(table="{s}.m", id="{made}"),
    "UPDATE of the source": "update {s}.t set x = x + 1, s = 'u' where id % 3 = 0",
    "DELETE from the source": "delete from {s}.t where id % 7 = 1",
    "INSERT into the source": "insert into {s}.t values (1000 + {n}, 1, 1.5, 'i', timestamp'2026-01-10 01:00:00')",
    "OPTIMIZE of the source": REWRITTEN.format(table="{s}.t"),
    "VACUUM of the source": CLEANED.format(table="{s}.t"),
    "RESTORE of the source": PUT_BACK.format(table="{s}.t", id="{filled}"),
    "forget_values": lambda world, session: ask_to_forget(session, world.target, "m", ["drawn"], None, {}),
    "recompute_ai": lambda world, session: ai_upkeep.recompute(models(world, session)),
    "prune_ai_results": lambda world, session: ai_upkeep.prune(models(world, session), older_than_days=0),
}
"""What the other one does: a statement, an operation, or (None) a run."""
TELLS = re.compile(r"\.`?(t|m|m__state|ai_results)\b|^show tables").search
"""Whether a statement says anything of what others see; staging tables have longer names."""
RUNS = [name for name, text in OTHERS.items() if text is None]
OPERATIONS = [name for name, text in OTHERS.items() if callable(text)]


def models(world: World, session: Gated) -> ai_upkeep.Models:
    return ai_upkeep.Models(session, [world.invocation(session)], world.profile)


def possible(name: str, other: str) -> bool:
    """Answers are asked again and pruned; what is drawn is forgotten."""
    return other not in OPERATIONS or (name == "asked") == other.endswith(("_ai", "_ai_results"))


@pytest.fixture(scope="module")
def sessions(spark: Any) -> Iterator[Callable[[], Gated]]:
    with gates():
        yield lambda: gated_session(spark)


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
        if callable(text):
            return self._operation(text)
        world, ids = self.world, {}
        for word, table, number in (("{made}", world.table, 0), ("{filled}", f"{world.schema}.t", FILLED)):
            if word in text:
                ids[word.strip("{}")] = versions(self.b, table)[number].id
        sql = text.format(s=world.schema, key=world.case.key, n=world.changes, **ids)
        return lambda gate: gate(sql, lambda: self.b.spark.sql(sql).collect())

    def _operation(self, operation: Callable[[World, Gated], Any]) -> Callable[[Gate], Any]:
        def work(gate: Gate) -> Any:
            with self.b.through(gate):
                return operation(self.world, self.b)

        return work

    @wrong_counts("orders")
    def interleave(self, other: str, parts: list[tuple[str, int | None]], first: bool = False) -> None:
        self.begin(first)
        world, self.other = self.world, other
        before = Content() if first else world.read(self.a)
        number, asked = world.number, world.paid()
        turns, found = in_turns(parts, TELLS, a=self._run(), b=self._other(other))
        said = {who: getattr(end, "verb", end) for who, end in found.items()}
        place = f"{world.case.name} and {other}, {parts}, first={first}: {turns.points}\n{said}"
        self.ended(found, other, number, place)
        twice = again(asked, world.paid())
        assert not twice or OTHERS[other] is None or other == "recompute_ai", f"{place}\npaid twice: {twice}"
        self.seen["pair", world.case.name, other, "paid twice"] += sum(twice.values())
        self.history(before, place)
        # what stands there now is put right by the next run, with the values that were kept
        between = world.read(self.a)
        as_of = world.at(int(other == "later run"))
        paid = world.paid()
        world.run_auto(self.a, as_of=as_of)
        now, wanted = world.read(self.a), world.wanted(self.a, as_of)
        assert now.rows == wanted, f"{place}\nmissing {wanted - now.rows}, too many {now.rows - wanted}"
        self.kept(before, between, now, "b" in found and isinstance(found["b"], Exception), place)
        assert other == "recompute_ai" or not again(paid, world.paid()), f"{place}\npaid twice by the next run"
        assert not world.leftovers(self.a), f"{place}\nleft behind: {world.leftovers(self.a)}"
        self.saw("orders")
        counted(self.seen)
        self.seen.clear()

    def kept(self, before: Content, between: Content, now: Content, refused: bool, place: str) -> None:
        """A value stands where our runs left it; what was to be forgotten is drawn anew once."""
        if self.world.case.name == "asked":
            return
        if self.other == "forget_values":
            drawn = [moved(before, between), moved(between, now)]
            assert sorted(drawn) == (["all", "none"] if not refused else ["none", "none"]), (
                f"{place}\nforgotten: {drawn}"
            )
            return
        assert same_values(before.kept, now.kept), f"{place}\na kept value moved"
        if OTHERS[self.other] is None:
            assert same_values(between.kept, now.kept), f"{place}\na kept value moved behind both"

    def ended(self, found: dict[str, Any], other: str, number: int, place: str) -> None:
        """Who lost says so, and has published nothing; of two runs one publishes at least."""
        lost = {who: error for who, error in found.items() if isinstance(error, Exception)}
        for who, error in lost.items():
            self.seen["said", other, who, (re.findall(r"\[([A-Z_.]+)\]", str(error)) or ["?"])[0]] += 1
            assert who == "a" or OTHERS[other] is None or re.search(SECOND, str(error)), place
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
            if version.number <= before.version or foreign:
                continue
            (source,) = record.sources.values()
            wanted = world.wanted(session, record.as_of, source.version)
            found = world.read(session, version)
            assert found.rows == wanted, (
                f"{place}\nversion {version.number} is not the query over version {source.version} at {record.as_of}\n"
                f"missing {wanted - found.rows}, too many {found.rows - wanted}"
            )
            self.saw("versions checked")


def test_some_orders(sessions: Callable[[], Gated], tmp_path: Path) -> None:
    """Some of the others at a point each, drawn from a seed; two runs with two preemptions, and two first runs."""
    draw = random.Random(SEED)
    pair = Pair("by row", sessions, tmp_path)
    points = pair.points()
    for other in draw.sample([other for other in OTHERS if other not in RUNS and possible("by row", other)], 2):
        pair.interleave(other, one_preemption(draw.randint(2, points)))
    pair.interleave(draw.choice(RUNS), one_preemption(points // 2))  # what it stages is of the other's version
    pair.interleave(draw.choice(RUNS), two_preemptions(draw, points))
    pair.interleave("run", one_preemption(draw.randint(1, points // 2)), first=True)


@delta_only("what its commits say of another one")
@pytest.mark.parametrize("other", ["alter table {s}.m set tblproperties ('mine' = '1')", "run"])
def test_who_came_first_is_named(other: str, sessions: Callable[[], Gated], tmp_path: Path) -> None:
    """Between Delta's look at the table and its commit somebody else changes the table."""
    pair = Pair("appended", sessions, tmp_path)
    pair.world.schema += "_named"
    pair.begin(False)
    reached, done = tmp_path / "reached", tmp_path / "done"

    def waits(_: Any) -> bool:
        reached.touch()
        while not done.exists():
            time.sleep(0.05)
        return True

    def gate(sql: str, send: Send) -> Any:
        appends = sql.startswith("insert into") and sql.endswith("where __mv_op = 'I'")
        return pair.a.spark.sql(f"{sql} and waits(id)") if appends else send()

    pair.a.spark.udf.register("waits", waits, "boolean")
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(pair._run(), gate)
        try:
            until = time.monotonic() + WAIT
            while not (reached.exists() or run.done()) and time.monotonic() < until:
                time.sleep(0.05)
            assert reached.exists()
            if other in OTHERS:
                pair._other(other)(lambda _, send: send())
            else:
                pair.b.query(other.format(s=pair.world.schema))
        finally:
            done.touch()
        with pytest.raises(RunFailed, match=r"\[TURN_TAKEN\]") as lost:
            run.result(WAIT)
    assert ("another run published" in str(lost.value)) == (other == "run"), lost.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other"), [(name, other) for name in CASES for other in OTHERS if possible(name, other)]
)
def test_orders(name: str, other: str, sessions: Callable[[], Gated], tmp_path: Path) -> None:
    """The other one works whole at some points of a run (`ORDERS=0`: at each), of a first run too; runs and operations besides in two parts,
    with the run's between them."""
    draw = random.Random(f"{SEED} {name} {other}")
    pair = Pair(name, sessions, tmp_path)
    points = pair.points()
    few = min(ORDERS, points) or points
    for first in (False, True) if other in RUNS else (False,):
        for k in sorted(draw.sample(range(1, points + 1), few)):
            pair.interleave(other, one_preemption(k), first)
        for _ in range(few if OTHERS[other] is None or callable(OTHERS[other]) else 0):
            pair.interleave(other, two_preemptions(draw, points), first)


def one_preemption(k: int) -> list[tuple[str, int | None]]:
    return [("a", k), ("b", None), ("a", None)]


def two_preemptions(draw: random.Random, points: int) -> list[tuple[str, int | None]]:
    return [("a", draw.randint(1, points)), ("b", draw.randint(1, points)), ("a", None), ("b", None)]


def again(before: Counter[str], now: Counter[str]) -> dict[str, int]:
    """Inputs that were asked though an answer was paid, and how often."""
    asked = {text: n - max(before[text], 1) for text, n in now.items()}
    return {text: n for text, n in asked.items() if n > 0}
