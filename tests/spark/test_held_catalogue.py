"""A catalogue that another process has open: found before Spark asks for it, and told once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.spark.session import session
from spark_mv.spark.session.derby_lock import LOCK, held_for
from spark_mv.spark.session.own_catalogue import URL, database

pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(sys.platform != "linux", reason="record locks are asked for on Linux"),
]

HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def hold(folder: Path, seconds: float) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / LOCK), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_process_that_ends_is_waited_for(tmp_path: Path) -> None:
    with hold(tmp_path / "metastore", 1):
        assert not held_for(tmp_path / "metastore", 30)
    process = hold(tmp_path / "metastore", 60)
    try:
        assert held_for(tmp_path / "metastore", 0)
    finally:
        process.kill()
        process.wait()


def test_which_settings_have_a_database_of_their_own() -> None:
    own = {"spark.sql.catalogImplementation": "hive", URL: "jdbc:derby:;databaseName=/w/metastore;create=true"}
    assert database(own) == Path("/w/metastore")
    assert database({**own, "spark.sql.catalogImplementation": "in-memory"}) is None
    assert database({**own, "hive.metastore.uris": "thrift://host:9083"}) is None
    assert database({**own, URL: "jdbc:postgresql://host/metastore"}) is None


def test_a_start_that_failed_in_the_background_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first connection says why, instead of trying the same for as long again."""
    tried: list[Any] = []

    def start(*_: Any) -> Any:
        tried.append(1)
        raise session.CatalogueInUse("in use")

    monkeypatch.setattr(session, "_start", start)
    monkeypatch.setattr(session, "_running", lambda: None)
    threads: list[Any] = []
    monkeypatch.setattr(
        session.threading, "Thread", lambda target, **_: threads.append(target) or SimpleNamespace(start=target)
    )
    session.start_early({}, tmp_path, tmp_path / "log")
    for times in (1, 2):
        with pytest.raises(session.CatalogueInUse, match="in use"):
            session.open_session({}, tmp_path, tmp_path / "log")
        assert len(tried) == times
