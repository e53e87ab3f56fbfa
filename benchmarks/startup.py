"""From `dbt run` to the first statement's answer, in fresh processes: `python benchmarks/startup.py [--rounds 5]`.

The two sides take turns, after a round of each that is not counted: it fetches jars and makes the catalogue.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from dbt_process import OURS, PLAIN, Timing, make_project, run

FILES = {"models/one.sql": "{{ config(materialized='view') }}\nselect 1 as id\n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        projects = {side: make_project(Path(folder) / side, side, FILES) for side in (OURS, PLAIN)}
        timings: dict[str, list[Timing]] = {OURS: [], PLAIN: []}
        for number in range(rounds + 1):
            for side, project in projects.items():
                timing = run(project, "run")
                if number:
                    timings[side].append(timing)
    print(f"seconds, medians of {rounds} fresh processes\n")
    print(f"{'':14}  first answer  end of dbt run")
    for side, found in timings.items():
        print(f"{side:14}  {middle(found, 'first_answer'):12.1f}  {middle(found, 'end'):14.1f}")


def middle(timings: list[Timing], name: str) -> float:
    return median(value for timing in timings if (value := getattr(timing, name)) is not None)


if __name__ == "__main__":
    main()
