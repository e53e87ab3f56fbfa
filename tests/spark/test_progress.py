"""Long steps give signs of life, short ones none."""

from __future__ import annotations

import time
from functools import partial

import pytest

from spark_mv.spark.adapter import connections
from spark_mv.spark.session.progress import Watch, note

pytestmark = pytest.mark.unit


def test_a_short_step_says_nothing() -> None:
    said: list[str] = []
    with Watch("step", said.append, lambda: (1, 2), terminal=False):
        pass
    assert said == []


def test_a_long_step_says_how_far_it_is() -> None:
    said: list[str] = []
    with Watch("step", said.append, lambda: (1, 2), patience=0.01, every=0.01, terminal=False):
        while len(said) < 2:
            time.sleep(0.01)
        note("m", "AI answers 3 / 7", said.append)
        while not said[-1].startswith("step: AI answers 3 / 7"):
            time.sleep(0.01)
    assert said[0].startswith("step: 1 of 2 tasks (")
    assert "model m: AI answers 3 / 7" in said


def test_progress_never_breaks_a_step() -> None:
    def broken() -> tuple[int, int]:
        raise RuntimeError("no Spark")

    said: list[str] = []
    with Watch("step", said.append, broken, patience=0.0, every=0.01, terminal=False):
        while not said:
            time.sleep(0.01)
    assert said[0].startswith("step: at work")


def test_on_a_terminal_there_is_a_bar_and_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    with Watch("a step", said.append, lambda: (1, 2), patience=0.0, terminal=True):
        note("m", "AI answers 3 / 7", said.append)
        time.sleep(1.3)
    assert said == []
    assert "a step" in capfd.readouterr().err


def test_a_start_of_spark_is_shown_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    quick = partial(Watch, patience=0.01, every=0.01, terminal=False)
    monkeypatch.setattr(connections, "Watch", quick)
    monkeypatch.setattr(connections.logger, "info", said.append)
    with connections._start_shown({"spark.remote": "sc://localhost"}):
        time.sleep(0.1)
    assert said == []
    with connections._start_shown({}):
        with connections._start_shown({}):  # of another thread, which waits for the same start
            pass
        while not said:
            time.sleep(0.01)
    assert said[0].startswith("starting Spark: at work (")
