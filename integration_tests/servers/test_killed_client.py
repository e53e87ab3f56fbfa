"""kill -9 of a process that runs a model over Spark Connect: before a statement, right behind it, or while the server works at it.

The server lives on and finishes what it was sent. Each victim is a fork of a process that has imported all it needs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch

import pytest
from integration_tests.counting import counted, wrong_counts
from integration_tests.servers.clients import CASES, Clients, World, connected, server_for
from integration_tests.servers.server import Server

sys.path.insert(0, str(Path(__file__).parents[1] / "incremental"))
from gates import Fault, Gated, gates

from spark_mv.maintenance.errors import RunFailed

KILLS = int(os.environ.get("KILLS", "200"))
SEED = os.environ.get("FAULTS_SEED", "24")
MOMENTS = ("before", "during", "behind")
IN_A_ROW = 5
"""So many runs are killed, one after the other, before a whole one."""


@dataclass
class Shot:
    """Ends the process at statement `at`, without a word to anybody; what the run was doing stands in a file."""

    at: int
    moment: str
    seconds: float
    file: Path
    session: Gated
    seen: int = 0

    def __call__(self, sql: str, send: Callable[[], Any]) -> Any:
        self.seen += 1
        if self.seen == self.at:
            self.file.write_text(json.dumps([self.session.at, sql[:300]]))
            if self.moment == "during":
                Timer(self.seconds, self.shoot).start()
                send()
            elif self.moment == "behind":
                send()
            self.shoot()
        return send()

    def shoot(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def run_and_die(url: str, world: World, at: int, moment: str, seconds: float, file: str) -> None:
    session = connected(url)
    with gates(), session.through(Shot(at, moment, seconds, Path(file), session)):
        world.run_auto(session)


class Victims(Clients):
    """One killed run after the other."""

    def __init__(self, url: str, name: str, folder: Path, draw: random.Random) -> None:
        super().__init__(url, name, "killed", folder, draw, __name__)
        self.statements = [self.sent() for _ in range(2)]

    def sent(self) -> int:
        """How many statements a whole run sends: the first one, or one after a change."""
        with self.session.through(fault := Fault()):
            if not self.world.number:
                self.world.make(self.session)
            else:
                self.world.change(self.session)
            fault.seen = 0
            self.world.run(self.session)
        return fault.seen

    @wrong_counts("kills")
    def killed(self, kills: int, first: bool) -> int:
        """So many runs that are killed after a change of the source, and a whole one. How many were killed."""
        world, session = self.world, self.session
        if first:
            session.query(f"drop table if exists {world.table}")
        else:
            world.change(session)
        wanted, paid = world.wanted(session), world.paid()
        old = between = world.read(session)
        reached, place, held = 0, "", self.held()
        for at in sorted(self.draw.choices(range(2, self.statements[not first]), k=kills)):
            moment = self.draw.choice(MOMENTS)
            doing = self.one_kill(at, moment)
            place += f"\n{world.case.name}, killed {moment} statement {at}: {doing}"
            if moment == "during":
                self.settle()
            now = world.read(session)
            changed = now.version != between.version
            assert now.rows in (wanted, *(() if changed else (between.rows,))), (
                f"{place}\nneither the old nor the new table"
            )
            self.same(between, now, place)
            between, held = now, {**self.held(), **held}
            if doing:
                reached += 1
                when = "first run" if first else "run"
                counted({("kill", "a client of a server", when, "new" if now.rows == wanted else "old"): 1})
        self.run_whole()
        done = world.read(session)
        assert done.rows == wanted, f"{place}\nmissing {wanted - done.rows}, too many {done.rows - wanted}"
        for before in (old, between):
            self.same(before, done, place)
        asked = world.paid()
        twice = {text: n for text, n in (asked - paid).items() if n > 1 + kills}
        assert not twice, f"{place}\npaid for more often than runs were killed: {twice}"
        kept_twice = {text: asked[text] for text, n in held.items() if asked[text] != n}
        assert not kept_twice, f"{place}\nasked again, though the answer was kept: {kept_twice}"
        again = sum(n - 1 for n in (asked - paid).values() if n > 1)
        counted({("kill", "a client of a server", "asked again"): again})
        return reached

    def held(self) -> dict[str, int]:
        """The inputs whose answers are kept by now, as the provider notes them, and how often each was asked so far."""
        world = self.world
        if "ai_results" not in world.names(self.session):
            return {}
        rows = self.session.query(f"select value from {world.schema}.ai_results where status = 'ok'")
        kept, asked = {row["value"] for row in rows}, world.paid()
        return {line: n for line, n in asked.items() if f"ai_gen: {' '.join(json.loads(line)[1].values())}" in kept}

    def one_kill(self, at: int, moment: str) -> str:
        """What the run was doing; empty where it ended before."""
        file = self.folder / "doing"
        file.unlink(missing_ok=True)
        words = (self.url, self.world, at, moment, self.draw.uniform(0, 0.3), str(file))
        process = self.processes.Process(target=run_and_die, args=words)
        process.start()
        process.join(240)
        assert process.exitcode is not None, "the victim lives on"
        self.world.number += 1  # its run had that number
        if process.exitcode == 0:
            assert not file.exists()
            return ""
        assert process.exitcode == -signal.SIGKILL, (
            f"the run failed by itself: {file.read_text() if file.exists() else ''}"
        )
        return ": ".join(json.loads(file.read_text()))

    def settle(self) -> None:
        """Until what the dead run had sent is done."""
        until, same, version = time.monotonic() + 60, 0, self.world.version(self.session)
        while same < 6 and time.monotonic() < until:
            time.sleep(0.2)
            now = self.world.version(self.session)
            same, version = (same + 1, version) if now == version else (0, now)

    def run_whole(self) -> None:
        try:
            self.world.run_auto(self.session)
        except RunFailed as error:
            if error.code != "TURN_TAKEN":  # the dead run's last statement was still under way
                raise
            self.world.run_auto(self.session)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # a Connect session tells its process, and what that starts, to have no Spark of their own
    with patch.dict(os.environ), server_for(tmp_path_factory.mktemp("killed") / "server") as running:
        yield running


def kill(server: Server, kills: int, cases: list[str], folder: Path, seed: str) -> None:
    draw, done = random.Random(seed), 0
    url = f"sc://127.0.0.1:{server.port}"
    with gates(), ExitStack() as ends:
        one = [ends.enter_context(closing(Victims(url, name, folder, draw))) for name in cases]
        number = 0
        while done < kills:
            done += one[number % len(one)].killed(min(IN_A_ROW, kills - done), first=number < len(one))
            number += 1
            assert number < 4 * kills


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_six_kills_of_a_client(server: Server, tmp_path: Path) -> None:
    kill(server, 6, ["by row", "asked"], tmp_path, SEED)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_kills_of_a_client(server: Server, tmp_path: Path) -> None:
    """`KILLS=n`: so many; another `FAULTS_SEED` for other moments."""
    kill(server, KILLS, list(CASES), tmp_path, f"{SEED} {KILLS}")
