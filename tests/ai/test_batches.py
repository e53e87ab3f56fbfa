"""The state machine of batches against an endpoint on loopback that counts what it was paid, with the process killed at every
step. The warehouse is a list of rows here; that SQL does the same is shown by integration_tests/ai/test_batches.py."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pytest
from integration_tests.ai.batch_endpoint import BatchEndpoint as Server
from integration_tests.ai.batch_endpoint import BatchFaults

from spark_mv.ai.batches.collect import Collected, collect
from spark_mv.ai.batches.remote import BatchEndpoint
from spark_mv.ai.batches.rows import Terms
from spark_mv.ai.batches.state import (
    ABANDONED,
    COLLECTED,
    CREATE_WITHIN,
    EXPECTED,
    GONE_AFTER,
    INTENDED,
    LEFT_OUT_FOR,
    LOST_AFTER,
    SENT,
    Batch,
    Claim,
    Expected,
    Held,
    Room,
    Wanted,
)
from spark_mv.ai.batches.submit import Group, Submitted, submit
from spark_mv.ai.chat import CHAT
from spark_mv.ai.protocol import ProviderSettings, Request
from spark_mv.ai.results import COLUMN_NAMES
from spark_mv.ai.retry import Retries
from spark_mv.ai.secret import Secret

LABELS = {"labels": ["good", "bad"]}
TERMS = Terms(Retries(6, 3600.0), lambda _: (1.0, 2.0))
EACH = Expected(output_tokens=4, input_price=1.0, output_price=2.0)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Warehouse:
    """Rows as the two tables hold them; a Store."""

    texts: dict[str, str]
    clock: Clock
    rows: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[Batch, str]] = field(default_factory=list)
    noted: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    def intend(self, batch: Batch) -> None:
        self.events.append((batch, INTENDED))

    def note(self, batch: Batch, state: str, inputs: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self.events.append((batch, state))
        self.noted[state] = inputs, tokens, cost

    def open(self) -> list[Batch]:
        ended = {b.key for b, state in self.events if state in (COLLECTED, ABANDONED)}
        found: dict[str, Batch] = {}
        for batch, _ in self.events:
            if batch.key not in ended and (batch.key not in found or batch.remote_id):
                found[batch.key] = batch
        return list(found.values())

    def of(self, key: str, batch: str | None = None) -> list[dict[str, Any]]:
        return [r for r in self.rows if r["result_key"] == key and (batch is None or r["batch"] == batch)]

    def held(self, key: str, but: str = "") -> bool:
        found = self.of(key)
        closed = {r["batch"] for r in found if r["status"] != "submitted"}
        return any(r["status"] == "submitted" and r["batch"] not in closed | {but} for r in found)

    def missing(self) -> list[str]:
        def asks(key: str) -> bool:
            found = [r for r in self.of(key) if r["status"] not in ("submitted", "released")]
            if any(r["status"] == "ok" for r in found) or self.held(key):
                return False
            return not found or (
                found[-1]["status"] == "error" and found[-1]["next_retry_at"].timestamp() <= self.clock()
            )

        return [key for key in self.texts if asks(key)]

    def claim(self, batch: Batch, sites: Sequence[int], room: Room) -> list[Wanted]:
        keys = self.missing()[: room.inputs]
        failed = {k: sum(r["status"] == "error" for r in self.of(k)) for k in keys}
        self.rows += [
            {"result_key": key, "status": "submitted", "batch": batch.key, "attempts": failed[key], "tokens": 5}
            for key in keys
        ]
        mine = [key for key in keys if not self.held(key, but=batch.key)]
        if len(mine) < len(keys):
            self.release(batch, mine)
        return [Wanted(key, self.texts[key], 0, 5) for key in mine]

    def release(self, batch: Batch, kept: Sequence[str] | None = None) -> None:
        gone = [c.result_key for c in self.claims(batch) if c.result_key not in (kept or ())]
        self.rows += [{"result_key": key, "status": "released", "batch": batch.key} for key in gone]

    def claims(self, batch: Batch) -> list[Claim]:
        mine = [r for r in self.rows if r["batch"] == batch.key]
        closed = {r["result_key"] for r in mine if r["status"] != "submitted"}
        return [
            Claim(
                r["result_key"],
                "ai_classify",
                "h",
                "m",
                "m",
                "i",
                r["attempts"],
                {"constant": LABELS, EXPECTED: asdict(EACH)},
                tokens=r.get("tokens", 0),
            )
            for r in mine
            if r["status"] == "submitted" and r["result_key"] not in closed
        ]

    def take_in(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.rows += [dict(zip(COLUMN_NAMES, row, strict=True)) for row in rows]

    def answered(self) -> list[str]:
        return [r["result_key"] for r in self.rows if r["status"] == "ok"]


class Clock:
    """The wall clock, which can be moved ahead."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Dying:
    """Kills the process at its n-th step, before it is taken or just after."""

    def __init__(self, n: int, after: bool) -> None:
        self.left, self.after = n, after

    def around(self, thing: Any) -> Any:
        dying = self

        class Around:
            def __getattr__(self, name: str) -> Any:
                method = getattr(thing, name)

                def step(*args: Any, **more: Any) -> Any:
                    dying.left -= 1
                    if dying.left == 0 and not dying.after:
                        raise Killed
                    found = method(*args, **more)
                    if dying.left == 0:
                        raise Killed
                    return found

                return step

        return Around()


@dataclass
class World:
    """A server, a warehouse with missing inputs, and processes that come and go."""

    server: Server
    store: Warehouse
    clock: Clock

    remote: BatchEndpoint
    asks: Callable[[Wanted], Request] = lambda wanted: Request(
        "ai_classify", {"content": wanted.text}, LABELS, model="m"
    )

    def endpoint(self) -> BatchEndpoint:
        return self.remote

    def submit(self, around: Any = lambda thing: thing, most: int = 1000) -> Submitted:
        return submit(
            around(self.store),
            around(self.endpoint()),
            Group(CHAT, "m", (0,)),
            Room(most, 1 << 20, input_price=1.0, output_price=2.0, output_tokens=4),
            lambda wanted: self.asks(wanted),
            address="here",
            invocation_id="run",
            project="p",
            terms=TERMS,
            now=self.clock,
        )

    def collect(self, around: Any = lambda thing: thing, gone: Sequence[str] = ()) -> Collected:
        return collect(around(self.store), around(self.endpoint()), TERMS, now=self.clock, gone=gone)

    def one_run(self, around: Any = lambda thing: thing) -> None:
        self.collect(around)
        self.submit(around)
        self.server.finish()
        self.collect(around)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Server, BatchEndpoint]]:
    with Server() as server:
        yield server, BatchEndpoint(ProviderSettings(server.url, Secret("sk-test"), 5.0))  # takes a second to make


@pytest.fixture
def new(served: tuple[Server, BatchEndpoint]) -> Callable[..., World]:
    """A new world: what happened at the server before is forgotten."""

    def make(inputs: int = 12, **faults: Any) -> World:
        server, remote = served
        server.forget()
        server.faults = BatchFaults(**faults)
        clock = Clock()
        texts = {hashlib.sha256(str(n).encode()).hexdigest(): f"text {n}" for n in range(inputs)}
        return World(server, Warehouse(texts, clock), clock, remote)

    return make


@pytest.fixture
def world(new: Callable[..., World]) -> World:
    return new()


def test_a_run_submits_and_a_later_one_collects(world: World) -> None:
    done = world.submit()
    assert (done.inputs, done.held, done.error) == (12, Held(12, 60, 48, (60 * 1.0 + 48 * 2.0) / 1000), "")
    assert world.store.noted[SENT] == (12, 108, done.held.cost)
    assert world.submit().inputs == 0
    assert (world.collect().waiting, world.store.answered()) == (1, [])
    world.server.finish()
    found = world.collect()
    assert (found.batches, found.answers, found.errors, found.waiting) == (1, 12, 0, 0)
    assert sorted(world.store.answered()) == sorted(world.store.texts)
    assert set(world.server.paid.values()) == {1}
    rows = [r for r in world.store.rows if r["status"] == "ok"]
    assert {r["value"] for r in rows} <= {"good", "bad"}
    assert {(r["invocation_id"], r["project"]) for r in rows} == {("run", "p")}
    assert found.cost == pytest.approx(sum(r["cost"] for r in rows))
    assert found.cost > 0
    assert world.collect() == Collected()
    assert set(world.server.deleted) == {"file-1", "file-2"}  # texts do not stay there


STEPS = 20


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("n", range(1, STEPS))
def test_killed_at_any_step_nothing_is_paid_twice_and_nothing_lost(world: World, n: int, after: bool) -> None:
    dying = Dying(n, after)
    try:
        world.one_run(dying.around)
        assert n > 13, "the run has more steps than this test knows"
    except Killed:
        pass
    world.one_run()
    assert max(world.server.paid.values(), default=0) <= 1
    world.clock.ahead += LOST_AFTER + 1
    world.one_run()
    assert sorted(world.store.answered()) == sorted(world.store.texts)
    assert set(world.server.paid.values()) == {1}
    assert world.store.open() == []
    assert not any(world.store.held(key) for key in world.store.texts)


def test_the_killed_test_kills_at_every_step(world: World) -> None:
    counted = Dying(10_000, after=False)
    world.one_run(counted.around)
    assert 8 < 10_000 - counted.left < STEPS


@pytest.mark.parametrize("unlisted", [0, 3])
def test_a_lost_reply_leaves_the_batch_to_be_found(new: Callable[..., World], unlisted: int) -> None:
    world = new(lose_reply_of="batches", unlisted=unlisted)
    server = world.server
    done = world.submit()
    assert "not known" in done.error
    assert done.held == Held.of([5] * 12, EACH)  # it counts: perhaps it is paid
    for _ in range(unlisted + 1):  # while it is not listed, nobody asks again
        world.collect()
        assert world.submit().inputs == 0
    server.finish()
    assert world.collect().answers == 12
    assert (set(server.paid.values()), len(server.batches)) == ({1}, 1)
    assert world.store.noted[SENT] == (12, 108, done.held.cost)


def test_a_lost_reply_to_the_upload_costs_nothing(new: Callable[..., World]) -> None:
    world = new(lose_reply_of="files")
    server = world.server
    assert world.submit().error
    assert world.store.open() == []
    world.one_run()
    assert (len(server.batches), set(server.paid.values())) == (1, {1})


@pytest.mark.parametrize("what", ["files", "batches"])
def test_an_endpoint_without_batches_gives_the_inputs_back(new: Callable[..., World], what: str) -> None:
    world = new(refuse=what)
    done = world.submit()
    assert (done.inputs, "no such thing here" in done.error, done.others) == (0, True, what == "batches")
    assert (len(world.store.missing()), world.store.open()) == (12, [])


def test_a_slow_process_does_not_create_what_another_gave_back(world: World) -> None:
    class Slow:
        def __init__(self, endpoint: BatchEndpoint) -> None:
            self.endpoint = endpoint

        def upload(self, key: str, content: bytes) -> str:
            world.clock.ahead += CREATE_WITHIN + 1
            return self.endpoint.upload(key, content)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.endpoint, name)

    done = world.submit(lambda thing: Slow(thing) if isinstance(thing, BatchEndpoint) else thing)
    assert (done.inputs, world.server.batches, len(world.store.missing())) == (0, {}, 12)


@pytest.mark.parametrize("status", ["failed", "expired", "cancelled"])
def test_a_batch_that_ends_badly_is_taken_in_row_by_row(new: Callable[..., World], status: str) -> None:
    world = new(status=status, answered=0.5)
    server = world.server
    world.submit()
    server.finish()
    found = world.collect()
    assert (found.answers, found.errors) == ((0, 12) if status == "failed" else (6, 6))
    assert status in found.notes[0]
    errors = [r for r in world.store.rows if r["status"] == "error"]
    assert {r["error_class"] for r in errors} == {"batch"}
    server.faults = BatchFaults()
    world.one_run()  # the rest is asked again, at once
    assert sorted(world.store.answered()) == sorted(world.store.texts)
    assert set(server.paid.values()) == {1}


def test_an_input_whose_batches_always_fail_is_given_up(new: Callable[..., World]) -> None:
    world = new(2, status="failed")
    server = world.server
    for _ in range(12):
        world.one_run()
        world.clock.ahead += 1e6
    assert len(server.batches) == 7
    assert [r["status"] for r in world.store.rows if r["status"] == "given_up"] == ["given_up"] * 2
    assert world.submit().inputs == 0


def test_lines_that_are_missing_doubled_or_bad_cost_only_themselves(new: Callable[..., World]) -> None:
    faults = BatchFaults(missing=0.2, doubled=0.2, failed_lines=0.15, refused_lines=0.1)
    world = new(80, **vars(faults))
    server = world.server
    world.submit()
    server.finish()
    found = world.collect()
    by_class: dict[str, int] = {}
    for row in world.store.rows:
        if row["status"] in ("error", "refused"):
            by_class[row["error_class"]] = by_class.get(row["error_class"], 0) + 1
    assert set(by_class) == {"batch", "server", "refused"}
    assert found.answers + found.errors == 80
    assert len(world.store.answered()) == len(set(world.store.answered())) == found.answers
    server.faults = BatchFaults()
    world.one_run()
    assert len(set(world.store.answered())) == 80 - by_class["refused"]
    assert max(server.paid.values()) == 1


def test_answers_that_are_counted_but_not_handed_over_are_read_again(new: Callable[..., World]) -> None:
    world = new(cut_short=True)
    server = world.server
    world.submit()
    server.finish()
    found = world.collect()
    assert (found.waiting, found.answers, found.errors, len(found.notes)) == (1, 11, 0, 1)
    again = world.collect()  # nothing is taken in twice
    assert (again.waiting, again.answers, again.batches) == (1, 0, 0)
    assert world.submit().inputs == 0
    world.clock.ahead += LEFT_OUT_FOR + 60  # it never comes: that one input is asked again
    found = world.collect()
    assert (found.waiting, found.answers, found.errors) == (0, 0, 1)


def test_counts_that_say_too_little_hold_nothing_up(new: Callable[..., World]) -> None:
    world = new(honest_counts=False)
    world.one_run()
    assert len(world.store.answered()) == 12


def test_a_batch_that_another_account_has_is_left_alone(world: World) -> None:
    world.submit()
    gone = dict(world.server.batches)
    world.server.batches.clear()
    found = world.collect()
    assert (found.waiting, "another account" in found.notes[0], world.submit().inputs) == (1, True, 0)
    world.server.batches.update(gone)
    world.server.finish()
    assert world.collect().answers == 12
    assert set(world.server.paid.values()) == {1}


def test_a_batch_that_is_gone_for_good_is_asked_again(world: World) -> None:
    world.submit()
    world.server.batches.clear()
    world.clock.ahead += GONE_AFTER + 1
    assert world.collect().errors == 12
    world.one_run()
    assert len(world.store.answered()) == 12


def test_a_batch_that_its_user_gives_up_is_asked_again_at_once(world: World) -> None:
    world.submit()
    known = dict(world.server.batches)
    remote_id = next(iter(known))
    assert world.collect(gone=[remote_id]).waiting == 1  # the endpoint knows it: it is under way
    world.server.batches.clear()
    found = world.collect(gone=["another"])
    assert f"{{gone: {remote_id}}}" in found.notes[0] and found.seen == (remote_id,)
    assert world.collect(gone=[remote_id]).errors == 12
    world.one_run()
    assert len(world.store.answered()) == 12


def test_of_two_processes_that_claim_at_a_time_at_most_one_submits(world: World) -> None:
    other = Batch("other", "here", CHAT, "m", world.clock(), "run-2", "p")

    class Between:
        """Another process commits its claims just after this one has looked for what is missing."""

        def claim(self, batch: Batch, sites: Sequence[int], room: Room) -> list[Wanted]:
            keys = world.store.missing()
            world.store.intend(other)
            world.store.rows += [
                {"result_key": k, "status": "submitted", "batch": "other", "attempts": 0} for k in keys[:5]
            ]
            real = world.store.missing
            world.store.missing = lambda: keys  # type: ignore[method-assign]
            try:
                return world.store.claim(batch, sites, room)
            finally:
                world.store.missing = real  # type: ignore[method-assign]

        def __getattr__(self, name: str) -> Any:
            return getattr(world.store, name)

    done = world.submit(lambda thing: Between() if isinstance(thing, Warehouse) else thing)
    assert done.inputs == 7
    assert all(world.store.held(key) for key in world.store.texts)
    note = replace(other, remote_id=None)
    world.store.note(note, SENT)
    assert world.submit().inputs == 0


MESSAGES = Request("ai_query", {"request": {"messages": ["hello"]}}, model="m")
VECTOR = Request("ai_embed", {"content": "a"}, model="m")


@pytest.mark.parametrize(("odd", "kind"), [(MESSAGES, "provider_bug"), (VECTOR, "unsupported")])
def test_an_input_that_cannot_be_asked_is_an_error_of_its_own(world: World, odd: Request, kind: str) -> None:
    plain = world.asks
    world.asks = lambda wanted: odd if wanted.text in ("text 3", "text 4") else plain(wanted)
    done = world.submit()
    assert (done.held.inputs, done.failed.errors, done.inputs, done.error) == (10, 2, 12, "")
    assert done.failed.error_classes == {kind: 2}
    errors = [r for r in world.store.rows if r["status"] == "error"]
    assert {(r["error_class"], r["attempts"], r["cost"]) for r in errors} == {(kind, 1, 0.0)}
    assert not any(r["status"] == "released" for r in world.store.rows)
    world.server.finish()
    assert (world.collect().answers, len(world.store.missing()), world.store.open()) == (10, 2, [])


def test_a_batch_that_would_hold_nothing_is_not_made(world: World) -> None:
    world.asks = lambda wanted: MESSAGES
    done = world.submit()
    assert (done.held, done.failed.errors, done.error) == (Held(), 12, "")
    assert (world.server.batches, world.server.files, world.store.open()) == ({}, {}, [])
