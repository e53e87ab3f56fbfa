"""Runs over small tables beside `create or replace table … as` of the same query: `python benchmarks/small.py [--rows 100000] [--rounds 4]`.

Models of different shapes over orders, lines and customers. For each: the first run, a run after a tenth of a percent of orders and
lines came, went or were edited, a complete recompute after the same, and a run with nothing to do. All in one warm session, by
turns with the rebuild, which goes first in every other round: who does sums up what the sources' logs have new. The table that changes is
the same in all rounds, as in a life. Figures are medians and their ratios. `--trace` lists the statements of the last round with their seconds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "integration_tests" / "incremental"))
from direct import Direct, Model

from spark_mv.spark.session.session import open_session

NOW = "2026-01-31 00:00:00"
MODELS: dict[str, tuple[str, str]] = {
    "projection": (
        "o_id",
        "select o_id, o_customer, upper(o_status) as status, o_total * 1.2 as gross, o_at from bench.orders",
    ),
    "draw": (
        "o_id",
        "select o_id, o_total, case when rand() < 0.8 then 'train' else 'test' end as split from bench.orders",
    ),
    "filter": ("o_id", "select o_id, o_customer, o_total from bench.orders where o_status = 'open' and o_total > 100"),
    "window": (
        "o_id",
        "select o_id, o_total, o_at from bench.orders where o_at > current_timestamp() - interval 30 days",
    ),
    "wide": ("l_id", "select *, l_price * l_quantity as amount, date_trunc('month', l_at) as month from bench.lines"),
    "dimension": (
        "o_id",
        "select o_id, o_total, c_name, c_region from bench.orders join bench.customers on o_customer = c_id",
    ),
    "outer": (
        "o_id",
        "select o_id, o_total, coalesce(c_region, 'none') as region, uuid() as tag from bench.orders left join bench.customers on o_customer = c_id",
    ),
    "facts": (
        "l_id",
        "select l_id, l_price, o_status, o_at from bench.lines join bench.orders on l_order = o_id",
    ),
    "by customer": (
        "o_customer",
        "select o_customer, count(*) as n, sum(o_total) as total, max(o_at) as latest from bench.orders group by o_customer",
    ),
    "by day": (
        "day, o_status",
        "select cast(o_at as date) as day, o_status, count(*) as n, sum(o_total) as total from bench.orders group by cast(o_at as date), o_status",
    ),
    "by region": (
        "c_region",
        "select c_region, count(*) as n, sum(l_price * l_quantity) as total from bench.lines join bench.orders on l_order = o_id join bench.customers on o_customer = c_id group by c_region",
    ),
    "rank": (
        "o_id",
        "select o_id, o_customer, row_number() over (partition by o_customer order by o_at desc, o_id) as nth from bench.orders",
    ),
    "latest": (
        "o_customer",
        "select o_customer, o_id, o_total from (select *, row_number() over (partition by o_customer order by o_at desc, o_id) as nth from bench.orders) where nth = 1",
    ),
    "mart": (
        "c_id",
        "with spent as (select o_customer, sum(l_price * l_quantity) as spent, count(*) as lines from bench.orders join bench.lines on l_order = o_id group by o_customer) "
        "select c_id, c_name, coalesce(spent, 0) as spent, coalesce(lines, 0) as lines from bench.customers left join spent on o_customer = c_id",
    ),
    "union": (
        "kind, id",
        "select 'order' as kind, o_id as id, o_total as amount from bench.orders where o_status = 'open' union all select 'line', l_id, l_price from bench.lines where l_quantity > 5",
    ),
}


class Timed(Direct):
    """Every statement with its seconds."""

    seconds: list[tuple[str, float]]

    def query(self, sql: str) -> list[dict[str, Any]]:
        started = time.perf_counter()
        try:
            return super().query(sql)
        finally:
            self.__dict__.setdefault("seconds", []).append((" ".join(sql.split()), time.perf_counter() - started))


def make(session: Direct, rows: int) -> None:
    feed = "using delta tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true) as"
    session.query("create schema bench")
    session.query(
        f"create table bench.customers {feed} select id as c_id, concat('c', id) as c_name, "
        f"concat('region ', id % 25) as c_region from range({rows // 10})"
    )
    session.query(
        f"create table bench.orders {feed} select id as o_id, id * 7919 % {rows // 10} as o_customer, "
        "elt(id % 3 + 1, 'open', 'paid', 'gone') as o_status, cast(id % 997 as decimal(12, 2)) as o_total, "
        f"timestamp'2026-01-30' - make_interval(0, 0, 0, 0, 0, 0, id * 31 % 5000000) as o_at from range({rows})"
    )
    session.query(
        f"create table bench.lines {feed} select id as l_id, id div 2 as l_order, cast(id % 499 as decimal(12, 2)) as l_price, "
        f"cast(id % 11 as int) as l_quantity, timestamp'2026-01-30' - make_interval(0, 0, 0, 0, 0, 0, id * 17 % 5000000) as l_at "
        f"from range({rows * 2})"
    )


def change(session: Direct, rows: int, number: int) -> None:
    """A tenth of a percent of orders and lines come, go and are edited."""
    few, new = max(rows // 3000, 1), 10 * rows + number * rows
    session.query(
        f"insert into bench.orders select id + {new}, id % {rows // 10}, 'open', 500.00, timestamp'2026-01-30 12:00:00' from range({few})"
    )
    session.query(
        f"insert into bench.lines select id + {new}, id div 2 + {new}, 10.00, 7, timestamp'2026-01-30 12:00:00' from range({2 * few})"
    )
    for table, key in (("orders", "o_id"), ("lines", "l_id")):
        session.query(f"delete from bench.{table} where {key} % 3000 = {number * 2 + 1}")
    session.query(f"update bench.orders set o_total = o_total + 1 where o_id % 3000 = {number * 2 + 2}")
    session.query(f"update bench.lines set l_price = l_price + 1 where l_id % 3000 = {number * 2 + 2}")


def model_of(name: str, table: str = "m") -> Model:
    """A model as a project has it that nothing else reads."""
    key, sql = MODELS[name]
    config = {"unique_key": key.split(", ")}
    return Model("bench", f"{table}{list(MODELS).index(name)}", sql, config, choose_by="seconds", followed=False)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--trace", action="store_true")
    words = parser.parse_args()
    with sources(words.rows) as session:
        measure(session, words)


@contextmanager
def sources(rows: int) -> Iterator[Timed]:
    """A session with the three tables."""
    with opened() as (session, _):
        make(session, rows)
        yield session


@contextmanager
def opened(memory: str = "3g") -> Iterator[tuple[Timed, Path]]:
    """A session in a folder of its own, and the folder."""
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    try:
        spark = open_session({"spark.driver.memory": memory}, home / "warehouse", home / "spark.log")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        yield Timed(spark), home
    finally:
        shutil.rmtree(home, ignore_errors=True)


PHASES = ("first run", "changed", "complete", "unchanged")


def measure(session: Timed, words: argparse.Namespace) -> None:
    times: dict[tuple[str, str], list[float]] = {}
    went: dict[tuple[str, str], str] = {}
    traces: dict[tuple[str, str], list[tuple[str, float]]] = {}
    number = 0
    for round_ in range(words.rounds + 1):  # one to warm up

        def note(name: str, phase: str, seconds: float, run: Any = None, counted: bool = round_ > 0) -> None:
            if counted:
                times.setdefault((name, phase), []).append(seconds)
                if run is not None:
                    shown = f"{run.plan.strategy} {run.statements}"
                    went[name, phase] = shown

        def run(name: str, phase: str, refresh: str, table: str = "m", note: Any = note) -> None:
            model = model_of(name, table)
            session.seconds = []
            seconds, done = timed(lambda: model.run(session, NOW, refresh))
            shows = [s for text, s in session.seconds if text.startswith("show tables")]  # dbt's own cache of relations
            note(name, phase, seconds - sum(shows), done)
            traces[name, phase] = [*session.seconds[1:], ("whole", seconds - sum(shows))]

        def rebuild(name: str, note: Any = note) -> None:
            sql = MODELS[name][1].replace("current_timestamp()", f"timestamp'{NOW}'")
            table = f"bench.t{list(MODELS).index(name)}"
            seconds, _ = timed(lambda: session.query(f"create or replace table {table} using delta as {sql}"))
            note(name, "table", seconds)

        def by_turns(*sides: Callable[[], None], swapped: bool = round_ % 2 == 1) -> None:
            for side in reversed(sides) if swapped else sides:
                side()

        for name in words.models:
            session.query(f"drop table if exists bench.f{list(MODELS).index(name)}")
            by_turns(partial(run, name, "first run", "auto", "f"), partial(rebuild, name))
            if round_ == 0:
                model_of(name).run(session, NOW, "auto")
        for phase, refresh in (("changed", "auto"), ("complete", "full")):
            number += 1
            change(session, words.rows, number)
            for name in words.models:
                by_turns(partial(run, name, phase, refresh), partial(rebuild, name))
        for name in words.models:
            run(name, "unchanged", "auto")
    if words.trace:
        for (name, phase), statements in traces.items():
            print(f"\n{name}: {phase}")
            for text, seconds in statements:
                print(f"  {seconds:6.3f}  {text[:150]}")
    show(words.models, times, went)


def show(
    models: Sequence[str],
    times: dict[tuple[str, str], list[float]],
    went: dict[tuple[str, str], str],
    phases: Sequence[str] = PHASES,
) -> None:
    """A line for each model: the median of `table` and of each phase, the latter also in parts of the former; then means and worst."""
    wide = max(map(len, models))
    print(f"\n{'':{wide}} {'table':>7}" + "".join(f"{phase:>17}" for phase in phases))
    ratios: dict[str, list[float]] = {}
    for name in models:
        table = median(times[name, "table"])
        line = f"{name:{wide}} {table:6.2f}s"
        for phase in phases:
            seconds = median(times[name, phase])
            ratios.setdefault(phase, []).append(seconds / table)
            line += f"  {seconds:6.2f}s {seconds / table:6.2f}x"
        print(line, "  ", ", ".join(went[name, phase] for phase in phases if (name, phase) in went))
    means = [exp(sum(map(log, ratios[phase])) / len(ratios[phase])) for phase in phases]
    print(f"{'mean':{wide}} {'':7}" + "".join(f"{mean:16.2f}x" for mean in means))
    print(f"{'worst':{wide}} {'':7}" + "".join(f"{max(ratios[phase]):16.2f}x" for phase in phases))


if __name__ == "__main__":
    main()
