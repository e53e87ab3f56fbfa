"""A whole `dbt run` of many small models beside the same project as `table` models: `python benchmarks/project.py [--models 100] [--rounds 3]`.

Ten seeds of a thousand rows, and models that read one each: projections with a draw, groups, the newest row per group, and joins of two.
Each figure is a process of its own, from its start to its end, by turns: nothing changed, and one seed changed before (loaded in
another process, which is not counted). `--profile FILE` writes where one run in this process spends its time, for `pstats`.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import random
import shutil
import tempfile
from pathlib import Path
from statistics import median

from dbt_process import OURS, make_project, run

SEEDS, ROWS = 10, 1000
SHAPES = {
    "id": "select id, kind * {m} as kinds, day, case when rand() < 0.5 then 'a' else 'b' end as split from {one} where kind <> {m} % 5",
    "kind": "select kind, count(*) as n, max(day) as latest, sum(id) as total from {one} where id > {m} group by kind",
    "day": "select day, id, kind from (select *, row_number() over (partition by day order by id desc) as nth from {one}) where nth = 1 and {m} >= 0",
    "one_id": "select a.id as one_id, b.kind, a.day from {one} a join {two} b on a.id = b.id and a.kind <> {m}",
}


def models(count: int, materialized: str) -> dict[str, str]:
    """The files of `count` models; their draw is the only thing that `table` would not keep."""
    files = {}
    for m in range(count):
        key, sql = list(SHAPES.items())[m % len(SHAPES)]
        one, two = (f"{{{{ ref('seed_{s % SEEDS}') }}}}" for s in (m, m + 1))
        config = f"materialized='{materialized}'" + (
            f", unique_key='{key}'" if materialized == "nondeterministic_mv" else ""
        )
        files[f"models/m_{m:03}.sql"] = f"{{{{ config({config}) }}}}\n{sql.format(m=m, one=one, two=two)}\n"
    return files


def seed(number: int, changed: int) -> str:
    """A seed's text; each change edits five rows and appends five."""
    drawn = random.Random(number)
    rows = [[i, drawn.randrange(7), f"2026-01-{drawn.randrange(28) + 1:02}"] for i in range(ROWS + 5 * changed)]
    for change in range(changed):
        for k in range(5):
            rows[k * 100 + change][1] = 8 + change
    return "id,kind,day\n" + "".join(f"{i},{kind},{day}\n" for i, kind, day in rows)


def profile(folder: Path, file: Path) -> None:
    """One more run with nothing to do, in this process, after one that starts Spark."""
    from dbt.cli.main import dbtRunner

    os.chdir(folder)
    words = ["run", "--quiet"]
    dbtRunner().invoke(words)
    watch = cProfile.Profile()
    watch.enable()
    dbtRunner().invoke(words)
    watch.disable()
    watch.dump_stats(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", type=Path, help="only this: a profile of a run with nothing to do")
    words = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    seeds = {f"seeds/seed_{n}.csv": seed(n, 0) for n in range(SEEDS)}
    kinds = ("nondeterministic_mv", "table") if words.profile is None else ("nondeterministic_mv",)
    try:
        folders = {kind: make_project(home / kind, OURS, {**seeds, **models(words.models, kind)}) for kind in kinds}
        first = {}
        for kind, folder in folders.items():
            run(folder, "seed")
            first[kind] = run(folder, "run", limit=3600).end
        if words.profile is not None:
            return profile(folders["nondeterministic_mv"], words.profile.resolve())
        ends: dict[tuple[str, str], list[float]] = {}
        for round_ in range(words.rounds):
            for kind, folder in folders.items():
                ends.setdefault((kind, "nothing changed"), []).append(run(folder, "run", limit=3600).end or 0.0)
            for kind, folder in folders.items():
                (folder / "seeds/seed_0.csv").write_text(seed(0, round_ + 1), encoding="utf-8")
                run(folder, "seed", "--select", "seed_0")
                ends.setdefault((kind, "one source changed"), []).append(run(folder, "run", limit=3600).end or 0.0)
        print(f"{words.models} models, seconds of the process:")
        print("  first run: " + ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in first.items()))
        for phase in ("nothing changed", "one source changed"):
            ours, theirs = (median(ends[kind, phase]) for kind in kinds)
            print(f"  {phase}: nondeterministic_mv {ours:.1f}, table {theirs:.1f}, ratio {ours / theirs:.2f}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
