"""kill -9 of a process that runs dbt, of its Spark, or of both, at a moment drawn from a seed; the next run is in another process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest
from integration_tests.counting import counted, wrong_counts

KILLS = int(os.environ.get("KILLS", "12"))
SEED = os.environ.get("FAULTS_SEED", "24")
VICTIMS = ("dbt", "Spark", "both")
PROGRAM = Path(__file__).with_name("dying_run.py")
WAIT = 240.0
"""Seconds after which a process that says nothing is taken for stuck."""


class Dying:
    """A process of dying_run.py; what it says is read up to a word."""

    def __init__(self, folder: Path, last: bool) -> None:
        words = [sys.executable, str(PROGRAM), str(folder), *(["last"] if last else [])]
        self.seen: list[str] = []
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.stuck = Timer(WAIT, self.process.kill)
        self.stuck.start()

    def said(self, word: str) -> list[str]:
        assert self.process.stdout
        for line in self.process.stdout:
            self.seen.append(line)
            if line.startswith(f"{word} "):
                return line.split()[1:]
        raise AssertionError("".join(self.seen[-60:]))

    def spark(self) -> int:
        command = ["ps", "-o", "pid=,comm=", "--ppid", str(self.process.pid)]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (pid,) = [int(line.split()[0]) for line in found.splitlines() if line.split()[1] == "java"]
        return pid

    def kill(self, victim: str) -> bool:
        """Whether the run was under way."""
        spark = self.spark()
        for pid in {"dbt": [self.process.pid], "Spark": [spark], "both": [self.process.pid, spark]}[victim]:
            os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(60)  # where Spark was killed, dbt says that its engine is gone
        self.end()
        assert gone(spark), "a Spark whose dbt is dead lives on"
        assert self.process.stdout
        return "DONE\n" not in self.process.stdout.readlines()

    def end(self) -> None:
        self.stuck.cancel()
        self.process.kill()
        self.process.wait(30)


def gone(pid: int, seconds: float = 120) -> bool:
    """Whether a process ends; one that nobody has asked for its end (Z) has ended."""
    stat, until = Path(f"/proc/{pid}/stat"), time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.2)
    return False


@wrong_counts("kills")
def kill_again_and_again(kills: int, seed: str, folder: Path) -> None:
    draw = random.Random(seed)
    victim, when, paid_again = "", "", 0
    for number in range(kills + 1):
        one = Dying(folder, last=number == kills)
        try:
            if victim:
                after, again = one.said("RIGHT")
                counted({("kill", victim, when, after): 1, ("kill", victim, "asked again"): int(again) - paid_again})
                paid_again = int(again)
            if number < kills:
                (took,) = one.said("NOW")
                victim = draw.choice(VICTIMS)
                time.sleep(draw.uniform(0, 0.8 * float(took)))
                under_way = one.kill(victim)
                when = "first run" if number == 0 else "run"
                when = when if under_way else "behind a run"
        finally:
            one.end()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_two_kills(tmp_path: Path) -> None:
    kill_again_and_again(2, SEED, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_kills(tmp_path: Path) -> None:
    """`KILLS=n`: so many one after the other; another `FAULTS_SEED` for other moments."""
    kill_again_and_again(KILLS, f"{SEED} {KILLS}", tmp_path)
