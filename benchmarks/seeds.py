"""`dbt seed` beside plain dbt-spark's: `python benchmarks/seeds.py [--rows 1000 10000 100000] [--limit 300]`.

Both read the same CSV file of four columns into a Delta table, in a fresh process each. A seed that has not come to its
end within the limit (seconds) is stopped, and that side is not asked for more rows. `seed` is the time of the seed
itself as dbt reports it, `process` that of the whole command.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from dbt_process import OURS, PLAIN, make_project, run


def seed_file(rows: int) -> str:
    lines = (f"{i},name {i},{i / 4},2024-01-{i % 28 + 1:02d}" for i in range(rows))
    return "id,name,amount,day\n" + "\n".join(lines) + "\n"


def seconds_of_seed(project: Path) -> float:
    results = json.loads((project / "target" / "run_results.json").read_text(encoding="utf-8"))["results"]
    return float(results[0]["execution_time"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--limit", type=float, default=300.0)
    arguments = parser.parse_args()
    given_up: set[str] = set()
    print(f"{'rows':>8}  {'':14}  {'seed':>8}  {'process':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for side in (OURS, PLAIN):  # catalogue and jars
            run(make_project(Path(folder) / side, side, {"seeds/many.csv": seed_file(1)}), "seed")
        for rows in arguments.rows:
            for side in (OURS, PLAIN):
                if side in given_up:
                    continue
                project = Path(folder) / side
                (project / "seeds" / "many.csv").write_text(seed_file(rows), encoding="utf-8")
                timing = run(project, "seed", "--full-refresh", limit=arguments.limit)
                if timing.end is None:
                    given_up.add(side)
                    print(f"{rows:8,}  {side:14}  {'over':>8}  {arguments.limit:8.1f}", flush=True)
                else:
                    print(f"{rows:8,}  {side:14}  {seconds_of_seed(project):8.1f}  {timing.end:8.1f}", flush=True)


if __name__ == "__main__":
    main()
