"""From `dbt run` to the first statement's answer, in fresh processes: `python benchmarks/startup.py [--rounds 5]`.

The sides take turns, after a round of each that is not counted: it fetches jars and makes the catalogue. Ours is measured
without and with the archive of Spark's classes that `spark-mv warm-up` makes, and with a server of `spark-mv serve`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from dbt_process import OURS, PLAIN, Timing, make_project, run

WARM, SERVED = f"{OURS} after warm-up", f"{OURS} with serve"

FILES = {"models/one.sql": "{{ config(materialized='view') }}\nselect 1 as id\n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ours", action="store_true", help="leave dbt-spark out")
    asked = parser.parse_args()
    rounds = asked.rounds
    # an archive belongs to one class path: that another environment has one tells nothing
    spark_mv = str(Path(sys.executable).with_name("spark-mv"))
    subprocess.run([spark_mv, "warm-up"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        # Java's own default, which says that nothing but its own archive is to be used
        cold = {"spark.driver.extraJavaOptions": "-Xshare:auto"}
        projects = {
            OURS: make_project(Path(folder) / "cold", OURS, FILES, cold),
            WARM: make_project(Path(folder) / "warm", OURS, FILES),
            SERVED: make_project(Path(folder) / "served", OURS, FILES),
        }
        if not asked.ours:
            projects[PLAIN] = make_project(Path(folder) / "plain", PLAIN, FILES)
        subprocess.run([spark_mv, "serve"], cwd=projects[SERVED], check=True)
        timings: dict[str, list[Timing]] = {side: [] for side in projects}
        try:
            for number in range(rounds + 1):
                for side, project in projects.items():
                    timing = run(project, "run")
                    if number:
                        timings[side].append(timing)
                        print(f"round {number}, {side}: {timing.first_answer:.1f}, {timing.end:.1f}", flush=True)
        finally:
            subprocess.run([spark_mv, "serve", "--stop"], cwd=projects[SERVED], check=True)
    print(f"\nseconds, medians of {rounds} fresh processes\n")
    print(f"{'':28}  first answer  end of dbt run")
    for side, found in timings.items():
        print(f"{side:28}  {middle(found, 'first_answer'):12.1f}  {middle(found, 'end'):14.1f}")


def middle(timings: list[Timing], name: str) -> float:
    return median(value for timing in timings if (value := getattr(timing, name)) is not None)


if __name__ == "__main__":
    main()
