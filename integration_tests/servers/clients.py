"""Processes of their own that run a model over Spark Connect: the session that each of them has, and the one case that they run."""

from __future__ import annotations

import random
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from integration_tests.servers.server import CONNECT, Server
from integration_tests.under_format import FORMAT

sys.path.insert(0, str(Path(__file__).parents[1] / "incremental"))
from changing_models import CASES, World, same_values
from gates import Gated

from spark_mv.spark.session.session import open_session


def server_for(home: Path) -> Server:
    """A server of Spark Connect that knows the format which the tests are run on (see under_format.py)."""
    return Server(CONNECT, home, iceberg="hadoop" if FORMAT == "iceberg" else "")


def connected(url: str) -> Gated:
    session = open_session({"spark.remote": url}, Path(), Path())
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return Gated(session)


class Clients:
    """One case over the server, and a forkserver for processes whose targets are in the module `preload`."""

    def __init__(self, url: str, name: str, schema: str, folder: Path, draw: random.Random, preload: str) -> None:
        self.url, self.draw, self.folder = url, draw, folder
        self.session = connected(url)
        self.world = World(CASES[name], f"{schema}_{name.replace(' ', '_')}", folder / f"asked {name}")
        self.processes = get_context("forkserver")
        self.processes.set_forkserver_preload([preload])

    def close(self) -> None:
        """Before the server ends: at the end of the process Spark's client would go on trying to tell it, for minutes."""
        self.session.spark.stop()

    def same(self, before: Any, now: Any, place: str) -> None:
        """No kept value moved; answers follow their inputs."""
        assert self.world.case.name == "asked" or same_values(before.kept, now.kept), f"{place}\na kept value moved"
