"""Two runs at one model at the same time, in processes of their own, over Spark Connect; how their statements interleave is up to the machine.

At least one publishes; who lost says so and has changed nothing; each version that was published is the query over the version and at the
instant that its record names; no kept value moves; the next run makes of it what the query gives.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from integration_tests.counting import counted, wrong_counts
from integration_tests.servers.clients import CASES, Clients, World, connected, server_for
from integration_tests.servers.server import Server

sys.path.insert(0, str(Path(__file__).parents[1] / "incremental"))
from gates import gates

PAIRS = int(os.environ.get("PAIRS", "300"))
SEED = os.environ.get("FAULTS_SEED", "24")
OTHERS = ("run", "--full-refresh", "first run")
"""What the second one is; in the last case the first one is, too."""


def run_beside(url: str, world: World, full_refresh: bool, wait: float, start: Any, file: str) -> None:
    """One of the two. What became of it stands in the file: empty, or what it said."""
    session = connected(url)
    start.wait(120)
    time.sleep(wait)
    said = ""
    with gates():
        try:
            world.run_auto(session, full_refresh=full_refresh)
        except Exception as error:
            said = f"{getattr(error, 'code', type(error).__name__)}: {error}"
    Path(file).write_text(json.dumps(said), encoding="utf-8")


class Racers(Clients):
    """One race after the other."""

    def __init__(self, url: str, name: str, folder: Path, draw: random.Random) -> None:
        super().__init__(url, name, "raced", folder, draw, __name__)
        self.world.make(self.session)
        self.world.run_auto(self.session)

    @wrong_counts("races")
    def race(self, other: str) -> None:
        world, session, draw = self.world, self.session, self.draw
        if other == "first run":
            session.query(f"drop table if exists {world.table}")
        world.change(session)
        before, paid = world.read(session), world.paid()
        place = f"{world.case.name} beside {other}, after {world.changes} changes"
        said = self.both(other == "--full-refresh", change=draw.random() < 1 / 3)
        lost = [text for text in said if text]
        assert len(lost) < 2, f"{place}\nboth lost: {lost}"
        assert all(text.startswith("TURN_TAKEN: ") for text in lost), f"{place}\n{lost}"
        checked = self.history(before.version, place)
        assert checked <= 2 - len(lost), f"{place}\nwho lost has published"
        between = world.read(session)
        self.same(before, between, place)
        world.run_auto(session)
        done, wanted = world.read(session), world.wanted(session)
        assert done.rows == wanted, f"{place}\nmissing {wanted - done.rows}, too many {done.rows - wanted}"
        self.same(between, done, place)
        twice = {text: n for text, n in (world.paid() - paid).items() if n > 2}
        assert not twice, f"{place}\npaid for by more than the two: {twice}"
        found = {"races": 1, "published": 2 - len(lost), "lost": len(lost), "versions checked": checked}
        counted({("race", world.case.name, other, what): n for what, n in found.items()})

    def both(self, full_refresh: bool, change: bool) -> list[str]:
        """What each of the two said. `change`: the source changes while they work."""
        start = self.processes.Barrier(3)
        files = [self.folder / f"said {n}" for n in range(2)]
        runs = []
        for number, file in enumerate(files):
            file.unlink(missing_ok=True)
            mine = replace(self.world, number=self.world.number + number)
            words = (self.url, mine, bool(number) and full_refresh, self.draw.uniform(0, 0.5), start, str(file))
            runs.append(self.processes.Process(target=run_beside, args=words))
            runs[-1].start()
        self.world.number += len(runs)
        start.wait(120)
        if change:
            time.sleep(self.draw.uniform(0, 1.5))
            self.session.query(f"update {self.world.schema}.t set s = concat(s, '+') where id % 3 = 1")
        for one in runs:
            one.join(240)
            assert one.exitcode == 0, f"a run did not end by itself: {one.exitcode}"
        return [str(json.loads(file.read_text(encoding="utf-8"))) for file in files]

    def history(self, version: int, place: str) -> int:
        """How many versions runs have published since then."""
        world, session, number = self.world, self.session, 0
        for made, record, foreign in world.published(session):
            if made.number <= version or foreign:
                continue
            (source,) = record.sources.values()
            wanted, found = world.wanted(session, record.as_of, source.version), world.read(session, made)
            assert found.rows == wanted, (
                f"{place}\nversion {made.number} is not the query over version {source.version}"
            )
            number += 1
        return number


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with patch.dict(os.environ), server_for(tmp_path_factory.mktemp("raced") / "server") as running:
        yield running


def race(server: Server, pairs: int, cases: list[str], folder: Path, seed: str) -> None:
    draw = random.Random(seed)
    url = f"sc://127.0.0.1:{server.port}"
    with gates(), ExitStack() as ends:
        racers = [ends.enter_context(closing(Racers(url, name, folder, draw))) for name in cases]
        for number in range(pairs):
            racers[number % len(racers)].race(OTHERS[number // len(racers) % len(OTHERS)])


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_few_races(server: Server, tmp_path: Path) -> None:
    race(server, 3, ["by row"], tmp_path, SEED)


@pytest.mark.slow
@pytest.mark.timeout(10800)
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_races(server: Server, tmp_path: Path) -> None:
    """`PAIRS=n`: so many; another `FAULTS_SEED` for others."""
    race(server, PAIRS, list(CASES), tmp_path, f"{SEED} {PAIRS}")
