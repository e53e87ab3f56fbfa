"""Signs of life from long statements: a line with a bar on a terminal, plain lines now and then elsewhere.

Short statements show nothing. Bars go to standard error and vanish when done; dbt's own lines stay on standard output.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 5.0
"""Seconds before a statement counts as long."""
EVERY = 15.0
"""Seconds between two plain lines."""

Tasks = Callable[[], "tuple[int, int]"]
"""Tasks that are done, and all tasks, of the stages that run now."""

_here = threading.local()


class Watch:
    """Watches one step of one thread; a context manager. `say` prints a plain line; `tasks` is asked about once a second."""

    def __init__(
        self,
        text: str,
        say: Callable[[str], None],
        tasks: Tasks,
        *,
        patience: float = PATIENCE,
        every: float = EVERY,
        terminal: bool | None = None,
    ) -> None:
        self.text, self.say, self.tasks = text, say, tasks
        self.patience, self.every = patience, every
        self.terminal = sys.stderr.isatty() if terminal is None else terminal
        self.note = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-mv-progress", daemon=True)

    def __enter__(self) -> Watch:
        _here.watch = self
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        _here.watch = None
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        begun = time.monotonic()
        if self._done.wait(self.patience):
            return
        if self.terminal:
            self._bar(begun)
            return
        while True:
            self.say(f"{self.text}: {self._state()} ({time.monotonic() - begun:.0f} s)")
            if self._done.wait(self.every):
                return

    def _bar(self, begun: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
        with Progress(
            *columns, console=Console(stderr=True, force_terminal=True), transient=True, redirect_stdout=False
        ) as bars:
            task = bars.add_task(self.text, total=None)
            while not self._done.wait(1.0):
                done, total = self._tasks()
                bars.update(task, completed=done, total=total or None, description=f"{self.text}: {self._state()}")

    def _state(self) -> str:
        if self.note:
            return self.note
        done, total = self._tasks()
        return f"{done:,} of {total:,} tasks" if total else "at work"

    def _tasks(self) -> tuple[int, int]:
        try:
            return self.tasks()
        except Exception:  # progress must never break a run
            return 0, 0


def note(model: str, text: str, say: Callable[[str], None]) -> None:
    """What a step of a model has to tell of itself: into this thread's bar where there is one, else a line."""
    watch: Watch | None = getattr(_here, "watch", None)
    if watch is not None:
        watch.note = text
    if watch is None or not watch.terminal:
        say(f"model {model}: {text}")


def spark_tasks(spark: Any) -> Tasks:
    """Counts the tasks of Spark's running stages; of all connections, because Spark tells no more. None over Connect."""
    tracker = spark.sparkContext.statusTracker() if hasattr(spark, "_jsc") else None

    def count() -> tuple[int, int]:
        if tracker is None:
            return 0, 0
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        return sum(s.numCompletedTasks for s in stages if s), sum(s.numTasks for s in stages if s)

    return count
