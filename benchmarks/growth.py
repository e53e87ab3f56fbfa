"""How the cost of a run grows with the table: `python benchmarks/growth.py [--rows 1000000 10000000 100000000] [--rounds 3] [--memory 8g]`.

A fixed change of 10,000 rows (new, edited, leaving a window, in groups) over tables of different sizes, each beside `create or
replace table … as` of the same query once per size. Medians of the rounds after one to warm up, printed as the table of
docs/benchmarks.md, from which the picture is drawn (`make pictures`).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "integration_tests" / "incremental"))
from direct import Direct, Model
from small import timed

from spark_mv.spark.session.session import open_session

CHANGE = 10_000
MODELS = {
    "new rows": ("id", "select id, k, x, rand() as r from bench.src where x >= 0"),
    "edited rows": ("id", "select id, k, x, rand() as r from bench.src where x >= 0"),
    "a window that moves": ("id", "select id, x, at from bench.src where at > current_timestamp() - interval 30 days"),
    "groups": ("k", "select k, count(*) as n, sum(x) as total from bench.src group by k"),
}  # fmt: skip
START = "2026-01-31 00:00:00"


def make(session: Direct, rows: int) -> None:
    """So many rows, of which CHANGE leave in each hour."""
    session.query(
        f"create table bench.src using delta tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true) as "
        f"select id, id % 1000 as k, cast(id % 997 as int) as x, timestamp'2026-01-01 00:30:00' + make_interval(0, 0, 0, 0, least(id div {CHANGE}, 700)) as at "
        f"from range({rows})"
    )


def change(session: Direct, model: str, rows: int, round_: int) -> str:
    """The change of a round; what the clock says in it."""
    first = rows + round_ * CHANGE
    if model in ("new rows", "groups"):
        session.query(
            f"insert into bench.src select id, id % 1000, 1, timestamp'{START}' from range({first}, {first + CHANGE})"
        )
    elif model == "edited rows":
        session.query(f"update bench.src set x = x + 1 where id % {rows // CHANGE} = {round_}")
    return f"2026-01-31 {round_ + 1:02}:00:00"


def measure(session: Direct, rows: int, rounds: int, models: list[str]) -> dict[str, tuple[float, float, str]]:
    """Of each model: the median of its runs, of the rebuild, and how it went."""
    found = {}
    for model in models:
        session.query("drop schema if exists bench cascade")
        session.query("create schema bench")
        make(session, rows)
        key, sql = MODELS[model]
        lives = Model("bench", "m", sql, {"unique_key": [key]}, choose_by="seconds", followed=False)
        lives.run(session, START)
        runs, went = [], ""
        for round_ in range(rounds + 1):
            now = change(session, model, rows, round_)
            seconds, run = timed(lambda now=now, lives=lives: lives.run(session, now))
            if round_:
                runs.append(seconds)
            went = run.plan.strategy
        rebuilt = (
            f"create or replace table bench.t using delta as {sql.replace('current_timestamp()', f'timestamp{now!r}')}"
        )
        rebuilds = [
            timed(lambda rebuilt=rebuilt: session.query(rebuilt))[0] for _ in range(2 if rows < 50_000_000 else 1)
        ]
        found[model] = (median(runs), min(rebuilds), went)
        print(f"  {rows:,} rows, {model}: {found[model]}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--memory", default="8g")
    words = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    try:
        spark = open_session({"spark.driver.memory": words.memory}, home / "warehouse", home / "spark.log")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        session: Any = Direct(spark)
        measure(session, 200_000, 3, words.models)  # the JVM's compiler
        found = {rows: measure(session, rows, words.rounds, words.models) for rows in words.rows}
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print("| change of 10,000 rows | " + " | ".join(f"{rows:,} rows | rebuild" for rows in words.rows) + " |")
    print("|---" * (1 + 2 * len(words.rows)) + "|")
    for model in words.models:
        cells = [cell for rows in words.rows for cell in found[rows][model][:2]]
        print(
            f"| {model} (`{found[words.rows[-1]][model][2]}`) | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |"
        )


if __name__ == "__main__":
    main()
