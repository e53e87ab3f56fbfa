"""What a long query costs a run beside its short twin: `python benchmarks/chain.py [--ctes 40] [--rows 1000] [--rounds 7]`.

A chain of CTEs of seven lines each over a 30-day window, and one line that gives the same rows. Both live in one warm session
over one source, by turns; a round is one new row, then a run in which nothing is new. Figures are medians.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "integration_tests" / "incremental"))
from direct import Direct, Model

from spark_mv.spark.session.session import open_session

NOW = "2026-01-31 00:00:00"
#: Spark's analyzer gives up at about 50 CTEs in a chain
ITERATIONS = {"spark.sql.analyzer.maxIterations": "500", "spark.sql.optimizer.maxIterations": "500"}


def chain(ctes: int) -> str:
    """So many CTEs, each of which reads the one before."""
    parts = [
        "c0 as (\n  select\n    id, k,\n    ts, v\n  from bench.src\n  where ts > current_timestamp() - interval 30 days\n)"
    ]
    parts += [
        f"c{i} as (\n  select\n    id, k,\n    ts, v + {i} as v\n  from c{i - 1}\n  where v is not null\n)"
        for i in range(1, ctes)
    ]
    return "with " + ",\n".join(parts) + f"\nselect id, k, ts, v, rand() as r from c{ctes - 1}"


def twin(ctes: int) -> str:
    """The same rows by one SELECT."""
    return (
        f"select id, k, ts, v + {sum(range(ctes))} as v, rand() as r from bench.src "
        "where ts > current_timestamp() - interval 30 days and v is not null"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ctes", type=int, default=40)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    words = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    try:
        spark = open_session({"spark.driver.memory": "4g", **ITERATIONS}, home / "warehouse", home / "spark.log")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        session = Direct(spark)
        session.query("create schema bench")
        session.query(
            "create table bench.src using delta tblproperties (delta.enableChangeDataFeed = true) as "
            f"select id, id % 7 as k, timestamp'2026-01-15' as ts, cast(id as int) as v from range({words.rows})"
        )
        models = [
            Model("bench", name, sql, {"unique_key": "id"})
            for name, sql in (("chain", chain(words.ctes)), ("twin", twin(words.ctes)))
        ]
        for model in models:
            model.run(session, NOW)
        times: dict[tuple[str, str], list[float]] = {}
        for number in range(words.rounds + 3):  # three to warm up
            session.query(f"insert into bench.src values ({words.rows + number}, 1, timestamp'2026-01-20', 5)")
            for what in ("one new row", "nothing new"):
                for model in models[:: 1 - 2 * (number % 2)]:
                    started = time.perf_counter()
                    run = model.run(session, NOW)
                    if number >= 3:
                        key = (f"{what} ({run.plan.strategy})", model.name)
                        times.setdefault(key, []).append(time.perf_counter() - started)
        one, other = (session.bag(f"select id, k, ts, v from {model.table}") for model in models)
        if one != other:
            raise SystemExit("the two tables differ")
        print(f"{words.ctes} CTEs, {chain(words.ctes).count(chr(10)) + 1} lines, {words.rows:,} rows")
        for (what, name), seconds in times.items():
            beside = next(s for (w, n), s in times.items() if n == "twin" and w.split(" (")[0] == what.split(" (")[0])
            print(f"{what:32} {name:6} {median(seconds):6.2f} s  {median(seconds) / median(beside):5.2f} x")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
