"""How long the planning of a model takes, step by step: `python benchmarks/planning.py [name …]` prints a table.

Models: a chain of n CTEs with a window, CTEs that are each read twice, a join of n tables, deep expressions. Steps: the
verdict (`analyze`), the clock split off (`split_clock`), the tree of the strategies (`read_tree`), the query for affected
rows (`affected`), pinning. `explain` is the whole: all that is done for every strategy in every situation, of a text that was
not seen before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from time import process_time

from spark_mv.explain.judgement import judge
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.restrict import NotIncremental, kept_spans, read_tree
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.rewrite.pin import Pins, clock_spans, pin
from spark_mv.query.syntax.select_tree import Leaf

COLUMNS = {"id": "bigint", "k": "bigint", "ts": "timestamp", "v": "double", "s": "string"}
PINS = Pins(datetime(2026, 1, 31, tzinfo=timezone.utc))


def chain(n: int) -> str:
    """`n` CTEs, each of seven lines, each reading the one before."""
    parts = ["c0 as (select id, k, ts, v, s from t0 where ts > current_timestamp() - interval 30 days)"]
    parts += [
        f"c{i} as (\n  select\n    id, k, ts,\n    v + {i} as v, s\n  from c{i - 1}\n  where v is not null\n)"
        for i in range(1, n)
    ]
    return "with " + ",\n".join(parts) + f"\nselect id, k, ts, v, s from c{n - 1}\n"


def twice(n: int) -> str:
    """`n` CTEs, each of which reads the one before twice."""
    parts = ["c0 as (select id, k, ts, v, s from t0 where ts > current_timestamp() - interval 30 days)"]
    parts += [
        f"c{i} as (select a.id, a.k, a.ts, b.v, a.s from c{i - 1} a join c{i - 1} b on a.id = b.id)"
        for i in range(1, n)
    ]
    return "with " + ",\n".join(parts) + f"\nselect id, k, ts, v, s from c{n - 1}\n"


def joins(n: int) -> str:
    """A join of `n` tables, with a window on one of them."""
    listed = ",\n".join(f"  t{i}.v + {i} as v{i}" for i in range(n))
    joined = "\n".join(f"join t{i} on t{i}.id = t0.id and t{i}.k > {i}" for i in range(1, n))
    return f"select t0.id,\n{listed}\nfrom t0\n{joined}\nwhere t0.ts > current_timestamp() - interval 30 days"


def terms(n: int) -> str:
    """`n` conditions joined by OR."""
    tests = "\n or ".join(f"k = {i}" for i in range(n))
    return f"select id, k, ts from t0 where ts > current_timestamp() - interval 30 days and ({tests})"


def calls(n: int) -> str:
    """`n` calls in each other."""
    return f"select id, {'coalesce(' * n}v{', 0)' * n} as v from t0 where ts > current_timestamp() - interval 30 days"


def unions(n: int) -> str:
    """A UNION ALL of `n` SELECTs."""
    arm = "select id, k, ts from t0 where ts > current_timestamp() - interval {} days"
    return "\nunion all\n".join(arm.format(i + 1) for i in range(n))


@dataclass
class Tables:
    """Every table changed."""

    columns: dict[str, tuple[str, ...]]

    def changed(self, leaf: Leaf) -> bool:
        return leaf.name == "t0"

    def now(self, leaf: Leaf) -> str:
        return leaf.text

    def changes_text(self, leaf: Leaf) -> str:
        return f"{leaf.text}_changes"

    def now_and_before(self, leaf: Leaf) -> str:
        return f"{leaf.text}_both"

    def pinned(self, sql: str) -> str:
        return pin(sql, PINS).sql

    def outweighs(self, name: str) -> bool:
        return False

    def types(self, name: str) -> dict[str, str]:
        return COLUMNS


def plan(sql: str) -> dict[str, float]:
    """Seconds per step of planning, and the size of what comes out."""
    schemas = {f"t{i}": COLUMNS for i in range(200)}
    took: dict[str, float] = {}

    def timed(name: str, step: Callable[[], object]) -> object:
        start = process_time()
        try:
            return step()
        except NotIncremental as error:
            took[f"({error.code})"] = 0.0
            return None
        finally:
            took[name] = process_time() - start

    analysis = timed("analyze", lambda: analyze(sql, unique_key="id", schemas=schemas))
    assert not analysis.errors, analysis.errors  # type: ignore[attr-defined]
    timed("pin", lambda: pin(sql, PINS))
    kept = timed("kept", lambda: kept_spans(sql, analysis))  # type: ignore[arg-type]
    split = timed("split", lambda: split_clock(sql, schemas, "UTC", kept=kept))  # type: ignore[arg-type]
    uses = clock_spans(sql)
    tree = timed("tree", lambda: read_tree(analysis, split, uses))  # type: ignore[arg-type]
    if tree is not None:
        tables = Tables({name: tuple(columns) for name, columns in schemas.items()})
        found = timed("affected", lambda: tree.affected(tables, ["id"], set(COLUMNS)))  # type: ignore[attr-defined]
        if found is not None:
            timed("restricted", lambda: tree.restricted("changed", found))  # type: ignore[attr-defined]
            took["sql kB"] = len(found.sql) / 1000  # type: ignore[attr-defined]
    anew = f"{sql}\n"  # another text: nothing is remembered of it
    judged = timed("explain", lambda: judge(anew, unique_key=("id",), schemas=schemas))
    took["strategies"] = sum(s.applies for s in judged.strategies)  # type: ignore[attr-defined]
    return took


MODELS: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "chain": (chain, (10, 20, 40, 80, 160, 280)),
    "twice": (twice, (4, 6, 10, 50)),
    "joins": (joins, (10, 30)),
    "terms": (terms, (100, 2000)),
    "calls": (calls, (20, 200)),
    "unions": (unions, (50, 500)),
}


def main() -> None:
    for name in sys.argv[1:] or MODELS:
        model, sizes = MODELS[name.split(":")[0]]
        for size in [int(n) for n in name.split(":")[1:]] or sizes:
            sql = model(size)
            took = plan(sql)
            steps = "  ".join(f"{step} {seconds:.3f}" for step, seconds in took.items())
            print(f"{name.split(':')[0]} {size}: {sql.count(chr(10)) + 1} lines  {steps}", flush=True)


if __name__ == "__main__":
    main()
