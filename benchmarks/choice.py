"""How often `refresh: auto` takes the quickest way: `python benchmarks/choice.py [--rows 20000 100000 500000] [--rounds 3]`.

Each model of small.py lives three times beside itself through the same changes: by its own choice (`choose_by: seconds`), by an
incremental strategy, and recomputed. A choice is right where the way that it took needed no more than 1.2 times the seconds of the
quickest one, each as measured in its own table. The first round teaches what statements take here, and is not counted.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from small import MODELS, NOW, Timed, change, make, model_of, timed

from spark_mv.spark.session.session import open_session

WAYS = {"own": "auto", "inc": "incremental", "full": "full"}
RIGHT = 1.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[20_000, 100_000, 500_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    words = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    try:
        spark = open_session({"spark.driver.memory": "3g"}, home / "warehouse", home / "spark.log")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        session = Timed(spark)
        print(f"{'rows':>8} {'model':12} {'took':>20} {'estimates':>14} {'incremental':>12} {'recomputed':>11}")
        right = [r for rows in words.rows for r in measure(session, rows, words.rounds, words.models)]
        print(f"right: {sum(right)} of {len(right)} ({sum(right) / len(right):.0%})")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def measure(session: Timed, rows: int, rounds: int, models: list[str]) -> list[bool]:
    """For each model and round but the first, whether the choice was right."""
    session.query("drop schema if exists bench cascade")
    make(session, rows)
    lives = {(name, way): model_of(name, way) for name in models for way in WAYS}
    for model in lives.values():
        model.run(session, NOW)
    found = []
    for round_ in range(rounds):
        change(session, rows, round_ + 1)
        for number, name in enumerate(models):
            run = partial(_run, session, {way: lives[name, way] for way in WAYS}, NOW)
            right = judged(run, number + round_, f"{rows:8} {name:12}" if round_ else "")
            found += [] if right is None else [right]
    return found


def _run(session: Timed, lives: Mapping[str, Any], now: str, way: str) -> Any:
    return lives[way].run(session, now, WAYS[way])


def judged(run: Callable[[str], Any], turn: int, label: str) -> bool | None:
    """Whether the choice was right, and a line of it; None where there was none, or without a `label`. `run` makes the model's run that lives by
    one of the ways, by `turn` each is the first."""
    runs = {way: timed(lambda w=way: run(w)) for way in [*WAYS][turn % 3 :] + [*WAYS][: turn % 3]}
    own = runs["own"][1].plan
    inc, full = runs["inc"][0], runs["full"][0]
    if not label or runs["inc"][1].plan.strategy in ("NO_OP", "COMPLETE_RECOMPUTE"):
        return None
    right = (full if own.strategy == "COMPLETE_RECOMPUTE" else inc) <= min(inc, full) * RIGHT
    guesses = "/".join(f"{c.seconds:.1f}" for c in own.candidates if c.seconds is not None)
    print(
        f"{label} {own.strategy:>20} {guesses:>14} {inc:11.2f}s {full:10.2f}s" + ("" if right else "  wrong"),
        flush=True,
    )
    return bool(right)


if __name__ == "__main__":
    main()
